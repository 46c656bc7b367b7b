//! The clips of the sums of squared residuals.
//!
//! One sum that clips no residual is the only one, if its predicted error is the least. Otherwise two sums with a fifth of the budget show how
//! heavy the tails are, which no table does at this noise; the last one has the clip at which its noise and what it withholds are least.

use super::plan::Facts;
use super::progress::Progress;
use super::squares::{SUMS, Squares, Withheld};

/// Parts of the budget of the sums for each.
const PARTS: [f64; SUMS] = [0.06, 0.14, LAST];
const LAST: f64 = 0.8;
/// Error of log sigma by the residuals beyond the least clip, in posterior sds, per root of the number of records: a guess before any sum
/// is released. Seen on real data: 0 to .04.
const WITHHELD: f64 = 0.02;
/// Ratio of the clips that are tried: what lies between nearer ones has too much noise to show what lies beyond.
const WIDER: f64 = 2.0;

impl Progress {
    /// Returns the clip of the next sum of squares, in located sds, and its part of the `left` that is left for them. `most` is the largest
    /// residual within the declared bounds, and `sums` are the sums so far.
    pub(super) fn next_squares(&self, facts: &Facts, sums: &[Squares], (most, left): (f64, f64)) -> (f64, f64) {
        let far = self.far_clip().min(most);
        let part = PARTS.get(sums.len()).map_or(1.0, |part| part / PARTS[sums.len()..].iter().sum::<f64>());
        let guess = WITHHELD * facts.records.sqrt();
        match sums {
            [] if self.squares_clip(facts, (most, guess), left) >= most => (most, 1.0),
            [] => (0.5 * far, part),
            [near, middle, ..] => {
                // A relative mean square moves log sigma by half of it, and half of that is allowed for.
                let sds = |square: f64| 0.25 * square / middle.mean.max(square) * (2.0 * facts.records).sqrt();
                let Withheld { excess, noise } = Withheld::new(near, middle);
                let (seen, noise) = (sds(excess), sds(noise));
                // The guess is as uncertain as it is large.
                let part_seen = guess * guess / (guess * guess + noise * noise);
                let withheld = part_seen * seen + (1.0 - part_seen) * guess;
                (self.squares_clip(facts, (most, withheld), left), part)
            }
            [_] => (far, part),
        }
    }

    /// Returns the error of log sigma with a share of the budget, in posterior sds, before the sums: its noise, and what is withheld.
    pub(super) fn error_of_squares(&self, facts: &Facts, most: f64, share: f64) -> (f64, f64) {
        let guess = WITHHELD * facts.records.sqrt();
        let clip = self.squares_clip(facts, (most, guess), share);
        let share = if clip >= most { share } else { LAST * share };
        (facts.noise_of_squares(clip, share), self.withheld(clip, (most, guess)))
    }

    /// Returns the clip with the least error, if the least clip withholds this much, in posterior sds.
    fn squares_clip(&self, facts: &Facts, (most, withheld): (f64, f64), share: f64) -> f64 {
        let far = self.far_clip().min(most);
        let tried = (0..).map(|k| far * libm::pow(WIDER, f64::from(k))).take_while(|clip| *clip < most).chain([most]);
        let error = |clip: f64| libm::hypot(facts.noise_of_squares(clip, share), self.withheld(clip, (most, withheld)));
        tried.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(most)
    }

    /// Returns what a clip withholds, if the least one withholds this much. That falls as the clip, if the share of the residuals beyond
    /// falls with its third power.
    fn withheld(&self, clip: f64, (most, at_least_clip): (f64, f64)) -> f64 {
        if clip >= most { 0.0 } else { at_least_clip * self.far_clip() / clip }
    }
}

#[cfg(test)]
#[path = "../tests/squares_clip.rs"]
mod tests;
