//! Expressions over columns, and the bounds that follow from those of the columns.

use super::declared::{Columns, declared};
use crate::formula::{Arithmetic, FormulaError, Function, Span, Symbol};
use crate::job::limits::MAX_BOUND;
use crate::parameter::LEAST_MAGNITUDE;
use crate::schema::{ColumnSpec, Operation, Range};
use crate::text::figure;

/// The greatest magnitude of an exponent.
const MOST_EXPONENT: f64 = 64.0;
/// The least distance from 0 of what is divided by or has a logarithm, as a share of its greatest magnitude.
const LEAST_SHARE: f64 = 1e-9;

/// An expression's operations and the range of its value.
pub(super) struct Lowered {
    pub(super) sources: Vec<String>,
    pub(super) operations: Vec<Operation>,
    pub(super) range: Range,
}

/// The result of some operations.
#[derive(Clone, Copy)]
struct Operand {
    range: Range,
    span: Span,
    /// The number of its first operation.
    first: usize,
    is_number: bool,
}

struct Lowering<'a> {
    columns: &'a Columns,
    /// The expression's columns by their places in the formula.
    places: Vec<(Span, &'a str, Range)>,
    sources: Vec<String>,
    operations: Vec<Operation>,
    stack: Vec<Operand>,
}

/// Lowers an expression.
///
/// # Errors
/// A column that is no number, and an operation whose results have no public bounds.
pub(super) fn lower(arithmetic: &Arithmetic, columns: &Columns) -> Result<Lowered, FormulaError> {
    let mut lowering = Lowering { columns, places: Vec::new(), sources: Vec::new(), operations: Vec::new(), stack: Vec::new() };
    for (symbol, span) in &arithmetic.symbols {
        lowering.take(symbol, *span)?;
    }
    let range = lowering.stack.pop().map_or((0.0, 0.0), |operand| operand.range);
    Ok(Lowered { sources: lowering.sources, operations: lowering.operations, range })
}

impl<'a> Lowering<'a> {
    fn take(&mut self, symbol: &Symbol, span: Span) -> Result<(), FormulaError> {
        match symbol {
            Symbol::Number(number) => self.number(*number, span),
            Symbol::Column(name) => self.column(name, span),
            Symbol::Negate => self.one(Operation::Negate, span),
            Symbol::Call(Function::Log) => self.one(Operation::Logarithm, span),
            Symbol::Call(Function::Exp) => self.one(Operation::Exponential, span),
            Symbol::Call(Function::Sqrt) => self.one(Operation::SquareRoot, span),
            Symbol::Power => self.power(span),
            Symbol::Add => self.two(Operation::Add, span),
            Symbol::Subtract => self.two(Operation::Subtract, span),
            Symbol::Multiply => self.two(Operation::Multiply, span),
            Symbol::Divide => self.two(Operation::Divide, span),
        }
    }

    fn push(&mut self, operation: Operation, range: Range, span: Span, first: usize, is_number: bool) {
        self.operations.push(operation);
        self.stack.push(Operand { range, span, first, is_number });
    }

    fn pop(&mut self, span: Span) -> Result<Operand, FormulaError> {
        self.stack.pop().ok_or_else(|| FormulaError::new(span, "an operand is missing"))
    }

    /// Refuses a number with which records might be computed in subnormal arithmetic, whose time depends on them.
    fn number(&mut self, number: f64, span: Span) -> Result<(), FormulaError> {
        if number != 0.0 && !(LEAST_MAGNITUDE..=MAX_BOUND).contains(&number.abs()) {
            return Err(FormulaError::new(span, format!("numbers are 0, or {LEAST_MAGNITUDE:e} to {MAX_BOUND:e} in magnitude")));
        }
        self.push(Operation::Number(number), (number, number), span, self.operations.len(), true);
        Ok(())
    }

    fn column(&mut self, name: &str, span: Span) -> Result<(), FormulaError> {
        let range = match declared(name, span, self.columns)? {
            ColumnSpec::Numeric { min, max } => (*min, *max),
            ColumnSpec::Binary => (0.0, 1.0),
            ColumnSpec::Levels(_) => {
                let message =
                    format!("`{name}` has levels, and arithmetic is over numeric columns: name it as a term of its own");
                return Err(FormulaError::new(span, message));
            }
        };
        let key = self.columns.get_key_value(name).map_or("", |(key, _)| key.as_str());
        self.places.push((span, key, range));
        let at = self.sources.iter().position(|source| source == name).unwrap_or_else(|| {
            self.sources.push(name.to_owned());
            self.sources.len() - 1
        });
        self.push(Operation::Column(at), range, span, self.operations.len(), false);
        Ok(())
    }

    fn one(&mut self, operation: Operation, span: Span) -> Result<(), FormulaError> {
        let of = self.pop(span)?;
        let (low, high) = of.range;
        let least = LEAST_SHARE * low.abs().max(high.abs());
        match operation {
            Operation::Logarithm if low < LEAST_MAGNITUDE || low < least => {
                return Err(self.unbounded("the logarithm", &of, "declare a `min` above 0, or add a constant: `log(cost + 1)`"));
            }
            Operation::SquareRoot if low < 0.0 => {
                return Err(self.unbounded("the square root", &of, "declare a `min` of at least 0"));
            }
            _ => {}
        }
        let range = self.bounded(operation.range(&[of.range]), span)?;
        self.push(operation, range, span, of.first, of.is_number);
        Ok(())
    }

    fn two(&mut self, operation: Operation, span: Span) -> Result<(), FormulaError> {
        let (right, left) = (self.pop(span)?, self.pop(span)?);
        let (low, high) = right.range;
        let nearest = if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) };
        if operation == Operation::Divide && (nearest == 0.0 || nearest < LEAST_SHARE * low.abs().max(high.abs())) {
            return Err(self.unbounded(
                "a quotient",
                &right,
                "declare bounds that exclude 0, or add a constant: `dose / (weight + 1)`",
            ));
        }
        let range = self.bounded(operation.range(&[left.range, right.range]), span)?;
        self.push(operation, range, span, left.first, left.is_number && right.is_number);
        Ok(())
    }

    fn power(&mut self, span: Span) -> Result<(), FormulaError> {
        let (exponent, of) = (self.pop(span)?, self.pop(span)?);
        let number = exponent.range.0;
        if !exponent.is_number || number.abs() > MOST_EXPONENT {
            return Err(FormulaError::new(
                exponent.span,
                format!("an exponent is a number between -{MOST_EXPONENT} and {MOST_EXPONENT}"),
            ));
        }
        self.operations.truncate(exponent.first);
        let (low, high) = of.range;
        if number.fract() != 0.0 && low < 0.0 {
            return Err(self.unbounded("a fractional power", &of, "declare a `min` of at least 0, or use a whole exponent"));
        }
        if number < 0.0 && low <= 0.0 && high >= 0.0 {
            return Err(self.unbounded("a negative power", &of, "declare bounds that exclude 0"));
        }
        let operation = Operation::Power(number);
        let range = self.bounded(operation.range(&[of.range]), span)?;
        self.push(operation, range, span, of.first, of.is_number);
        Ok(())
    }

    /// Checks that a result is within the limits of a column's bounds.
    fn bounded(&self, range: Range, span: Span) -> Result<Range, FormulaError> {
        if range.0.abs() <= MAX_BOUND && range.1.abs() <= MAX_BOUND {
            return Ok(range);
        }
        let message = format!("unbounded: reaches beyond ±{MAX_BOUND:e}{}; narrow the bounds", self.within(span));
        Err(FormulaError::new(span, message))
    }

    fn unbounded(&self, what: &str, of: &Operand, remedy: &str) -> FormulaError {
        let (low, high) = of.range;
        let message =
            format!("unbounded: {what} of a number in [{}, {}]{}; {remedy}", figure(low), figure(high), self.within(of.span));
        FormulaError::new(of.span, message)
    }

    /// Names the columns of a part of the expression, with their bounds.
    fn within(&self, span: Span) -> String {
        let mut named: Vec<String> = Vec::new();
        for (place, name, (low, high)) in &self.places {
            let text = format!("`{name}` in [{}, {}]", figure(*low), figure(*high));
            if span.start <= place.start && place.end <= span.end && !named.contains(&text) {
                named.push(text);
            }
        }
        if named.is_empty() { String::new() } else { format!(", with {}", named.join(" and ")) }
    }
}
