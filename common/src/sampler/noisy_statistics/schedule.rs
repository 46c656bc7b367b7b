//! Where the next stage is asked and what it may spend, from released numbers alone (`RELEASE-ONCE-REVIEW`
//! section 3, items 1 to 3).
//!
//! Cheap stages find the neighbourhood of the answer, and what is left goes into one last stage there. A
//! step within its noise does not end the search: a posterior that is nearly flat far out would be taken for
//! one that was found.

use super::adequacy::{CUBIC_LIMIT, cubic};
use super::gaussian::{Fit, largest_eigenvalue};
use super::stage::{Reach, ScoreStage};
use crate::parameter::Interval;

/// Share of the budget that one locating stage takes.
const LOCATE: f64 = 0.05;
/// Most locating stages.
const MOST_LOCATING: usize = 8;
/// Least share of the budget that is left for the last stage.
const LEAST_LEFT: f64 = 0.3;
/// The curvature's share of a locating stage.
const LOCATE_CURVATURE: f64 = 0.2;
/// Least and greatest share of the last stage's curvature.
const CURVATURE: (f64, f64) = (0.05, 0.3);
/// What the last stage's curvature is to bring rho to, see `adequacy`.
const RHO_WANTED: f64 = 0.15;
/// Farthest that a record's linear predictor may be moved by one step.
const FARTHEST: f64 = 3.0;
/// How many sds of the released mean outcome its place is kept off 0 and 1.
const OFF_THE_EDGE: f64 = 3.0;

/// How the budget is divided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shares {
    /// As many locating stages as it takes.
    Auto,
    /// These shares of mu², one a stage; and the curvature's share of each, by rule where there is none.
    Fixed { shares: Vec<f64>, curvature: Option<f64> },
}

/// How a mean outcome determines the intercept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterceptLink {
    /// Logistic: `logit(1/2 + g̃_0/n)`.
    Logit,
    /// Poisson: `log(1 + g̃_0/n)`.
    Log,
}

/// The intercept's own equation, which mends rare outcomes after a first stage at 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Intercept {
    /// Which coordinate it is.
    pub(crate) coordinate: usize,
    /// The number of records, or a guess.
    pub(crate) records: f64,
    pub(crate) link: InterceptLink,
}

/// A stage to ask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The point, in coordinates.
    pub(crate) at: Vec<f64>,
    /// The share of the job's mu² that the stage spends.
    pub(crate) share: f64,
    /// The share of that which goes into the curvature.
    pub(crate) curvature: f64,
    /// Whether its answer is the job's.
    pub(crate) last: bool,
}

/// What to do after a stage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Ask(Plan),
    Done,
}

/// Where the search stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    shares: Shares,
    intercept: Option<Intercept>,
    boxes: Vec<Interval>,
    plan: Plan,
    asked: usize,
    left: f64,
}

impl Schedule {
    /// A search from `start`. Next points are moved into `boxes`, one interval a coordinate; none where it
    /// is empty. The intercept's equation holds at 0 and is used from there alone.
    pub(crate) fn new(shares: Shares, start: Vec<f64>, intercept: Option<Intercept>, boxes: Vec<Interval>) -> Self {
        let plan = match &shares {
            Shares::Auto => Plan { at: start, share: LOCATE, curvature: LOCATE_CURVATURE, last: false },
            Shares::Fixed { shares, curvature } => Plan {
                at: start,
                share: shares.first().copied().unwrap_or(1.0),
                curvature: curvature.unwrap_or(LOCATE_CURVATURE),
                last: shares.len() <= 1,
            },
        };
        Self { left: 1.0 - plan.share, shares, intercept, boxes, plan, asked: 1 }
    }

    /// The stage to ask now.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many stages have been asked, this one included.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// Takes a stage's release and its fit. `information_sd` gives, for a point, the sd of an off-diagonal
    /// entry of the information, summed over parties, if the whole mu² were spent on it there.
    pub(crate) fn released(
        &mut self,
        stage: &ScoreStage,
        fit: &Fit,
        reach: Reach<'_>,
        information_sd: &dyn Fn(&[f64]) -> f64,
    ) -> Next {
        if self.plan.last {
            return Next::Done;
        }
        let step = self.step(stage, fit);
        let at = self.next_point(stage, &step, reach);
        let curvature = |share: f64| last_curvature(fit, share, information_sd(&at));
        let (share, last, curvature) = match &self.shares {
            Shares::Auto => {
                let found = reach(&step) <= FARTHEST && cubic(&step, fit, reach) <= CUBIC_LIMIT;
                let last = found || self.asked >= MOST_LOCATING || self.left < LOCATE + LEAST_LEFT;
                if last { (self.left, true, curvature(self.left)) } else { (LOCATE, false, LOCATE_CURVATURE) }
            }
            Shares::Fixed { shares, curvature: given } => {
                let share = shares.get(self.asked).copied().unwrap_or(self.left);
                let last = self.asked + 1 >= shares.len();
                let by_rule = if last { curvature(share) } else { LOCATE_CURVATURE };
                (share, last, given.unwrap_or(by_rule))
            }
        };
        self.plan = Plan { at, share, curvature, last };
        self.left -= share;
        self.asked += 1;
        Next::Ask(self.plan.clone())
    }

    /// The step to the fit, its intercept by its own equation where that goes farther.
    fn step(&self, stage: &ScoreStage, fit: &Fit) -> Vec<f64> {
        let mut step = fit.step.clone();
        let from_zero = self.asked == 1 && stage.at.iter().all(|x| *x == 0.0);
        if let Some(rule) = self.intercept.filter(|_| from_zero)
            && let Some(slot) = step.get_mut(rule.coordinate)
        {
            let to = rule.value(stage);
            if to.abs() > slot.abs() {
                *slot = to;
            }
        }
        step
    }

    fn next_point(&self, stage: &ScoreStage, step: &[f64], reach: Reach<'_>) -> Vec<f64> {
        let part = (FARTHEST / reach(step)).min(1.0);
        // A step that is no number stays where it is.
        let part = if part.is_finite() { part } else { 0.0 };
        let mut at: Vec<f64> = stage.at.iter().zip(step).map(|(at, s)| if s.is_finite() { at + part * s } else { *at }).collect();
        at.iter_mut().zip(&self.boxes).for_each(|(x, box_)| *x = x.max(box_.min).min(box_.max));
        at
    }
}

impl Intercept {
    /// Where the outcomes' mean puts the intercept if nothing else mattered.
    fn value(&self, stage: &ScoreStage) -> f64 {
        let mean = stage.score[self.coordinate] / self.records;
        let error = OFF_THE_EDGE * stage.score_noise[(self.coordinate, self.coordinate)].sqrt() / self.records;
        let value = match self.link {
            InterceptLink::Logit => {
                let edge = error.clamp(1e-6, 0.5);
                let p = (0.5 + mean).clamp(edge, 1.0 - edge);
                libm::log(p) - libm::log1p(-p)
            }
            InterceptLink::Log => libm::log((1.0 + mean).max(LEAST_MEAN)),
        };
        if value.is_finite() { value } else { 0.0 }
    }
}

/// Least mean count that an intercept is set by.
const LEAST_MEAN: f64 = 0.02;

/// The curvature's share of a last stage: what brings rho to [`RHO_WANTED`] with the covariance that this
/// stage found.
fn last_curvature(fit: &Fit, share: f64, information_sd: f64) -> f64 {
    let rho = 2.0 * information_sd * (fit.mean.len() as f64).sqrt() * largest_eigenvalue(&fit.without_noise) / share.sqrt();
    let wanted = rho / RHO_WANTED * (rho / RHO_WANTED);
    if wanted.is_nan() { CURVATURE.1 } else { wanted.clamp(CURVATURE.0, CURVATURE.1) }
}

#[cfg(test)]
#[path = "tests/schedule.rs"]
mod tests;
