//! The operands of a formula's sum: terms, an intercept, an offset, and effects by group.

use super::error::FormulaError;
use super::span::Span;
use super::terms::{Term, Terms};

/// A column that enters with a coefficient of 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormulaOffset {
    pub(crate) column: String,
    /// True if its logarithm enters.
    pub(crate) is_logarithm: bool,
    pub(crate) span: Span,
}

/// Effects that vary by a group: `(1 + age || party)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effects {
    pub(crate) intercept: bool,
    pub(crate) terms: Vec<Term>,
    /// The group's name and place.
    pub(crate) group: (String, Span),
    pub(crate) span: Span,
}

/// One operand of a sum.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// `1`, or `0` as false.
    Intercept(bool),
    Terms(Terms),
    Offset(FormulaOffset),
    Effects(Effects),
}

impl Operand {
    /// Returns the terms of an operand of `:`, `*` or `^`.
    pub(super) fn terms(self, span: Span) -> Result<Terms, FormulaError> {
        let what = match self {
            Operand::Terms(terms) => return Ok(terms),
            Operand::Intercept(_) => "the intercept",
            Operand::Offset(_) => "an offset",
            Operand::Effects(_) => "an effect by party",
        };
        Err(FormulaError::new(span, format!("{what} has no interactions: add it by `+`")))
    }
}

/// A sum of operands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sum {
    /// The last statement about the intercept and its place.
    pub(super) intercept: Option<(bool, Span)>,
    pub(super) terms: Terms,
    pub(super) offset: Option<FormulaOffset>,
    pub(super) effects: Vec<Effects>,
}

impl Sum {
    /// Adds an operand, or leaves it out.
    pub(super) fn add(&mut self, operand: Operand, is_added: bool, span: Span) -> Result<(), FormulaError> {
        match operand {
            Operand::Intercept(stated) => self.intercept = Some((stated == is_added, span)),
            Operand::Terms(terms) if is_added => self.terms.add_all(terms)?,
            Operand::Terms(terms) => self.terms.leave_out(&terms)?,
            _ if !is_added => return Err(FormulaError::new(span, "only terms and the intercept can be left out by `-`")),
            Operand::Offset(_) if self.offset.is_some() => {
                let message = "a second offset: store the sum of both as a column and name that one";
                return Err(FormulaError::new(span, message));
            }
            Operand::Offset(offset) => self.offset = Some(offset),
            Operand::Effects(effects) => self.effects.push(effects),
        }
        Ok(())
    }

    /// Returns the terms of a sum in parentheses, which has nothing else.
    pub(super) fn only_terms(self, span: Span) -> Result<Terms, FormulaError> {
        let outside = |what: &str| Err(FormulaError::new(span, format!("{what} stands outside of parentheses")));
        match self {
            Self { intercept: Some(_), .. } => outside("the intercept"),
            Self { offset: Some(_), .. } => outside("an offset"),
            Self { effects, .. } if !effects.is_empty() => outside("an effect by party"),
            Self { terms, .. } => Ok(terms),
        }
    }
}
