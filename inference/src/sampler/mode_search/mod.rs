//! The search for the posterior's mode and its curvature before the chains; all chains share one search.

mod axis;
mod pattern;
mod plan;
mod purpose;
mod search;

pub(super) use plan::SearchPlan;
pub(super) use purpose::Purpose;
pub(super) use search::{Found, ModeSearch};
