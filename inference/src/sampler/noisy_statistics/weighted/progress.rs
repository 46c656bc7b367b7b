//! The search for the frame and for the answer, from released and public numbers only.

use super::bounded_stage::BoundedStage;
use super::learnt_frame::LearntFrame;
use super::plan::Facts;
use super::queries::Counts;
use super::residual_table::{LEAST_FAR, ResidualTable};
use super::setting::{Limits, OF_INFORMATION, OF_SCORE, Setting};
use crate::sampler::matrix::dot;
use crate::sampler::noisy_statistics::gaussian::{largest_eigenvalue, smallest_eigenvalue};

/// Number of cells of the table of outcomes.
const OUTCOMES: usize = 40;
/// Least sd of the residuals that a table of outcomes shows, in half widths of the outcome.
const LEAST_SCATTER: f64 = 0.05;
/// Maximum number of locating stages.
const MOST_LOCATING: usize = 6;
/// Least share of the budget that is left for the last stage.
const LEAST_LEFT: f64 = 0.6;
/// Growth of every axis up to which the frame counts as learnt.
const STILL: f64 = 1.6;
/// Step to the answer, in sds of an ordinary record, up to which it counts as found.
const FOUND: f64 = 0.7;
/// Change of log sigma up to which it counts as found.
const FOUND_SCALE: f64 = 0.25;
/// Largest share of the budget of a locating stage.
const MOST_SHARE: f64 = 0.08;
/// Largest stretch of the frame in one update.
const MOST_STRETCH: f64 = 8.0;

/// Predicted noise of an unweighted last stage, in posterior sds, up to which it is preferred: its interval is at most 12 % wider.
const SMALL: f64 = 0.5;
/// Ratio to the predicted noise of a weighted one up to which it is preferred.
const HARDLY_MORE: f64 = 1.1;

/// The next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The table of outcomes.
    Outcomes,
    /// A score and an information, from which the frame is learnt.
    Learn,
    /// A score, an information and a table of residuals.
    Locate,
    /// The score and the information of the answer, and a table of lengths.
    Last,
    /// The sum of squared residuals at the answer.
    Squares,
}

/// The state of the search.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    pub(super) frame: LearntFrame,
    pub(super) coefficients: Vec<f64>,
    /// The logarithm of the residuals' sd, by which they are standardised.
    pub(super) log_sigma: f64,
    /// The last table of residuals, and their scale in units of those that it assumes.
    pub(super) table: Option<(ResidualTable, f64)>,
    /// The limits of the last stage.
    pub(super) limits: Option<Limits>,
    /// Predicted noise of an unweighted last stage, in posterior sds.
    pub(super) plain_noise: f64,
    /// Least noise of the last stage's information relative to it that the releases admit.
    pub(super) information_noise: f64,
    stages: usize,
}

impl Progress {
    /// Starts at coefficients of 0 and a sigma.
    pub(super) fn new(facts: &Facts, log_sigma: f64) -> Self {
        Self {
            phase: Phase::Outcomes,
            frame: public_frame(facts, log_sigma),
            coefficients: vec![0.0; facts.order],
            log_sigma,
            table: None,
            limits: None,
            plain_noise: 0.0,
            information_noise: 0.0,
            stages: 0,
        }
    }

    /// Returns the edges of the table of outcomes less the intercept, in units of sigma.
    pub(super) fn outcome_edges(&self, facts: &Facts) -> Vec<f64> {
        let ((centre, half), cells) = (facts.outcome, OUTCOMES as f64);
        let edge = |k: usize| centre + half * (2.0 * k as f64 / cells - 1.0) - self.intercept(facts);
        (1..OUTCOMES).map(|k| edge(k) * libm::exp(-self.log_sigma)).collect()
    }

    fn intercept(&self, facts: &Facts) -> f64 {
        if facts.has_intercept { self.coefficients[0] } else { 0.0 }
    }

    /// Starts where the outcomes are.
    pub(super) fn take_outcomes(&mut self, facts: &Facts, counts: &Counts) {
        let ((centre, half), cells) = (facts.outcome, OUTCOMES as f64);
        let held: Vec<f64> = counts.cells.iter().map(|count| if *count > 2.0 * counts.sd { *count } else { 1e-9 }).collect();
        let value = |k: usize| centre + half * ((2.0 * k as f64 + 1.0) / cells - 1.0);
        let all: f64 = held.iter().sum();
        let mean = |of: &dyn Fn(f64) -> f64| held.iter().enumerate().map(|(k, count)| count / all * of(value(k))).sum::<f64>();
        let first = if facts.has_intercept { mean(&|y| y) } else { 0.0 };
        if let Some(intercept) = self.coefficients.first_mut().filter(|_| facts.has_intercept) {
            *intercept = first;
        }
        if facts.own {
            let scatter = mean(&|y| (y - first) * (y - first)).max(LEAST_SCATTER * LEAST_SCATTER);
            self.move_sigma(facts, 0.5 * libm::log(scatter) - self.log_sigma);
        }
        self.frame = public_frame(facts, self.log_sigma);
        self.phase = Phase::Learn;
    }

    /// Moves log sigma inside its box; the frame follows, so that images stay where they are. Returns the factor on sigma.
    fn move_sigma(&mut self, facts: &Facts, by: f64) -> f64 {
        let (least, most) = facts.log_sigma_box;
        let to = (self.log_sigma + by).clamp(least, most);
        let factor = libm::exp(to - self.log_sigma);
        self.log_sigma = to;
        self.frame = self.frame.clone().scaled(factor);
        factor
    }

    /// Moves towards the answer of a stage, by at most `most` of its coordinates. Returns the step's whole length.
    fn step(&mut self, facts: &Facts, stage: &BoundedStage, most: f64) -> f64 {
        let step = stage.fit(&facts.prior).step;
        let length = dot(&step, &step).sqrt();
        let root_order = (facts.order as f64).sqrt();
        if largest_eigenvalue(&stage.information) > 2.5 * stage.information_sd * root_order {
            let part = (most * (facts.radius * facts.order as f64).sqrt() / length).min(1.0);
            let moved = stage.frame.coefficients(&step);
            self.coefficients.iter_mut().zip(moved).for_each(|(b, step)| *b += part * step);
        }
        length
    }

    /// Learns the frame from a stage.
    pub(super) fn take_learning(&mut self, facts: &Facts, stage: &BoundedStage) {
        /// Longest step of a first stage and of a later one, in radii.
        const LONGEST: [f64; 2] = [1.6, 2.4];
        let root_order = (facts.order as f64).sqrt();
        let seen = largest_eigenvalue(&stage.information) > 2.5 * stage.information_sd * root_order;
        self.step(facts, stage, LONGEST[usize::from(self.stages > 0)]);
        self.stages += 1;
        let (sd, stages) = (stage.information_sd, self.stages);
        let stretch = |value: f64| {
            let stretch = (facts.filled() * facts.records / (value.max(0.0) + 1.2 * sd * root_order)).sqrt();
            // A direction that two updates have not brought out is left as it is.
            if stages > 2 && value < 2.0 * sd { stretch.min(1.0) } else { stretch }
        };
        let most = stage.information.eigen().iter().map(|(value, _)| stretch(*value)).fold(0.0, f64::max);
        if seen || stages == 1 {
            let frame = self.frame.stretched(&stage.information, |value| stretch(value).min(MOST_STRETCH));
            self.frame = frame.held(&facts.is_indicator, libm::exp(-self.log_sigma));
        }
        if (stages >= 2 && most < STILL) || stages >= facts.most_learnt {
            (self.phase, self.stages) = (Phase::Locate, 0);
        }
    }

    /// Moves to the answer of a locating stage, of which `left` of the budget remains. The last one chooses the limits of the last
    /// stage.
    pub(super) fn take_locating(&mut self, facts: &Facts, stage: &BoundedStage, table: Option<ResidualTable>, left: f64) {
        let length = self.step(facts, stage, 2.4);
        self.stages += 1;
        let moved = table.as_ref().filter(|_| facts.own).map_or(0.0, |table| libm::log(table.scale()));
        let scale = self.move_sigma(facts, moved);
        self.table = table.map(|table| (table, scale));
        let near = length / facts.radius.sqrt() < FOUND && moved.abs() < FOUND_SCALE;
        let ended = near || self.stages >= MOST_LOCATING || left - MOST_SHARE < LEAST_LEFT;
        let noise = stage.information_sd * (facts.order as f64).sqrt();
        let (least, most) = if ended { (0.6, 1.6) } else { (0.7, 1.4) };
        let stretch = |value: f64| (facts.filled() * facts.records / (value.max(0.0) + noise)).sqrt().clamp(least, most);
        let root = libm::exp(-self.log_sigma);
        // The frame of the stage's images at the new sigma.
        let seen = BoundedStage { frame: self.frame.clone(), ..stage.clone() };
        self.frame = self.frame.stretched(&stage.information, stretch).held(&facts.is_indicator, root);
        if ended {
            self.choose(facts, &seen, left);
        }
    }

    /// Chooses the limits of the last stage by the information of the stage before.
    fn choose(&mut self, facts: &Facts, seen: &BoundedStage, left: f64) {
        let root = libm::exp(-self.log_sigma);
        let setting = Setting::choose(facts.noise_on_the_ball(left), facts.order);
        let frame = self.frame.clone().scaled((facts.radius / setting.radius).sqrt()).held(&facts.is_indicator, root);
        let (plain, clip) = (public_frame(facts, self.log_sigma), self.far_clip());
        let noise = |frame: &LearntFrame, clip| predicted_noise(facts, seen, (frame, clip), left);
        self.plain_noise = noise(&plain, clip);
        let is_plain = facts.may_be_plain && self.plain_noise <= SMALL.max(HARDLY_MORE * noise(&frame, setting.clip));
        (self.frame, self.limits) =
            if is_plain { (plain, Some(Limits::Plain(clip))) } else { (frame, Some(Limits::Weighted(setting))) };
        self.information_noise = self.limits.map_or(0.0, |limits| least_noise(facts, seen, (&self.frame, limits), left));
        self.phase = Phase::Last;
    }

    /// Returns the clip, in sds, beyond which no residual is seen.
    pub(super) fn far_clip(&self) -> f64 {
        self.table.as_ref().map_or(LEAST_FAR, |(table, scale)| table.far(*scale))
    }

    /// Returns the share of the budget of a locating stage, by which its noise moves an ordinary record by a third of its sd.
    pub(super) fn locating_share(facts: &Facts, clip: f64) -> f64 {
        let noise = 2.0 * clip * facts.unit * facts.radius.sqrt() * facts.order as f64 / facts.records / 0.35;
        (noise * noise / 0.5).clamp(0.04, MOST_SHARE)
    }
}

/// Returns the frame in which every record has weight 1.
fn public_frame(facts: &Facts, log_sigma: f64) -> LearntFrame {
    /// Covers the rounding of a point that is moved into its box.
    const OUTWARD: f64 = 1.0 + 1e-6;
    LearntFrame::ball(&facts.coding, facts.order, OUTWARD * facts.longest * libm::exp(-log_sigma))
}

/// Returns the noise of a score in a frame with the remaining budget, in posterior sds: the root mean square over the coefficients, by
/// a stage's information.
fn predicted_noise(facts: &Facts, stage: &BoundedStage, (frame, clip): (&LearntFrame, f64), left: f64) -> f64 {
    let floor = stage.information_sd * (facts.order as f64).sqrt();
    let covariance = stage.frame.covariance(&stage.information.map_eigenvalues(|value| value.max(floor).recip()));
    let sd = 2.0 * clip * facts.unit / (OF_SCORE * left).sqrt();
    let moved = frame.moved_by_scores(&covariance).diagonal_entries();
    let squares = moved.into_iter().zip(covariance.diagonal_entries()).map(|(moved, own)| moved / own);
    sd * (squares.sum::<f64>() / facts.order as f64).sqrt()
}

/// Returns the least noise of the last stage's information, relative to it in the least known direction, that a stage's information
/// admits by two sds of its own noise.
fn least_noise(facts: &Facts, seen: &BoundedStage, (frame, limits): (&LearntFrame, Limits), left: f64) -> f64 {
    let map = frame.images_from(&seen.frame);
    let expected = map.times(&seen.information).times(&map.transposed()).symmetrised();
    let root_order = (facts.order as f64).sqrt();
    let own = largest_eigenvalue(&map.times(&map.transposed()).symmetrised()) * seen.information_sd * root_order;
    let sd = limits.of_influence().1 * facts.unit / (OF_INFORMATION * left).sqrt();
    2.0 * sd * root_order / (smallest_eigenvalue(&expected) + 2.0 * own).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
#[path = "../tests/weighted_progress.rs"]
mod tests;
