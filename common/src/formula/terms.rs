//! Terms: products of factors, and their algebra.

use super::arithmetic::Arithmetic;
use super::error::FormulaError;
use super::limits::{MOST_FACTORS, MOST_TERMS};
use super::span::Span;

/// A spline of a column with public knots.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spline {
    pub(crate) column: String,
    pub(crate) column_span: Span,
    pub(crate) knots: Vec<(f64, Span)>,
}

/// The quantity of a factor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Quantity {
    Column(String),
    Arithmetic(Arithmetic),
    /// A piecewise linear spline.
    Linear(Spline),
    /// A natural cubic spline.
    Natural(Spline),
}

/// A factor of a term.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TermFactor {
    /// The factor in canonical form, which identifies it.
    pub(crate) text: String,
    pub(crate) span: Span,
    pub(crate) quantity: Quantity,
}

/// A product of different factors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub(crate) factors: Vec<TermFactor>,
    pub(crate) span: Span,
}

impl Term {
    fn key(&self) -> Vec<&str> {
        let mut key: Vec<&str> = self.factors.iter().map(|factor| factor.text.as_str()).collect();
        key.sort_unstable();
        key
    }

    /// Returns the term in canonical form.
    pub(crate) fn text(&self) -> String {
        self.factors.iter().map(|factor| factor.text.as_str()).collect::<Vec<_>>().join(":")
    }

    fn times(&self, other: &Self, span: Span) -> Result<Self, FormulaError> {
        let mut factors = self.factors.clone();
        for factor in &other.factors {
            if factors.iter().all(|known| known.text != factor.text) {
                factors.push(factor.clone());
            }
        }
        if factors.len() > MOST_FACTORS {
            let message = format!("an interaction of {} columns; at most {MOST_FACTORS}", factors.len());
            return Err(FormulaError::new(span, message));
        }
        Ok(Self { factors, span })
    }
}

/// A list of different terms, in the order of their first mention.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Terms(pub(super) Vec<Term>);

impl Terms {
    pub(super) fn add(&mut self, term: Term) -> Result<(), FormulaError> {
        if self.0.iter().any(|known| known.key() == term.key()) {
            return Ok(());
        }
        if self.0.len() == MOST_TERMS {
            return Err(FormulaError::new(term.span, format!("the formula has more than {MOST_TERMS} terms")));
        }
        self.0.push(term);
        Ok(())
    }

    pub(super) fn add_all(&mut self, other: Self) -> Result<(), FormulaError> {
        other.0.into_iter().try_for_each(|term| self.add(term))
    }

    /// Leaves terms out, each of which the list must have.
    pub(super) fn leave_out(&mut self, other: &Self) -> Result<(), FormulaError> {
        for term in &other.0 {
            let before = self.0.len();
            self.0.retain(|known| known.key() != term.key());
            if self.0.len() == before {
                let message = format!("`{}` is not among the terms before it, so it cannot be left out", term.text());
                return Err(FormulaError::new(term.span, message));
            }
        }
        Ok(())
    }

    /// Returns the products of each term with each of another list.
    pub(super) fn times(&self, other: &Self, span: Span) -> Result<Self, FormulaError> {
        let mut products = Self::default();
        for left in &self.0 {
            for right in &other.0 {
                products.add(left.times(right, span)?)?;
            }
        }
        Ok(products)
    }
}
