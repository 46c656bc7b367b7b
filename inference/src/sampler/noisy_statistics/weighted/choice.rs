//! The choice of the last stage: its limits, and whether it is weighted, by released and public numbers.

use super::bounded_stage::{Ahead, BoundedStage, Located, PlainOutlook};
use super::learnt_frame::LearntFrame;
use super::plan::Facts;
use super::progress::{Phase, Progress, public_frame};
use super::setting::{Limits, OF_INFORMATION, OF_SCORE, Setting, TRACE, part_for_squares};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::answer::Inference;
use crate::sampler::noisy_statistics::gaussian::{in_sds, largest_eigenvalue, most_in_sds, smallest_eigenvalue};
use conclave_common::model::Influence;

/// Predicted noise of an unweighted last stage, in posterior sds, up to which it is preferred: its interval is at most 12 % wider.
const SMALL: f64 = 0.5;
/// Ratio to the predicted noise, shift and bias of a weighted one up to which it is preferred.
const HARDLY_MORE: f64 = 1.1;
/// Parts of the limits of a weighted answer's checks of its information and of its width up to which predicted figures are likely to pass
/// them. The width has allowances beside the predicted noise.
const LIKELY: [f64; 2] = [0.85, 0.6];
/// Predicted noise of a plain answer of a count, in posterior sds of the parameter where it is largest, up to which it is likely to pass
/// the check of its width.
const MOST_PLAIN: f64 = 8.5;

impl Progress {
    /// Chooses the limits of the last stage by the information of the stage before.
    pub(super) fn choose(&mut self, facts: &Facts, seen: &BoundedStage, ahead: &Ahead<'_>) {
        let left = ahead.left;
        let unit = facts.noise_on_the_ball(left);
        let setting = match &facts.counts {
            Some(_) => Setting::choose_of_count(unit, facts.order, |clip| self.clip_bias(clip)),
            None => Setting::choose(unit, facts.order, facts.binary.then_some(self.probability)),
        };
        let frame = self.held(facts, self.frame.clone().scaled((facts.radius / setting.radius).sqrt()), setting.clip);
        let (plain, clip) = (self.plain_frame(facts), self.far_clip());
        let noise = |frame: &LearntFrame, clip, shift| {
            let of_coefficients = libm::hypot(predicted_noise(facts, seen, (frame, clip), left), shift);
            self.with_sigma(facts, of_coefficients, ahead)
        };
        let moved = libm::hypot(guessed_shift(facts, setting), self.clip_bias(setting.clip));
        let weighted = noise(&frame, setting.clip, moved);
        let located = Located { coefficients: &self.coefficients, covariance: covariance(seen), left };
        let elsewhere = (ahead.plain)(&located);
        // A binary outcome and a count have no unweighted last stage in this search.
        let here = if facts.is_curved() && elsewhere.is_some() { f64::INFINITY } else { noise(&plain, clip, 0.0) };
        self.plain_noise = elsewhere.map_or(here, |plain| plain.noise.min(here));
        let admitted = |noise: f64| facts.may_be_plain && noise <= SMALL.max(HARDLY_MORE * weighted);
        let is_preferred = |plain: PlainOutlook| match facts.counts {
            Some(_) if plain.widest > MOST_PLAIN => false,
            // An answer that is wide is worth more than none.
            Some(_) => admitted(plain.noise) || facts.may_be_plain && !self.is_likely(facts, seen, (&frame, setting), left),
            None => admitted(plain.noise),
        };
        self.hands_over = elsewhere.is_some_and(|plain| plain.adequate && plain.noise <= here && is_preferred(plain));
        (self.frame, self.limits) = if self.hands_over || admitted(here) {
            (plain, Some(Limits::Plain(clip)))
        } else {
            (frame, Some(Limits::Weighted(setting)))
        };
        self.located = Some(seen.clone());
        self.information_noise = self.limits.map_or(0.0, |limits| least_noise(facts, seen, (&self.frame, limits), left));
        self.phase = Phase::Last;
    }

    /// Returns whether a weighted last stage of a count with this frame and setting is likely to pass its checks.
    fn is_likely(&self, facts: &Facts, seen: &BoundedStage, (frame, setting): (&LearntFrame, Setting), left: f64) -> bool {
        let covariance = covariance(seen);
        let bias = self.clip_bias(setting.clip);
        let noise = score_sd(facts, setting.clip, left) * most_in_sds(&frame.moved_by_scores(&covariance), &covariance);
        let clear = seen.information.map_eigenvalues(|value| value.max(seen.eigenvalue_noise()));
        let rho = 2.0 * information_sd(facts, TRACE, left) * (facts.order as f64).sqrt()
            / smallest_eigenvalue(&frame.information_from(&seen.frame, &clear));
        bias <= Inference::MOST_CLIP_BIAS
            && libm::hypot(1.0, libm::hypot(noise, bias)) <= LIKELY[1] * Inference::MOST_WEIGHTED_WIDTH
            && rho <= LIKELY[0] * Inference::most_weighted_rho(true)
    }

    /// Returns the noise of all parameters by that of the coefficients, in posterior sds: with log sigma, if that is a parameter of the
    /// regression. Sums of squares take their part of the last stage.
    fn with_sigma(&self, facts: &Facts, of_coefficients: f64, ahead: &Ahead<'_>) -> f64 {
        if !facts.own || facts.is_curved() {
            return of_coefficients;
        }
        let (noise, _) = self.error_of_squares(facts, ahead.most_residual, ahead.left);
        let part = part_for_squares(noise, of_coefficients * (facts.order as f64).sqrt());
        let (noise, withheld) = self.error_of_squares(facts, ahead.most_residual, part * ahead.left);
        let of_sigma = libm::hypot(noise, withheld);
        let of_score = OF_SCORE / (1.0 - OF_INFORMATION - part);
        let squares = facts.order as f64 * of_coefficients * of_coefficients * of_score + of_sigma * of_sigma;
        (squares / (facts.order as f64 + 1.0)).sqrt()
    }

    /// Chooses an unweighted last stage of a count as soon as the releases prefer it, and returns whether they do: further stages and the
    /// tails would take of its budget. Until the tails are known, the table of outcomes shows by how much a clip may move the weighted one.
    pub(super) fn choose_plain(&mut self, facts: &Facts, seen: &BoundedStage, ahead: &Ahead<'_>) -> bool {
        let mut chosen = self.clone();
        chosen.choose(facts, seen, ahead);
        let is_plain = matches!(chosen.limits, Some(Limits::Plain(_)));
        if is_plain {
            *self = chosen;
        }
        is_plain
    }

    /// Returns the frame in which every record has weight 1; of a count, every ordinary one.
    fn plain_frame(&self, facts: &Facts) -> LearntFrame {
        if facts.counts.is_some() { self.count_frame(facts) } else { public_frame(facts, self.log_sigma) }
    }

    /// Returns the covariance of the distance between the search's point and the mean of the plain posterior of a count.
    pub(super) fn distance(&self, facts: &Facts) -> Option<Matrix> {
        let seen = self.located.as_ref()?;
        let fit = seen.fit(&facts.prior);
        let gap: Vec<f64> = fit.mean.iter().zip(&self.coefficients).map(|(mean, at)| mean - at).collect();
        let searched = Setting { clip: facts.search_clip(), radius: facts.radius };
        let moved = libm::hypot(guessed_shift(facts, searched), self.clip_bias(searched.clip));
        let noise = seen.frame.covariance(&fit.noise).plus(&covariance(seen), moved * moved);
        Some(noise.plus(&Matrix::outer(&gap, 1.0), 1.0).symmetrised())
    }

    /// Returns the covariance of the coefficients without noise by the search's last stage.
    pub(super) fn covariance(&self) -> Option<Matrix> {
        self.located.as_ref().map(covariance)
    }

    /// Returns the predicted noise of the last stage's coefficients, in posterior sds.
    pub(super) fn noise_of_last(&self, facts: &Facts, left: f64) -> f64 {
        let clip = self.limits.map_or(facts.search_clip(), |limits| limits.of_influence().0);
        self.located.as_ref().map_or(0.0, |seen| predicted_noise(facts, seen, (&self.frame, clip), left))
    }

    /// Returns the information of the last stage in its frame that the search's last stage leads to expect.
    pub(super) fn expected_information(&self) -> Option<Matrix> {
        let located = self.located.as_ref()?;
        let clear = located.information.map_eigenvalues(|value| value.max(located.eigenvalue_noise()));
        Some(self.frame.information_from(&located.frame, &clear))
    }
}

/// Returns the covariance of the coefficients by a stage's information, of which no eigenvalue is smaller than its noise.
fn covariance(stage: &BoundedStage) -> Matrix {
    stage.frame.covariance(&stage.information.map_eigenvalues(|value| value.max(stage.eigenvalue_noise()).recip()))
}

/// Returns the noise of a score in a frame with the remaining budget, in posterior sds: the root mean square over the coefficients, by
/// a stage's information.
fn predicted_noise(facts: &Facts, stage: &BoundedStage, (frame, clip): (&LearntFrame, f64), left: f64) -> f64 {
    let covariance = covariance(stage);
    score_sd(facts, clip, left) * in_sds(&frame.moved_by_scores(&covariance), &covariance)
}

/// Returns the sd of the noise of the last stage's score with a clip and the remaining budget.
fn score_sd(facts: &Facts, clip: f64, left: f64) -> f64 {
    2.0 * clip * facts.unit / (OF_SCORE * left).sqrt()
}

/// Returns the sd of the noise of an entry of the last stage's information, whose R is this, with the remaining budget.
fn information_sd(facts: &Facts, trace: f64, left: f64) -> f64 {
    let half_way = if facts.is_curved() { Influence::MOST_HALF_WAY } else { 1.0 };
    half_way * trace * facts.unit / (OF_INFORMATION * left).sqrt()
}

/// Returns by how many posterior sds a weighted answer differs from an unweighted one, as far as that can be guessed.
fn guessed_shift(facts: &Facts, setting: Setting) -> f64 {
    match facts.counts {
        Some(_) => setting.guessed_shift_of_count(facts.records, facts.own),
        None => setting.guessed_shift(facts.records, facts.binary),
    }
}

/// Returns the least noise of the last stage's information, relative to it in the least known direction, that a stage's information
/// admits by two sds of its own noise.
fn least_noise(facts: &Facts, seen: &BoundedStage, (frame, limits): (&LearntFrame, Limits), left: f64) -> f64 {
    let expected = frame.information_from(&seen.frame, &seen.information);
    let noise = frame.information_from(&seen.frame, &Matrix::identity(facts.order));
    let root_order = (facts.order as f64).sqrt();
    let own = largest_eigenvalue(&noise) * seen.information_sd * root_order;
    let sd = information_sd(facts, limits.of_influence().1, left);
    2.0 * sd * root_order / (smallest_eigenvalue(&expected) + 2.0 * own).max(f64::MIN_POSITIVE)
}
