//! Where the parties are asked next and what that may spend, from released numbers alone.
//!
//! Cheap stages find the neighbourhood of the answer, and what is left goes into one last stage there. A
//! step within its noise does not end the search: a posterior that is nearly flat far out would be taken for
//! one that was found.
//!
//! The last stage asks for the score first, and then for the information half way to where the score says that
//! the answer lies (`stage` says why): for a part of it by what is known of the information until then, and for
//! the rest where that part says.

use conclave_common::job::ReleaseSpec;

/// Share of the budget that one locating stage takes.
const LOCATE: f64 = 0.05;
/// Most locating stages.
const MOST_LOCATING: usize = ReleaseSpec::MOST_LOCATING;
/// Least share of the budget that is left for the last stage.
const LEAST_LEFT: f64 = 0.5;
/// The curvature's share of a locating stage.
const LOCATE_CURVATURE: f64 = 0.2;
/// Most of a posterior sd that a quadratic may leave out of the step from where the last locating stage asked.
const FOUND: f64 = 0.5;
/// Most of a posterior sd that a quadratic may be expected to leave out of the last step.
const EXPECTED: f64 = 0.4;
/// The part of the last stage's curvature that is asked for first.
const FIRST_PART: f64 = 0.35;
/// Farthest that a record's linear predictor may be moved by one step.
pub(crate) const FARTHEST: f64 = 3.0;

/// How the budget is divided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shares {
    /// As many locating stages as it takes.
    Auto,
    /// These shares of mu², one a stage; and the curvature's share of each, by rule where there is none.
    Fixed { shares: Vec<f64>, curvature: Option<f64> },
}

/// What to ask now; shares are of the job's mu².
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ask {
    /// Score and information at one point.
    Stage { at: Vec<f64>, share: f64, curvature: f64 },
    /// The last stage's score.
    Score { at: Vec<f64>, share: f64 },
    /// Its information; all that is left of the budget where it is the last of all.
    Information { at: Vec<f64>, share: f64, last: bool },
}

/// How the search stands after a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Standing {
    /// The farthest that a record's linear predictor is moved by the step to where the answer lies.
    pub(crate) moved: f64,
    /// What a quadratic leaves out of that step, in posterior sds.
    pub(crate) cubic: f64,
    /// What it can be expected to leave out of the last one.
    pub(crate) expected: f64,
    /// The curvature's share of the last stage, by rule.
    pub(crate) curvature: f64,
}

/// Stages asked, and what is left for others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    shares: Shares,
    asked: usize,
    left: f64,
}

impl Schedule {
    pub(crate) fn new(shares: Shares) -> Self {
        Self { shares, asked: 0, left: 1.0 }
    }

    /// The share of the budget that is left.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// The first stage; `curvature` is the last stage's share by rule, where the first is the last.
    pub(crate) fn first(&mut self, at: Vec<f64>, curvature: f64) -> (Ask, f64) {
        let standing = Standing { moved: f64::INFINITY, cubic: f64::INFINITY, expected: f64::INFINITY, curvature };
        self.next(at, standing)
    }

    /// The stage after this standing, and the share that the last stage keeps for its curvature; 0 where it is not the last.
    pub(crate) fn next(&mut self, at: Vec<f64>, standing: Standing) -> (Ask, f64) {
        let (share, last, curvature) = match &self.shares {
            Shares::Auto => {
                let found = standing.moved <= FARTHEST && standing.cubic <= FOUND && standing.expected <= EXPECTED;
                // An asked question at least: nothing is found before.
                let ended = self.asked > 0 && (found || self.asked >= MOST_LOCATING || self.left < LOCATE + LEAST_LEFT);
                if ended { (self.left, true, standing.curvature) } else { (LOCATE, false, LOCATE_CURVATURE) }
            }
            Shares::Fixed { shares, curvature } => {
                let last = self.asked + 1 >= shares.len();
                let by_rule = if last { standing.curvature } else { LOCATE_CURVATURE };
                let share = shares.get(self.asked).copied().unwrap_or(self.left);
                (if last { self.left } else { share }, last, curvature.unwrap_or(by_rule))
            }
        };
        self.asked += 1;
        self.left -= share;
        if last {
            return (Ask::Score { at, share: share * (1.0 - curvature) }, share * curvature);
        }
        (Ask::Stage { at, share, curvature }, 0.0)
    }

    /// The questions for the last stage's information: `share` of the budget in two parts, the second at `at` where `first` is
    /// released.
    pub(crate) fn information(at: Vec<f64>, share: f64, first: bool) -> Ask {
        let part = if first { 1.0 - FIRST_PART } else { FIRST_PART };
        Ask::Information { at, share: share * part, last: first }
    }
}

#[cfg(test)]
#[path = "tests/schedule.rs"]
mod tests;
