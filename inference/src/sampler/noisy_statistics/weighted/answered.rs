//! The answer by a stage: the posterior of the coefficients and of log sigma, and what it is an answer to.

use super::bounded_stage::BoundedStage;
use super::dispersion_score::DispersionScore;
use super::plan::Facts;
use super::progress::Progress;
use super::queries::Counts;
use super::setting::{Lengths, Limits, Setting};
use super::squares::{LogSigma, Squares};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::answer::{Answer, Inference, Stage, Weighted};
use crate::sampler::noisy_statistics::gaussian::Fit;

/// The clip's effect on the intercept, in posterior sds, above which a run warns.
const LEAST_MOVED: f64 = 0.5;

/// Posterior sds by which heavy tails move the logarithm of a dispersion, for each by which they move the coefficients. Seen on real
/// data: 1 to 1.8.
pub(super) const BIAS_OF_DISPERSION: f64 = 1.8;

/// The answer by a stage.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    pub(super) stage: BoundedStage,
    pub(super) fit: Fit,
    limits: Limits,
    pub(super) lengths: Lengths,
    /// Number of records with a residual, and the sd of its noise.
    usable: (f64, f64),
    /// Mean square that the noise of the coefficients adds to the standardised residuals.
    added: f64,
    /// The dispersion of a count at the answer: its estimate, the last step, and its variance without noise.
    dispersion: Option<(LogSigma, f64, f64)>,
    /// The sums of squares so far.
    pub(super) squares: Vec<Squares>,
}

impl Answered {
    /// Returns the answer of a job that ends at a stage of its search. The lengths of its records are not known.
    pub(super) fn of_search(stage: BoundedStage, facts: &Facts) -> Self {
        let limits = Limits::Weighted(Setting { clip: facts.search_clip(), radius: facts.radius });
        Self::new(stage, limits, Lengths::of_normal(facts.order), (facts.records, 0.0), facts)
    }

    /// Returns the answer of the last stage and of the table beside it.
    pub(super) fn of_last(
        mut stage: BoundedStage,
        limits: Limits,
        beside: &Counts,
        (facts, progress): (&Facts, &Progress),
    ) -> Self {
        let usable = facts.usable(beside.unusable, beside.sd);
        let (clip, _) = limits.of_influence();
        stage.clip_bias = progress.clip_bias(clip);
        if let Some((table, scale)) = &progress.table {
            stage.inflation = table.inflation(clip, *scale);
            if let (Limits::Plain(_), true, Some(intercept)) = (limits, facts.has_intercept, stage.clipped.first_mut()) {
                // What the clip withholds on one side moves the intercept of a plain fit.
                *intercept = table.skew(clip, *scale) * libm::exp(progress.log_sigma);
            }
        }
        Self::new(stage, limits, Lengths::new(&beside.cells, beside.sd, usable.0), usable, facts)
    }

    fn new(stage: BoundedStage, limits: Limits, lengths: Lengths, usable: (f64, f64), facts: &Facts) -> Self {
        let fit = stage.fit(&facts.prior);
        let added = stage.added_squares(&fit) / usable.0;
        Self { fit, stage, limits, lengths, usable, added, dispersion: None, squares: Vec::new() }
    }

    /// Takes the sum of `min(e²/sigma², 2) - 1` at a point, with the sd of its noise. `most` is the largest residual within the declared
    /// bounds, in located sds.
    pub(super) fn take_squares(&mut self, theta: &[f64], (sum, sd): (f64, f64), most: f64, progress: &Progress) {
        let Some(sigma) = theta.last() else { return };
        let ((n, count_sd), located) = (self.usable, libm::exp(progress.log_sigma));
        // In units of the located variance.
        let unit = (sigma / located) * (sigma / located);
        let mean = unit * (sum / n + 1.0);
        // An error of the count moves the mean as if each record had none of its squares.
        let sd = libm::hypot(unit * sd, (unit - mean) * count_sd) / n;
        let clip = (2.0 * unit).sqrt();
        self.squares.push(Squares { clip, mean, sd, whole: clip * (1.0 + 1e-9) >= most });
    }

    /// Takes the score of a count's dispersion at the answer.
    pub(super) fn take_dispersion(&mut self, score: DispersionScore, facts: &Facts, progress: &Progress) {
        let Some(counts) = &facts.counts else { return };
        let (law, eta) = (counts.law(progress.log_sigma), progress.typical_predictor(counts));
        // The share of a typical variance beyond the mean.
        let part = 1.0 - law.information(eta) / libm::exp(eta);
        let estimate = score.estimate(self.added * self.usable.0, part, facts.order as f64);
        let moved = BIAS_OF_DISPERSION * self.stage.clip_bias;
        let of_log = LogSigma { mean: estimate.mean, variance: estimate.variance + moved * moved * score.alone() };
        self.dispersion = Some((of_log, estimate.step, score.alone()));
    }

    /// Returns log sigma: located, until all sums of squares are released.
    pub(super) fn log_sigma(&self, progress: &Progress) -> LogSigma {
        if let Some((dispersion, ..)) = self.dispersion {
            return dispersion;
        }
        let Some([near, far]) = Squares::bounds(&self.squares) else { return LogSigma::located(progress) };
        let records = self.usable.0;
        let unseen = progress.table.as_ref().map_or(f64::INFINITY, |(table, _)| table.unseen(far.clip, records));
        LogSigma::new([&near, &far], (self.added, records, self.stage.at.len() as f64), unseen).moved(progress.log_sigma)
    }

    /// Returns the covariance in the model's coordinates, with and without noise.
    fn covariances(&self, facts: &Facts, progress: &Progress) -> [Matrix; 2] {
        let own = facts
            .own
            .then(|| [self.log_sigma(progress).variance, self.dispersion.map_or(0.5 / self.usable.0, |(.., alone)| alone)]);
        let of = |matrix: &Matrix, at: usize| self.stage.frame.covariance(matrix).with_last(own.map(|own| own[at]));
        [of(&self.fit.covariance, 0), of(&self.fit.without_noise, 1)]
    }

    /// Returns the posterior up to the prior.
    pub(super) fn answer(&self, facts: &Facts, progress: &Progress) -> Answer<'_> {
        let [covariance, _] = self.covariances(facts, progress);
        let (order, own) = (facts.order, facts.own.then(|| self.log_sigma(progress)));
        let log_likelihood = self.stage.log_likelihood(&self.fit);
        let log = move |u: &[f64]| {
            let of_sigma = own.zip(u.get(order)).map_or(0.0, |(own, at)| -0.5 * (at - own.mean) * (at - own.mean) / own.variance);
            log_likelihood(&u[..order]) + of_sigma
        };
        let mean = self.fit.mean.iter().copied().chain(own.map(|own| own.mean)).collect();
        Answer { mean, covariance, log_likelihood: Box::new(log) }
    }

    /// Returns the report beside the draws.
    pub(super) fn inference(&self, stages: Vec<Stage>, facts: &Facts, progress: &Progress) -> Inference {
        let [with, without] = self.covariances(facts, progress).map(|covariance| covariance.diagonal_entries());
        let shares = with.iter().zip(&facts.prior.precision).take(facts.order).map(|(v, p)| v * p);
        let mut inference = Inference::new(stages, &with, &without, self.fit.definite).with_weighted_checks(
            self.stage.information_noise(),
            shares.fold(0.0, f64::max),
            facts.own.then(|| self.log_sigma(progress).variance.sqrt()),
            self.stage.cubic(&self.fit),
        );
        if let Some((_, step, _)) = self.dispersion {
            inference = inference.with_dispersion_check(step.abs());
        }
        let Limits::Weighted(setting) = self.limits else { return inference };
        if progress.tails.is_some() {
            inference = inference.with_tails_check(self.stage.clip_bias, setting.clip);
        }
        let whole: f64 = self.stage.information.diagonal_entries().iter().sum();
        let sums = self.stage.squared_slopes.map(|squares| (whole, squares));
        let (share_cut, mean_weight, shift) = self.lengths.summary(setting, self.usable.0, sums);
        let Setting { radius, clip } = setting;
        let (matrix, sigma) = (self.stage.frame.matrix(), facts.own.then(|| libm::exp(progress.log_sigma)));
        let row = |i: usize| (0..facts.order).map(|j| matrix[(i, j)]).collect();
        let weighted = Weighted {
            radius,
            clip: Some(clip),
            share_cut,
            mean_weight,
            shift,
            clip_bias: progress.tails.is_some().then_some(self.stage.clip_bias),
            plain_noise: progress.plain_noise,
            frame: (0..facts.order).map(row).collect(),
            at: self.stage.at.iter().copied().chain(sigma).collect(),
            trace: self.limits.of_influence().1,
            binary: facts.binary,
        };
        inference.warnings.push(weighted.words());
        inference.weighted = Some(weighted);
        let moved = progress.table.as_ref().map_or(0.0, |(table, scale)| table.skew(clip, *scale) * self.usable.0.sqrt());
        if moved > LEAST_MOVED {
            inference.warnings.push(format!(
                "the residuals are skewed: the limit of {clip} sds on a residual moves the intercept by about {moved:.1} posterior sds against \
                 an unweighted fit"
            ));
        }
        inference
    }
}
