//! A Gaussian release covers a composition when its curve, after a reserve of delta, lies above the composition's everywhere.
//!
//! What is asked of `(mu, delta')` is, for every `epsilon >= 0` and each order of the neighbours,
//!
//! `D(epsilon) <= delta' + (1 - delta') G(epsilon; mu)`,
//!
//! with `G` of [`super::gaussian_dp::delta`]. Then a release of the composition is a function of one that shows everything with probability
//! `delta'` and is Gaussian with `mu` else (Blackwell), and counts as such in any adaptive composition. Both orders at `epsilon >= 0` are one
//! order at all real `epsilon`, as either side follows from the other by `D(gamma) = 1 - gamma + gamma D'(1 / gamma)`.

use super::dominating_pair::ROUNDING;
use super::loss_grid::LossGrid;
use super::normal::cdf;

/// Where a curve still is above the reserve at a loss beyond this, no covering is looked for: e^epsilon and the tails would leave a float's
/// range, and no ledger's budget goes so far but in tests.
const MOST_LOSS: f64 = 600.0;

/// A stretch of a curve between two neighbouring losses, on which it is linear in `gamma`.
#[derive(Debug, Clone, Copy)]
struct Chord {
    /// The loss in the middle.
    middle: f64,
    /// `e^(h/2)` for losses `h` apart.
    half: f64,
    /// The curve at the lower loss.
    low: f64,
    /// The curve at the upper one.
    high: f64,
}

/// The curves that are to be covered, and the reserve.
#[derive(Debug, Clone)]
pub(super) struct GaussianCover {
    chords: Vec<Chord>,
    reserve: f64,
    coverable: bool,
}

impl GaussianCover {
    /// Curves of all orders that an adjacency asks for, and a reserve `delta'`, above 0 and below 1.
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
        // What is far out is the last to be covered, so that most of what is not covered is seen at once.
        chords.reverse();
        Self { chords, reserve, coverable }
    }

    /// Whether a Gaussian release of `mu > 0` covers the curves.
    ///
    /// The Gaussian's curve is convex in `gamma`, so it lies above its tangent in a chord's middle, and the chord lies below the tangent where
    /// both its ends do: there the tangent is `delta' + (1 - delta') (A - e^(-+h/2) B)`, where `A` and `B` are the two terms of the curve,
    /// `Phi(-epsilon/mu + mu/2)` and `e^epsilon Phi(-epsilon/mu - mu/2)`.
    pub(super) fn covered_by(&self, mu: f64) -> bool {
        self.coverable && self.chords.iter().all(|chord| self.is_below(chord, mu))
    }

    fn is_below(&self, chord: &Chord, mu: f64) -> bool {
        let far = chord.middle / mu + 0.5 * mu;
        let first = cdf(mu - far);
        let second = libm::exp(chord.middle) * cdf(-far);
        // The tails' relative errors, as in a pair's masses; and below 1e-300 a float's relative error is not what it is above.
        let error = ROUNDING * (1.0 + far) * (1.0 + far) * (first + second) + 1e-300;
        let tangent = |moved: f64| self.reserve + (1.0 - self.reserve) * (first - second * moved - error) * (1.0 - ROUNDING);
        chord.low <= tangent(1.0 / chord.half) && chord.high <= tangent(chord.half)
    }
}
