//! The search for the posterior's mode and its curvature that goes before the chains: one for all of them.

mod axis;
mod pattern;
mod plan;
mod purpose;
mod search;

pub(super) use plan::SearchPlan;
pub(super) use purpose::Purpose;
pub(super) use search::{Found, ModeSearch};
