//! Limits on formulas, which coordinators and parties read from untrusted sources.

/// The longest formula in bytes.
pub(super) const MOST_BYTES: usize = 2000;
/// The deepest nesting of parentheses, signs and exponents.
pub(super) const MOST_NESTED: usize = 64;
/// The most terms of a formula.
pub(super) const MOST_TERMS: usize = 256;
/// The most columns that an interaction joins.
pub(super) const MOST_FACTORS: usize = 3;
/// The most numbers, columns and operations of an expression.
pub(super) const MOST_SYMBOLS: usize = 256;
/// The most knots of a spline.
pub(super) const MOST_KNOTS: usize = 20;
