//! Arithmetic over columns: `^`, then signs, then `*` and `/`, then `+` and `-`.

use super::arithmetic::{Arithmetic, Function, Symbol};
use super::error::FormulaError;
use super::functions;
use super::lexer::Token;
use super::limits::MOST_SYMBOLS;
use super::parser::{Parser, Read};
use super::span::Span;

impl Parser {
    /// Reads arithmetic over columns.
    pub(super) fn arithmetic(&mut self) -> Read<Arithmetic> {
        let mut out = Arithmetic::default();
        self.added(&mut out)?;
        Ok(out)
    }

    fn added(&mut self, out: &mut Arithmetic) -> Read<Span> {
        let mut place = self.multiplied(out)?;
        while let Some((sign, _)) = self.take(&["+", "-"]) {
            place = place.to(self.multiplied(out)?);
            push(out, if sign == "+" { Symbol::Add } else { Symbol::Subtract }, place)?;
        }
        Ok(place)
    }

    fn multiplied(&mut self, out: &mut Arithmetic) -> Read<Span> {
        let mut place = self.nested(|parser| parser.signed(out))?;
        while let Some((sign, _)) = self.take(&["*", "/"]) {
            place = place.to(self.nested(|parser| parser.signed(out))?);
            push(out, if sign == "*" { Symbol::Multiply } else { Symbol::Divide }, place)?;
        }
        Ok(place)
    }

    /// Reads an operand with a sign, which binds less than a power: `-2^2` is −4.
    fn signed(&mut self, out: &mut Arithmetic) -> Read<Span> {
        if let Some((_, at)) = self.take(&["-"]) {
            let place = at.to(self.nested(|parser| parser.signed(out))?);
            push(out, Symbol::Negate, place)?;
            return Ok(place);
        }
        let place = self.atom(out)?;
        if self.take(&["^", "**"]).is_none() {
            return Ok(place);
        }
        let place = place.to(self.nested(|parser| parser.signed(out))?);
        push(out, Symbol::Power, place)?;
        Ok(place)
    }

    fn atom(&mut self, out: &mut Arithmetic) -> Read<Span> {
        let (token, span) = self.next();
        match token {
            Token::Number(number) => push(out, Symbol::Number(number), span).map(|()| span),
            Token::Name(name) if self.is_symbol("(") => {
                let function = function(&name).ok_or_else(|| FormulaError::new(span, functions::unknown(&name)))?;
                self.next();
                self.nested(|parser| parser.added(out))?;
                let place = span.to(self.expect(")", &format!("to close `{name}(`"))?);
                push(out, Symbol::Call(function), place).map(|()| place)
            }
            Token::Name(name) | Token::Quoted(name) => push(out, Symbol::Column(name), span).map(|()| span),
            Token::Symbol("(") => {
                self.nested(|parser| parser.added(out))?;
                Ok(span.to(self.expect(")", "to close this parenthesis")?))
            }
            Token::End => Err(FormulaError::new(span, "a number or a column is missing at the end")),
            Token::Symbol(symbol) => Err(FormulaError::new(span, format!("a number or a column is missing before `{symbol}`"))),
        }
    }
}

/// Returns the function of this name.
pub(super) fn function(name: &str) -> Option<Function> {
    Function::ALL.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

fn push(out: &mut Arithmetic, symbol: Symbol, span: Span) -> Read<()> {
    if out.symbols.len() == MOST_SYMBOLS {
        return Err(FormulaError::new(
            span,
            format!("an expression of more than {MOST_SYMBOLS} numbers, columns and operations"),
        ));
    }
    out.symbols.push((symbol, span));
    Ok(())
}
