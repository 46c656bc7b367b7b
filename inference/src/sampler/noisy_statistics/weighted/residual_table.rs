//! The released table of standardised residuals, by which their scale, their tails and their skewness are known.

/// Number of positive edges.
const EDGES: usize = 15;
/// The least positive edge.
const LEAST: f64 = 0.25;
/// The share of a normal law within one sd.
const WITHIN_ONE: f64 = 0.683;
/// Sds of a count's noise below which a cell counts as empty where a sum is biased by it.
const EMPTY: f64 = 1.5;
/// Sds of a count's noise above which a cell holds records.
const HELD: f64 = 3.5;
/// Sds of a sum's noise above which it counts some records.
const SOME: f64 = 2.0;
/// Range of the ratio by which a table may change the scale.
const SCALES: (f64, f64) = (0.3, 3.0);
/// Least clip of the sum of squares, in sds.
pub(super) const LEAST_FAR: f64 = 4.0;
/// Greatest one.
const MOST_FAR: f64 = 40.0;
/// Least clip where the tails are heavy.
const HEAVY_FAR: f64 = 8.0;
/// They are where the share beyond this many sds is larger than a normal law's.
const HEAVY: (f64, f64) = (2.8, 0.0051);
/// Largest factor on the variance of the score.
const MOST_INFLATION: f64 = 2.0;

/// Counts of residuals by sign and magnitude, summed over the parties.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResidualTable {
    /// Cells of the negative residuals, from the smallest magnitude.
    negative: Vec<f64>,
    /// Cells of the others.
    positive: Vec<f64>,
    /// Sd of a count's noise.
    sd: f64,
}

fn edge(k: usize) -> f64 {
    LEAST * libm::pow(2.0, 0.5 * k as f64)
}

impl ResidualTable {
    /// Returns the edges of its cells: 0, and `±0.25 · 2^(k/2)`.
    pub(super) fn edges() -> Vec<f64> {
        let negative = (0..EDGES).rev().map(|k| -edge(k));
        negative.chain([0.0]).chain((0..EDGES).map(edge)).collect()
    }

    /// Reads it from the counts between those edges.
    pub(super) fn new(counts: &[f64], sd: f64) -> Self {
        let (negative, positive) = counts.split_at(EDGES + 1);
        Self {
            negative: negative.iter().rev().copied().collect(),
            positive: positive.iter().take(EDGES + 1).copied().collect(),
            sd,
        }
    }

    /// Returns the counts by magnitude, those below `least` sds of their noise as 0.
    fn magnitudes(&self, least: f64) -> Vec<f64> {
        let limit = least * self.sd * std::f64::consts::SQRT_2;
        self.negative
            .iter()
            .zip(&self.positive)
            .map(|(a, b)| a + b)
            .map(|count| if count > limit { count } else { 0.0 })
            .collect()
    }

    /// Returns the range of the magnitudes in a cell.
    fn range(k: usize) -> (f64, f64) {
        (if k == 0 { 0.0 } else { edge(k - 1) }, if k < EDGES { edge(k) } else { f64::INFINITY })
    }

    /// Returns a magnitude that stands for a cell.
    fn middle(k: usize) -> f64 {
        let (low, high) = Self::range(k);
        (low.max(0.1) * high.min(1.4 * edge(EDGES - 1))).sqrt()
    }

    /// Returns the scale of the residuals in units of the assumed one: the magnitude that [`WITHIN_ONE`] of them do not exceed.
    pub(super) fn scale(&self) -> f64 {
        let counts = self.magnitudes(1.0);
        let all: f64 = counts.iter().sum::<f64>().max(1.0);
        let (mut below, mut from) = (0.0, 0.0);
        for (k, count) in counts.iter().enumerate() {
            let to = if k < EDGES { edge(k) } else { 1.4 * edge(EDGES - 1) };
            let share = below + count / all;
            if share >= WITHIN_ONE {
                let part = (WITHIN_ONE - below) / (share - below);
                return (from + part * (to - from)).clamp(SCALES.0, SCALES.1);
            }
            (below, from) = (share, to);
        }
        SCALES.1
    }

    /// Returns the mean of `min(r², c²)` over the share of `|r| < c`, for residuals `r` in units of `scale` assumed ones: at least
    /// 1. It is 1 or less under a normal law.
    pub(super) fn inflation(&self, clip: f64, scale: f64) -> f64 {
        let (mut squares, mut within) = (0.0, 0.0);
        for (k, count) in self.magnitudes(EMPTY).into_iter().enumerate() {
            let (low, high) = Self::range(k);
            let (low, high, middle) = (low / scale, high / scale, Self::middle(k) / scale);
            squares += count * middle.min(clip) * middle.min(clip);
            within += count * ((clip - low) / (high.min(1e3) - low)).clamp(0.0, 1.0);
        }
        (squares / within.max(1.0)).clamp(1.0, MOST_INFLATION)
    }

    /// Returns the clip of the sum of squares, in sds: where no cell beyond holds residuals; farther out where the tails are heavy; and
    /// twice that where there are residuals beyond the least clip.
    pub(super) fn far(&self, scale: f64) -> f64 {
        let held = self.magnitudes(HELD).iter().rposition(|count| *count > 0.0);
        let least = if self.holds_beyond(HEAVY, scale) { HEAVY_FAR } else { LEAST_FAR };
        let far = held.map_or(least, |k| edge(k.min(EDGES - 1)) / scale).max(least);
        let twice = if self.holds_beyond((LEAST_FAR, 0.0), scale) { 2.0 * far } else { far };
        twice.min(MOST_FAR)
    }

    /// Returns true if more than this share of the residuals lies beyond this many sds, by more than the noise.
    fn holds_beyond(&self, (sds, share): (f64, f64), scale: f64) -> bool {
        let all: f64 = self.magnitudes(1.0).iter().sum::<f64>().max(1.0);
        let beyond = (0..=EDGES).filter(|k| Self::range(*k).0 >= sds * scale);
        let (count, cells) = beyond.fold((0.0, 0.0), |(sum, n), k| (sum + self.negative[k] + self.positive[k], n + 2.0));
        count - share * all > SOME * self.sd * f64::sqrt(cells)
    }

    /// Returns the greatest mean square, less that of the clip, of residuals beyond a clip that the counts leave room for, among this
    /// many records.
    pub(super) fn unseen(&self, clip: f64, records: f64) -> f64 {
        SOME * self.sd * (2.0 * (EDGES + 1) as f64).sqrt() * clip * clip / records
    }

    /// Returns how far the clip moves the intercept where residuals are skewed, in sds of a residual: 0 where the counts do not show it.
    pub(super) fn skew(&self, clip: f64, scale: f64) -> f64 {
        /// Sds of its noise above which the difference of the signs is seen.
        const SEEN: f64 = 2.5;
        let all: f64 = self.magnitudes(1.0).iter().sum::<f64>().max(1.0);
        // Nothing lies beyond; there a count of noise alone would weigh most.
        let far = self.far(scale);
        let (mut moved, mut variance) = (0.0, 0.0);
        for (k, (plus, minus)) in self.positive.iter().zip(&self.negative).enumerate() {
            let beyond = if Self::range(k).0 / scale < far { (Self::middle(k) / scale - clip).max(0.0) } else { 0.0 };
            moved += beyond * (plus - minus);
            variance += 2.0 * beyond * beyond * self.sd * self.sd;
        }
        if f64::abs(moved) > SEEN * f64::sqrt(variance) { f64::abs(moved) / all } else { 0.0 }
    }
}

#[cfg(test)]
#[path = "../tests/residual_table.rs"]
mod tests;
