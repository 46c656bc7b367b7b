//! The functions of formulas: `log(x)`, `I(…)`, `offset(x)`, and splines.

use super::arithmetic::{Arithmetic, Symbol, number, quoted};
use super::error::FormulaError;
use super::expression::function;
use super::functions;
use super::lexer::Token;
use super::limits::MOST_KNOTS;
use super::operands::{FormulaOffset, Operand};
use super::parser::{Parser, Read, single};
use super::span::Span;
use super::terms::{Quantity, Spline, TermFactor};

impl Parser {
    /// Reads the call of a function.
    pub(super) fn call(&mut self, name: &str, span: Span) -> Read<(Operand, Span)> {
        let is_known = name == "I" || name == "offset" || name == "ls" || name == "ns" || function(name).is_some();
        if !is_known {
            return Err(FormulaError::new(span, functions::unknown(name)));
        }
        self.next();
        if matches!(name, "ls" | "ns") {
            return self.spline(name, span);
        }
        let mut of = self.nested(Self::arithmetic)?;
        let place = span.to(self.expect(")", &format!("to close `{name}(`"))?);
        let text = match (name, function(name)) {
            ("offset", _) => return Ok((Operand::Offset(offset(&of, place)?), place)),
            (_, Some(function)) => {
                of.symbols.push((Symbol::Call(function), place));
                of.text()
            }
            _ => format!("I({})", of.text()),
        };
        Ok((single(TermFactor { text, span: place, quantity: Quantity::Arithmetic(of) }), place))
    }

    /// Reads the arguments of a spline after its opening parenthesis.
    fn spline(&mut self, name: &str, span: Span) -> Read<(Operand, Span)> {
        let (token, column_span) = self.next();
        let (Token::Name(column) | Token::Quoted(column)) = token else {
            return Err(FormulaError::new(column_span, format!("a spline is of a column: `{name}(age, knots = [40, 60])`")));
        };
        let public =
            || format!("knots are public and written down: `{name}({column}, knots = [40, 60])`; none is taken from the data");
        let comma = self.peek().1;
        self.take(&[","]).ok_or_else(|| FormulaError::new(comma, public()))?;
        let (key, key_span) = self.next();
        if key != Token::Name("knots".to_owned()) || self.take(&["="]).is_none() {
            return Err(FormulaError::new(key_span, public()));
        }
        let knots = self.knots()?;
        let place = span.to(self.expect(")", &format!("to close `{name}(`"))?);
        let numbers: Vec<String> = knots.iter().map(|(knot, _)| number(*knot)).collect();
        let text = format!("{name}({}, knots = [{}])", quoted(&column), numbers.join(", "));
        let spline = Spline { column, column_span, knots };
        let quantity = if name == "ls" { Quantity::Linear(spline) } else { Quantity::Natural(spline) };
        Ok((single(TermFactor { text, span: place, quantity }), place))
    }

    fn knots(&mut self) -> Read<Vec<(f64, Span)>> {
        if self.peek().0 == &Token::Name("c".to_owned()) {
            self.next();
        }
        let open = self.peek().1;
        let Some((symbol, _)) = self.take(&["[", "("]) else {
            return Err(FormulaError::new(open, "knots are a list of numbers: `knots = [40, 60]`"));
        };
        let mut knots = Vec::new();
        loop {
            let minus = self.take(&["-"]);
            let (token, span) = self.next();
            let Token::Number(knot) = token else {
                return Err(FormulaError::new(span, "a knot is a number: `knots = [40, 60]`"));
            };
            if knots.len() == MOST_KNOTS {
                return Err(FormulaError::new(span, format!("at most {MOST_KNOTS} knots")));
            }
            knots.push(minus.map_or((knot, span), |(_, at)| (-knot, at.to(span))));
            if self.take(&[","]).is_none() {
                self.expect(if symbol == "[" { "]" } else { ")" }, "after the last knot")?;
                return Ok(knots);
            }
        }
    }
}

fn offset(of: &Arithmetic, span: Span) -> Read<FormulaOffset> {
    let (column, is_logarithm) = match (of.column(), of.logarithm_of()) {
        (Some(column), _) => (column, false),
        (_, Some(column)) => (column, true),
        _ => {
            let message = "an offset is a column or the logarithm of one, `offset(log(days))`: store any other value as a column of the data";
            return Err(FormulaError::new(span, message));
        }
    };
    Ok(FormulaOffset { column: column.to_owned(), is_logarithm, span })
}
