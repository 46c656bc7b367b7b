//! Regression formulas: the reading of their text to terms, and the coding of categorical terms.
//!
//! The language is that of R's formulas, restricted to terms that public declarations determine. Reading is total: every text is a
//! formula or an error with its place. Recursion is limited to [`MOST_NESTED`](limits::MOST_NESTED) levels.

mod arithmetic;
mod calls;
mod coding;
mod error;
mod expression;
mod functions;
mod lexer;
mod limits;
mod operands;
mod parser;
mod span;
mod terms;

pub(crate) use arithmetic::{Arithmetic, Function, Symbol};
pub(crate) use coding::full_rank;
pub(crate) use error::FormulaError;
pub(crate) use operands::{Effects, FormulaOffset};
pub(crate) use parser::Formula;
pub(crate) use span::Span;
pub(crate) use terms::{Quantity, Spline, TermFactor};

#[cfg(test)]
pub(crate) mod tests;
