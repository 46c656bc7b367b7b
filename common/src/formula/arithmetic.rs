//! Arithmetic over columns, in the order of its operations: operands before their operator.

use super::span::Span;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Log,
    Exp,
    Sqrt,
}

impl Function {
    pub(super) const ALL: [(&'static str, Self); 3] = [("log", Self::Log), ("exp", Self::Exp), ("sqrt", Self::Sqrt)];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }
}

/// An operand or an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Symbol {
    Number(f64),
    Column(String),
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Negate,
    Call(Function),
}

/// An expression. Each operation takes the results before it; its place covers its operands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Arithmetic {
    pub(crate) symbols: Vec<(Symbol, Span)>,
}

/// Ranks of operations: an operand of a lower rank stands in parentheses.
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const POWER: u8 = 4;
const ATOM: u8 = 5;

impl Arithmetic {
    /// Returns the column, if the expression is one.
    pub(crate) fn column(&self) -> Option<&str> {
        match self.symbols.as_slice() {
            [(Symbol::Column(name), _)] => Some(name),
            _ => None,
        }
    }

    /// Returns the column, if the expression is the logarithm of one.
    pub(crate) fn logarithm_of(&self) -> Option<&str> {
        match self.symbols.as_slice() {
            [(Symbol::Column(name), _), (Symbol::Call(Function::Log), _)] => Some(name),
            _ => None,
        }
    }

    /// Returns the expression as R prints it.
    pub(crate) fn text(&self) -> String {
        let mut stack: Vec<(String, u8)> = Vec::new();
        for (symbol, _) in &self.symbols {
            let printed = match symbol {
                Symbol::Number(value) => (number(*value), ATOM),
                Symbol::Column(name) => (quoted(name), ATOM),
                Symbol::Negate => (format!("-{}", operand(&mut stack, SIGN)), SIGN),
                Symbol::Call(function) => (format!("{}({})", function.name(), operand(&mut stack, 0)), ATOM),
                Symbol::Add => two(&mut stack, " + ", (SUM, SUM, PRODUCT)),
                Symbol::Subtract => two(&mut stack, " - ", (SUM, SUM, PRODUCT)),
                Symbol::Multiply => two(&mut stack, " * ", (PRODUCT, PRODUCT, SIGN)),
                Symbol::Divide => two(&mut stack, "/", (PRODUCT, PRODUCT, SIGN)),
                Symbol::Power => two(&mut stack, "^", (POWER, ATOM, SIGN)),
            };
            stack.push(printed);
        }
        stack.pop().map(|(text, _)| text).unwrap_or_default()
    }
}

/// Takes the last operand, in parentheses if its rank is below `least`.
fn operand(stack: &mut Vec<(String, u8)>, least: u8) -> String {
    match stack.pop() {
        Some((text, rank)) if rank >= least => text,
        Some((text, _)) => format!("({text})"),
        None => String::new(),
    }
}

fn two(stack: &mut Vec<(String, u8)>, symbol: &str, (rank, left, right): (u8, u8, u8)) -> (String, u8) {
    let right = operand(stack, right);
    let left = operand(stack, left);
    (format!("{left}{symbol}{right}"), rank)
}

/// Returns a number in its shortest form.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:?}") }
}

/// Returns a column's name, between backticks unless it is a word of formulas.
pub(crate) fn quoted(name: &str) -> String {
    let mut letters = name.chars();
    let initial = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let plain = initial && letters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    if plain { name.to_owned() } else { format!("`{name}`") }
}
