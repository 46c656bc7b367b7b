//! The search for the frame and for the answer, from released and public numbers only.

use super::binary;
use super::bounded_stage::{Ahead, BoundedStage, InformationPoint};
use super::dispersion_score::DispersionScore;
use super::exposures::Exposures;
use super::learnt_frame::LearntFrame;
use super::plan::{Facts, Known};
use super::queries::Counts;
use super::residual_table::{LEAST_FAR, ResidualTable};
use super::setting::Limits;
use super::tails::Tails;
use crate::sampler::matrix::dot;

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
/// The same in the linear predictor of a binary outcome, of an ordinary record.
const FOUND_PREDICTOR: f64 = 0.45;
/// Change of log sigma up to which it counts as found.
const FOUND_SCALE: f64 = 0.25;
/// Change of the logarithm of a dispersion up to which it counts as found.
const FOUND_DISPERSION: f64 = 0.35;
/// Part by which the slopes of counts may differ from the model's. On real data, intervals without that allowance are too narrow by a factor of
/// up to 1.7 for the fit that they name.
const OFF_THE_MODEL: f64 = 0.2;
/// Largest share of the budget of a locating stage.
const MOST_SHARE: f64 = 0.08;
/// Largest stretch of the frame in one update.
const MOST_STRETCH: f64 = 8.0;

/// The next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The number of records.
    Count,
    /// The table of a count's exposures.
    Exposures,
    /// The table of outcomes.
    Outcomes,
    /// A score and an information, from which the frame is learnt.
    Learn,
    /// A score, an information and a table of residuals.
    Locate,
    /// The tables of a count's tails.
    Tails,
    /// The score and the information of the answer, and a table of lengths.
    Last,
    /// The information of a binary outcome or a count half way to the answer, and the variance of the score of a binary one.
    HalfWay,
    /// The dispersion of a count at the answer.
    Dispersion,
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
    /// The probability of the rarer outcome of a typical record, for a binary outcome.
    pub(super) probability: f64,
    /// The mean information of a record with a count, and the first estimate of it.
    pub(super) count_information: f64,
    pub(super) first_information: f64,
    /// The last released score of a count's dispersion.
    pub(super) dispersion: Option<DispersionScore>,
    /// The tails of a count.
    pub(super) tails: Option<Tails>,
    /// The moves of an answer by each of [`super::counts::CLIPS`], until the tails are known, by the table of outcomes.
    pub(super) guessed_biases: [f64; 4],
    /// The exposures of a count.
    pub(super) exposures: Exposures,
    /// The last table of residuals, and their scale in units of those that it assumes.
    pub(super) table: Option<(ResidualTable, f64)>,
    /// The limits of the last stage.
    pub(super) limits: Option<Limits>,
    /// Predicted noise of an unweighted answer, in posterior sds.
    pub(super) plain_noise: f64,
    /// True if the unweighted competitor gives the answer.
    pub(super) hands_over: bool,
    /// The last stage of the search.
    pub(super) located: Option<BoundedStage>,
    /// Least noise of the last stage's information relative to it that the releases admit.
    pub(super) information_noise: f64,
    stages: usize,
}

impl Progress {
    /// Starts at coefficients of 0 and a sigma.
    pub(super) fn new(facts: &Facts, log_sigma: f64) -> Self {
        Self {
            phase: if facts.known == Known::Guessed { Phase::Count } else { after_the_count(facts) },
            frame: public_frame(facts, log_sigma),
            coefficients: vec![0.0; facts.order],
            log_sigma,
            probability: 0.5,
            count_information: 1.0,
            first_information: 1.0,
            dispersion: None,
            tails: None,
            guessed_biases: [0.0; 4],
            exposures: Exposures::NONE,
            table: None,
            limits: None,
            plain_noise: 0.0,
            hands_over: false,
            located: None,
            information_noise: 0.0,
            stages: 0,
        }
    }

    /// Continues after the number of records is released.
    pub(super) fn take_count(&mut self, facts: &Facts) {
        self.phase = after_the_count(facts);
    }

    /// Returns the edges of the table of outcomes less the intercept, in units of sigma.
    pub(super) fn outcome_edges(&self, facts: &Facts) -> Vec<f64> {
        if let Some(counts) = &facts.counts {
            return self.count_edges(counts);
        }
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

    /// Returns the root of an ordinary record's information.
    pub(super) fn root(&self, facts: &Facts) -> f64 {
        match (facts.binary, &facts.counts) {
            (true, _) => binary::root(self.probability),
            (false, Some(_)) => self.count_information.sqrt(),
            (false, None) => libm::exp(-self.log_sigma),
        }
    }

    /// Returns the frame narrowed where its entries, or a 0/1 predictor alone, would move a record far out, for scores with this clip.
    pub(super) fn held(&self, facts: &Facts, frame: LearntFrame, clip: f64) -> LearntFrame {
        let root = self.root(facts);
        frame.held(&facts.is_indicator, root, if facts.binary { binary::most_slope(clip) } else { root })
    }

    /// Takes the typical probability of a binary outcome, or the typical information of a count, from the intercept's information.
    fn take_probability(&mut self, facts: &Facts, stage: &BoundedStage) {
        if facts.is_curved() && facts.has_intercept {
            let mean = stage.frame.information(&stage.information)[(0, 0)] / facts.records;
            if facts.binary {
                self.probability = binary::typical_probability(mean, facts.search_clip());
            } else {
                self.take_count_information(mean);
            }
        }
    }

    /// Returns where an information was taken, at its score's point, if it changes with the coefficients.
    pub(super) fn at_own_point(&self, facts: &Facts) -> Option<InformationPoint> {
        let moved_by_one = 2.0 / (self.radius(facts) * facts.order as f64).sqrt() / self.root(facts);
        // A binary outcome's slope rests on no model.
        let slope = if facts.counts.is_some() { OFF_THE_MODEL } else { 0.0 };
        facts.is_curved().then(|| InformationPoint { step: vec![0.0; facts.order], moved_by_one, slope })
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
        if stage.is_seen() {
            let part = (most * (facts.radius * facts.order as f64).sqrt() / length).min(1.0);
            let moved = stage.frame.coefficients(&step);
            self.coefficients.iter_mut().zip(moved).for_each(|(b, step)| *b += part * step);
        }
        length
    }

    /// Learns the frame from a stage.
    pub(super) fn take_learning(&mut self, facts: &Facts, stage: &BoundedStage, ahead: &Ahead<'_>) {
        self.step(facts, stage, longest(facts, self.stages == 0));
        self.take_probability(facts, stage);
        self.stages += 1;
        let (sd, root_order, stages) = (stage.information_sd, (facts.order as f64).sqrt(), self.stages);
        let stretch = |value: f64| {
            let stretch = (facts.filled() * facts.records / (value.max(0.0) + 1.2 * sd * root_order)).sqrt();
            // A direction that two updates have not brought out is left as it is.
            if stages > 2 && value < 2.0 * sd { stretch.min(1.0) } else { stretch }
        };
        let most = stage.information.eigen().iter().map(|(value, _)| stretch(*value)).fold(0.0, f64::max);
        if stage.is_seen() || stages == 1 {
            let frame = self.frame.stretched(&stage.information, |value| stretch(value).min(MOST_STRETCH));
            self.frame = self.held(facts, frame, facts.search_clip());
        }
        if (stages >= 2 && most < STILL) || stages >= facts.most_learnt {
            (self.phase, self.stages) = (Phase::Locate, 0);
            if facts.counts.is_some() && stage.is_seen() {
                self.choose_plain(facts, stage, ahead);
            }
        }
    }

    /// Moves to the answer of a locating stage. The last one chooses the limits of the last stage by what is ahead.
    pub(super) fn take_locating(&mut self, facts: &Facts, stage: &BoundedStage, table: Option<ResidualTable>, ahead: &Ahead<'_>) {
        let length = self.step(facts, stage, longest(facts, false));
        self.take_probability(facts, stage);
        self.stages += 1;
        let moved = table.as_ref().filter(|_| facts.own).map_or(0.0, |table| libm::log(table.scale()));
        let of_dispersion = self.dispersion.as_ref().map_or(0.0, DispersionScore::step);
        let scale = if facts.counts.is_some() {
            self.move_dispersion(facts, of_dispersion);
            1.0
        } else {
            self.move_sigma(facts, moved)
        };
        self.table = table.map(|table| (table, scale));
        let predictor = length / (facts.radius * facts.order as f64).sqrt() / self.root(facts);
        let near = length / facts.radius.sqrt() < FOUND
            && moved.abs() < FOUND_SCALE
            && (!facts.is_curved() || predictor < FOUND_PREDICTOR)
            && of_dispersion.abs() < FOUND_DISPERSION;
        let ended = near || self.stages >= MOST_LOCATING || ahead.left - MOST_SHARE < LEAST_LEFT;
        let noise = stage.eigenvalue_noise();
        let (least, most) = if ended { (0.6, 1.6) } else { (0.7, 1.4) };
        let stretch = |value: f64| (facts.filled() * facts.records / (value.max(0.0) + noise)).sqrt().clamp(least, most);
        // The frame of the stage's images at the new sigma.
        let seen = BoundedStage { frame: self.frame.clone(), ..stage.clone() };
        self.frame = self.held(facts, self.frame.stretched(&stage.information, stretch), facts.search_clip());
        match facts.counts {
            Some(_) if self.choose_plain(facts, &seen, ahead) => {}
            Some(_) if ended => (self.located, self.phase) = (Some(seen), Phase::Tails),
            None if ended => self.choose(facts, &seen, ahead),
            _ => {}
        }
    }

    /// Takes a count's tails, and chooses the limits of the last stage as [`Self::take_locating`] does.
    pub(super) fn take_tails(&mut self, facts: &Facts, tails: Tails, ahead: &Ahead<'_>) {
        self.tails = Some(tails);
        if let Some(seen) = self.located.take() {
            self.choose(facts, &seen, ahead);
        }
    }

    /// Returns by how many posterior sds a clip moves the answer, by the tails; before these are known, a guess.
    pub(super) fn clip_bias(&self, clip: f64) -> f64 {
        self.tails.as_ref().map_or_else(|| self.guessed_bias(clip), |tails| tails.bias(clip))
    }

    /// Returns the clip, in sds, beyond which no residual is seen.
    pub(super) fn far_clip(&self) -> f64 {
        self.table.as_ref().map_or(LEAST_FAR, |(table, scale)| table.far(*scale))
    }

    /// Returns the share of the budget of a locating stage, by which its noise moves an ordinary record by a third of its sd, or the linear
    /// predictor of a binary outcome by that.
    pub(super) fn locating_share(&self, facts: &Facts) -> f64 {
        let (clip, root) = (facts.search_clip(), self.root(facts));
        let (least, widened) = match (facts.binary, &facts.counts) {
            (true, _) => (0.025, ((clip * root / 0.9).min(1.0) * root).recip()),
            (false, Some(_)) => (0.04, root.recip()),
            (false, None) => (0.04, 1.0),
        };
        let noise = 2.0 * clip * facts.unit * facts.radius.sqrt() * facts.order as f64 / facts.records * widened / 0.35;
        (noise * noise / 0.5).clamp(least, MOST_SHARE)
    }

    /// Returns the squared radius of the last stage's ball, in mean squared lengths of a record per predictor; before, the search's.
    pub(super) fn radius(&self, facts: &Facts) -> f64 {
        match self.limits {
            Some(Limits::Weighted(setting)) => setting.radius,
            _ => facts.radius,
        }
    }
}

fn after_the_count(facts: &Facts) -> Phase {
    match &facts.counts {
        _ if facts.binary => Phase::Learn,
        Some(counts) if counts.least_intercept().is_some() => Phase::Exposures,
        _ => Phase::Outcomes,
    }
}

/// Returns the longest step of a stage, in radii. A binary outcome's information changes on the way.
fn longest(facts: &Facts, first: bool) -> f64 {
    let most = if first { 0.8 } else { 1.2 };
    if facts.is_curved() { most } else { 2.0 * most }
}

/// Returns the frame in which every record has weight 1.
pub(super) fn public_frame(facts: &Facts, log_sigma: f64) -> LearntFrame {
    /// Covers the rounding of a point that is moved into its box.
    const OUTWARD: f64 = 1.0 + 1e-6;
    /// The greatest root of a binary outcome's information.
    const MOST_ROOT: f64 = 0.5;
    let root = if facts.binary { MOST_ROOT } else { libm::exp(-log_sigma) };
    LearntFrame::ball(&facts.coding, facts.order, OUTWARD * facts.longest * root)
}

#[cfg(test)]
#[path = "../tests/weighted_progress.rs"]
pub(super) mod tests;
