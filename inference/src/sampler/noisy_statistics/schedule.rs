//! The next query and its share of the budget, chosen from released numbers only.
//!
//! Cheap locating stages find the neighbourhood of the answer, and the remaining budget goes into one last stage there. A step
//! within its noise does not end the search, because a posterior that is nearly flat far out would then count as found.
//!
//! The last stage asks for the score first. It then asks for the information half way to the answer that the score implies (see
//! `stage`). The first part of the information is at the midpoint that the information so far implies, the rest at the one that
//! the first part implies.

use conclave_common::job::ReleaseSpec;

/// Share of the budget for one locating stage.
const LOCATE: f64 = 0.05;
/// Maximum number of locating stages.
const MOST_LOCATING: usize = ReleaseSpec::MOST_LOCATING;
/// Least share of the budget that is reserved for the last stage.
const LEAST_LEFT: f64 = 0.5;
/// The curvature's share of a locating stage.
const LOCATE_CURVATURE: f64 = 0.2;
/// Largest remainder of the quadratic, in posterior sds, on the step from the last locating stage's point.
const FOUND: f64 = 0.5;
/// Largest expected remainder of the quadratic, in posterior sds, on the last step.
const EXPECTED: f64 = 0.4;
/// Part of the last stage's curvature that is released first.
pub(crate) const FIRST_PART: f64 = 0.35;
/// Largest change of a record's linear predictor in one step.
pub(crate) const FARTHEST: f64 = 3.0;

/// The division of the budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shares {
    /// Automatic: as many locating stages as necessary.
    Auto,
    /// These shares of mu², one per stage, and the curvature's share of each; `None` applies the rule.
    Fixed { shares: Vec<f64>, curvature: Option<f64> },
}

/// The next query; shares are of the job's mu².
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// Score and information at one point.
    Stage { at: Vec<f64>, share: f64, curvature: f64 },
    /// The score of the last stage.
    Score { at: Vec<f64>, share: f64 },
    /// The information of the last stage; `last` marks its last part, which takes the whole remaining budget.
    Information { at: Vec<f64>, share: f64, last: bool },
}

/// The state of the search after a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SearchState {
    /// Largest change of a record's linear predictor on the step to the answer.
    pub(crate) moved: f64,
    /// Remainder of the quadratic on that step, in posterior sds.
    pub(crate) cubic: f64,
    /// Expected remainder on the last step.
    pub(crate) expected: f64,
    /// The curvature's share of the last stage, by the rule.
    pub(crate) curvature: f64,
}

impl SearchState {
    /// Returns true if the next stage may be the last.
    pub(crate) fn is_found(&self) -> bool {
        self.moved <= FARTHEST && self.cubic <= FOUND && self.expected <= EXPECTED
    }
}

/// The number of stages so far, and the remaining budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    shares: Shares,
    stages: usize,
    remaining: f64,
}

impl Schedule {
    /// Returns the schedule of a search with this share of the budget.
    pub(crate) fn new(shares: Shares, remaining: f64) -> Self {
        Self { shares, stages: 0, remaining }
    }

    /// Returns the schedule of a search that another one leads. It may ask its last stage at once, unless a family's own parameter bends its
    /// likelihood: then the last step must be short.
    pub(crate) fn led(remaining: f64, has_own: bool) -> Self {
        Self { stages: usize::from(!has_own), ..Self::new(Shares::Auto, remaining) }
    }

    /// Returns the remaining share of the budget.
    pub(crate) fn remaining(&self) -> f64 {
        self.remaining
    }

    /// Returns the first stage. `curvature` is the last stage's share by the rule, used if the first stage is the last.
    pub(crate) fn first(&mut self, at: Vec<f64>, curvature: f64) -> (Request, f64) {
        let state = SearchState { moved: f64::INFINITY, cubic: f64::INFINITY, expected: f64::INFINITY, curvature };
        self.next(at, state)
    }

    /// Returns the next stage, and the share that the last stage reserves for its curvature; 0 if it is not the last.
    pub(crate) fn next(&mut self, at: Vec<f64>, state: SearchState) -> (Request, f64) {
        let (share, last, curvature) = match &self.shares {
            Shares::Auto => {
                let found = state.is_found();
                // At least one stage comes first: nothing is found before it.
                let ended = self.stages > 0 && (found || self.stages >= MOST_LOCATING || self.remaining < LOCATE + LEAST_LEFT);
                if ended { (self.remaining, true, state.curvature) } else { (LOCATE, false, LOCATE_CURVATURE) }
            }
            Shares::Fixed { shares, curvature } => {
                let last = self.stages + 1 >= shares.len();
                let by_rule = if last { state.curvature } else { LOCATE_CURVATURE };
                let share = shares.get(self.stages).copied().unwrap_or(self.remaining);
                (if last { self.remaining } else { share }, last, curvature.unwrap_or(by_rule))
            }
        };
        self.stages += 1;
        self.remaining -= share;
        if last {
            return (Request::Score { at, share: share * (1.0 - curvature) }, share * curvature);
        }
        (Request::Stage { at, share, curvature }, 0.0)
    }

    /// Returns a query for the last stage's information. `share` of the budget is spent in two parts; `first` says whether the
    /// first part is released.
    pub(crate) fn information(at: Vec<f64>, share: f64, first: bool) -> Request {
        let part = if first { 1.0 - FIRST_PART } else { FIRST_PART };
        Request::Information { at, share: share * part, last: first }
    }
}

#[cfg(test)]
#[path = "tests/schedule.rs"]
mod tests;
