//! A Gaussian release covers a composition if its curve, after a reserve of delta, lies above the composition's curve everywhere.
//!
//! A cover `(mu, delta')` must satisfy, for every `epsilon >= 0` and each order of the neighbours,
//!
//! `D(epsilon) <= delta' + (1 - delta') G(epsilon; mu)`,
//!
//! with `G` from [`super::gaussian_dp::delta`]. The composition is then a post-processing of a mechanism that reveals everything
//! with probability `delta'` and is a Gaussian release of `mu` otherwise (Blackwell). It counts as that mechanism in any adaptive
//! composition. Both orders at `epsilon >= 0` are equivalent to one order at all real `epsilon`, since `D(gamma) = 1 - gamma +
//! gamma D'(1 / gamma)`.

use super::dominating_pair::ROUNDING;
use super::loss_grid::LossGrid;
use super::normal::cdf;

/// The largest loss for which a cover is sought. If a curve exceeds the reserve beyond it, e^epsilon and the tails would leave a
/// float's range. Only test budgets reach this far.
const MOST_LOSS: f64 = 600.0;

/// A segment of a curve between two adjacent losses, linear in `gamma`.
#[derive(Debug, Clone, Copy)]
struct Chord {
    /// The loss at the midpoint.
    middle: f64,
    /// `e^(h/2)` for losses `h` apart.
    half: f64,
    /// The curve at the lower loss.
    low: f64,
    /// The curve at the upper loss.
    high: f64,
}

/// The curves to cover, and the reserve.
#[derive(Debug, Clone)]
pub(super) struct GaussianCover {
    chords: Vec<Chord>,
    reserve: f64,
    coverable: bool,
}

impl GaussianCover {
    /// Prepares the curves of all orders that an adjacency requires, with a reserve `delta'` strictly between 0 and 1.
    pub(super) fn new(grids: &[LossGrid], reserve: f64) -> Self {
        let mut chords = Vec::new();
        let mut coverable = true;
        for grid in grids {
            let mut curve = grid.curve();
            // Beyond the last loss the curve is flat.
            let end = grid.infinite() * (1.0 + ROUNDING);
            curve.push(end);
            let half = libm::exp(0.5 * grid.step());
            let above = |(i, pair): (usize, &[f64])| {
                (pair[0] > reserve).then(|| Chord { middle: (i as f64 + 0.5) * grid.step(), half, low: pair[0], high: pair[1] })
            };
            let own: Vec<Chord> = curve.windows(2).enumerate().filter_map(above).collect();
            coverable &= end <= reserve && own.last().is_none_or(|chord| chord.middle <= MOST_LOSS);
            chords.extend(own);
        }
        // Chords at large losses are the last to be covered, so testing them first rejects most values of mu early.
        chords.reverse();
        Self { chords, reserve, coverable }
    }

    /// Returns whether a Gaussian release of `mu > 0` covers the curves.
    ///
    /// The Gaussian's curve is convex in `gamma`, so it lies above its tangent at a chord's midpoint. A chord lies below the
    /// tangent if both of its ends do. At the ends the tangent is `delta' + (1 - delta') (A - e^(-+h/2) B)`, where `A =
    /// Phi(-epsilon/mu + mu/2)` and `B = e^epsilon Phi(-epsilon/mu - mu/2)` are the two terms of the Gaussian's curve.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 3.
    pub(super) fn covered_by(&self, mu: f64) -> bool {
        self.coverable && self.chords.iter().all(|chord| self.is_below(chord, mu))
    }

    fn is_below(&self, chord: &Chord, mu: f64) -> bool {
        let far = chord.middle / mu + 0.5 * mu;
        let first = cdf(mu - far);
        let second = libm::exp(chord.middle) * cdf(-far);
        // The relative errors of the tails, as for a pair's masses. The absolute 1e-300 covers the coarser rounding of tiny
        // floats.
        let error = ROUNDING * (1.0 + far) * (1.0 + far) * (first + second) + 1e-300;
        let tangent = |moved: f64| self.reserve + (1.0 - self.reserve) * (first - second * moved - error) * (1.0 - ROUNDING);
        chord.low <= tangent(1.0 / chord.half) && chord.high <= tangent(chord.half)
    }
}
