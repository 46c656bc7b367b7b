//! The residual of a count in its own sds.

use super::counts::Counts;
use super::slope_table::SlopeTable;
use super::slopes::Standardised;
use crate::elementary::exp;

/// Returns a count's residual in its own sds, within `clip` and not centred, and the root of its information about the linear predictor,
/// which counts as at most [`SlopeTable::FARTHEST`] in magnitude. The dispersion is 0 for a Poisson law.
#[inline(always)]
pub(super) fn standardised(counts: Counts, [y, eta]: [f64; 2], dispersion: f64, clip: f64) -> Standardised {
    let mean = exp(eta.clamp(-SlopeTable::FARTHEST, SlopeTable::FARTHEST) + 0.0 * eta);
    let widened = 1.0 + dispersion * mean;
    let residual = (counts.of(y) - mean) / (mean * widened).sqrt();
    Standardised { root: (mean / widened).sqrt(), residual: residual.clamp(-clip, clip), slope: f64::NAN }
}
