//! The radius and the clip of the last stage, and the noise that they leave.

use super::binary::kappa;
use crate::sampler::noisy_statistics::answer::Inference;

/// Points of the grid on which the law of squared lengths is summed.
const POINTS: usize = 2000;
/// Predicted noise, in posterior sds, up to which the wider setting is used.
const WIDE_UP_TO: f64 = 0.75;
/// Part of the remaining budget that the score of the last stage has, about.
pub(super) const OF_SCORE: f64 = 0.78;
/// The part that its information has.
pub(super) const OF_INFORMATION: f64 = 0.12;
/// Part of a locating stage, and of the last one, for the dispersion of a count.
pub(super) const OF_DISPERSION: f64 = 0.12;
/// Shift of an answer, per root of the number of records and of the mean of `(1 - w)² q`. Seen on real data: .004 to .18.
/// A binary outcome's clip weights records by kappa beside; the squared coefficient of variation of kappa is added to that mean.
const SHIFT: f64 = 0.035;

/// Bounds of the part of a last stage for the sums of squares.
const OF_SQUARES: (f64, f64) = (0.1, 0.3);

/// R of the last stages.
pub(super) const TRACE: f64 = 1.5;
/// R in the public frame, where every record has weight 1.
pub(super) const PLAIN_TRACE: f64 = 1.0;

/// Returns the part of a last stage for the sums of squares by which the mean squared error is least: of log sigma and of all coefficients,
/// each with the whole of it.
pub(super) fn part_for_squares(of_sigma: f64, of_coefficients: f64) -> f64 {
    (of_sigma / (of_sigma + of_coefficients)).clamp(OF_SQUARES.0, OF_SQUARES.1)
}

/// The limits of the last stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limits {
    /// Every record has weight 1, and its residual this clip, beyond which none is seen. A binary outcome has no clip.
    Plain(f64),
    /// Records count less by a setting.
    Weighted(Setting),
}

impl Limits {
    /// Returns c and R.
    pub(super) fn of_influence(self) -> (f64, f64) {
        match self {
            Self::Plain(clip) => (clip, PLAIN_TRACE),
            Self::Weighted(setting) => (setting.clip, TRACE),
        }
    }
}

/// The limits of a record's influence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    /// c: the largest standardised residual.
    pub(super) clip: f64,
    /// The squared radius of the ball, in mean squared lengths of a record per predictor.
    pub(super) radius: f64,
}

/// Little noise is added for records far out.
const WIDE: Setting = Setting { clip: 3.0, radius: 3.0 };
/// An ordinary record lies near the ball's surface.
const NARROW: Setting = Setting { clip: 2.0, radius: 1.5 };
/// The same for a binary outcome.
const NARROW_BINARY: Setting = Setting { clip: 1.6, radius: 1.5 };

/// The settings of a count, whose tails reach farther.
const WIDE_COUNTS: Setting = Setting { clip: 6.0, radius: 3.0 };
const NARROW_COUNTS: Setting = Setting { clip: 3.0, radius: 1.5 };
/// Wider clips of a count with heavy tails.
const CLIPS_OF_COUNTS: [f64; 3] = [6.0, 12.0, 24.0];

impl Setting {
    /// Chooses the setting of a count likewise, or one with a wider clip if that has a smaller error: the root of the squared noise and
    /// of the squared bias, in posterior sds, by which a clip moves the answer. A clip whose bias makes the answer not adequate is the last choice.
    pub(super) fn choose_of_count(unit: f64, order: usize, bias: impl Fn(f64) -> f64) -> Self {
        let first = if WIDE_COUNTS.noise(unit, order, None) <= WIDE_UP_TO { WIDE_COUNTS } else { NARROW_COUNTS };
        let error = |setting: &Self| libm::hypot(setting.noise(unit, order, None), bias(setting.clip));
        let radii = [NARROW_COUNTS.radius, WIDE_COUNTS.radius];
        let wider = CLIPS_OF_COUNTS.into_iter().filter(|clip| *clip > first.clip);
        let settings = wider.flat_map(|clip| radii.map(|radius| Self { clip, radius }));
        let is_biased = |setting: &Self| bias(setting.clip) > Inference::MOST_CLIP_BIAS;
        let order = |a: &Self, b: &Self| is_biased(a).cmp(&is_biased(b)).then(error(a).total_cmp(&error(b)));
        std::iter::once(first).chain(settings).min_by(order).unwrap_or(first)
    }

    /// Chooses the wider setting where its noise is small enough. `unit` is the noise, in posterior sds, of a score whose records all
    /// lie on the ball; `probability` is that of a typical record's rarer outcome, if the outcome is binary.
    pub(super) fn choose(unit: f64, order: usize, probability: Option<f64>) -> Self {
        let narrow = if probability.is_some() { NARROW_BINARY } else { NARROW };
        if WIDE.noise(unit, order, probability) <= WIDE_UP_TO { WIDE } else { narrow }
    }

    /// Returns the noise of an answer in posterior sds, for normal predictors, and normal residuals or typical outcomes.
    pub(super) fn noise(self, unit: f64, order: usize, probability: Option<f64>) -> f64 {
        let normal = || libm::erf(self.clip / std::f64::consts::SQRT_2);
        let within = probability.map_or_else(normal, |probability| kappa(self.clip, probability));
        let kept = mean_over_lengths(order, |q| q * self.weight(q));
        unit * (self.radius / OF_SCORE).sqrt() * self.clip / (within * kept)
    }

    /// Returns by how many posterior sds a weighted answer differs from an unweighted one where the model does not hold, as far as that can
    /// be guessed before the lengths are released. The clip of a binary outcome is a weight too.
    pub(super) fn guessed_shift(self, records: f64, binary: bool) -> f64 {
        /// Per root of the number of records. Seen on real data: .003 to .06.
        const GUESS: f64 = 0.005;
        let of_clip = if binary { 0.5 / (self.clip * self.clip) } else { 0.0 };
        GUESS * (records * (self.radius.recip() + of_clip)).sqrt()
    }

    /// Returns the same of a count. Its mean rises exponentially, so unusual predictors matter more where the model does not hold; so does
    /// the limit on residuals where a dispersion does not describe their scatter.
    pub(super) fn guessed_shift_of_count(self, records: f64, has_dispersion: bool) -> f64 {
        /// Per root of the number of records, without and with a dispersion. Seen on real data: 0 to .05.
        const GUESS: [f64; 2] = [0.01, 0.02];
        GUESS[usize::from(has_dispersion)] * (records / self.radius).sqrt()
    }

    /// Returns the weight of a record whose squared length is `q` times the mean one.
    pub(super) fn weight(self, q: f64) -> f64 {
        1.0_f64.min((self.radius / q).sqrt()).min(TRACE * self.radius / q)
    }
}

/// Returns the mean of a function of `q = chi²_d / d`.
fn mean_over_lengths(order: usize, of: impl Fn(f64) -> f64) -> f64 {
    let half = 0.5 * order as f64;
    // Up to 12 sds above the mean.
    let most = 1.0 + 12.0 * half.sqrt().recip();
    let (mut sum, mut all) = (0.0, 0.0);
    for point in 0..POINTS {
        let q = most * (point as f64 + 0.5) / POINTS as f64;
        let density = libm::exp((half - 1.0) * libm::log(q) - half * (q - 1.0));
        (sum, all) = (sum + density * of(q), all + density);
    }
    sum / all
}

/// The released table of squared lengths: the shares of records by `q`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lengths(Vec<f64>);

/// Edges of the table of squared lengths, in mean ones.
const LENGTHS: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0];
/// The squared lengths that stand for its cells.
const MIDDLES: [f64; 9] = [0.6, 1.25, 1.75, 2.5, 3.9, 6.2, 9.6, 15.0, 28.0];

impl Lengths {
    /// Returns the edges of its cells, in units of the ball.
    pub(super) fn edges(setting: Setting) -> Vec<f64> {
        LENGTHS.iter().map(|edge| edge / setting.radius).collect()
    }

    /// Reads it from counts with noise of this sd among a number of records.
    pub(super) fn new(counts: &[f64], sd: f64, records: f64) -> Self {
        Self(counts.iter().take(MIDDLES.len()).map(|count| if *count > sd { count / records } else { 0.0 }).collect())
    }

    /// Returns the shares of normal predictors.
    pub(super) fn of_normal(order: usize) -> Self {
        let within = |k: usize| LENGTHS.get(k).copied().unwrap_or(f64::INFINITY);
        let share = |k: usize| {
            let low = if k == 0 { 0.0 } else { within(k - 1) };
            mean_over_lengths(order, |q| f64::from(u8::from(low <= q && q < within(k))))
        };
        Self((0..MIDDLES.len()).map(share).collect())
    }

    /// Returns the share of the records with a weight below 1, the mean weight, and by how many posterior sds an unweighted answer
    /// typically differs. `sums` are those of `w kappa |v|²` and of `w kappa² |v|²` of a binary outcome.
    pub(super) fn summary(&self, setting: Setting, records: f64, sums: Option<(f64, f64)>) -> (f64, f64, f64) {
        let all: f64 = self.0.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let mean = |of: &dyn Fn(f64) -> f64| self.0.iter().zip(MIDDLES).map(|(share, q)| share / all * of(q)).sum::<f64>();
        let less = |q: f64| 1.0 - setting.weight(q);
        let length = mean(&|q| q);
        // Over the sum of `w |v|²`, which the lengths give.
        let whole = records * mean(&|q| setting.weight(q) * q) / setting.radius;
        let spread = sums.map_or(0.0, |(once, twice)| (whole * twice / (once * once) - 1.0).max(0.0));
        let shift = SHIFT * (records * (mean(&|q| less(q) * less(q) * q / length) + spread)).sqrt();
        (mean(&|q| f64::from(u8::from(less(q) > 0.0))), mean(&|q| setting.weight(q)), shift)
    }
}

#[cfg(test)]
#[path = "../tests/setting.rs"]
mod tests;
