//! A public table over the linear predictor of a count's outcome: the expectation of its clipped residual, and kappa.
//!
//! The coordinator sums both over the model's law at the query's point and states them in the query, so that no density is summed
//! beside records. A party checks their bounds alone: a wrong table costs accuracy, never privacy.

use crate::parameter::LEAST_MAGNITUDE;

/// The expected residual `a` and the slope `kappa` at equal distances of the linear predictor. Between two nodes they are
/// interpolated linearly; beyond the ends, the linear predictor counts as the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlopeTable<'a> {
    low: f64,
    high: f64,
    /// Nodes per unit of the linear predictor.
    density: f64,
    centres: &'a [f64],
    slopes: &'a [f64],
}

impl<'a> SlopeTable<'a> {
    /// The number of nodes.
    pub const NODES: usize = 256;
    /// The number of values that encode a table: the ends, the centres and the slopes.
    pub const LENGTH: usize = 2 + 2 * Self::NODES;
    /// The largest magnitude of an end.
    pub const FARTHEST: f64 = 30.0;
    /// The least distance of the two ends.
    pub const LEAST_WIDTH: f64 = 1e-3;

    /// Reads a table of a residual with a clip. Returns `None` unless the number of values fits, the ends ascend within
    /// [`SlopeTable::FARTHEST`], no centre exceeds the clip, slopes lie in [0, 1], and no value but 0 is so small that products of it
    /// could be subnormal.
    #[must_use]
    pub fn new(numbers: &'a [f64], clip: f64) -> Option<Self> {
        if numbers.len() != Self::LENGTH {
            return None;
        }
        let (ends, rest) = numbers.split_at(2);
        let (centres, slopes) = rest.split_at(Self::NODES);
        let (low, high) = (*ends.first()?, *ends.last()?);
        let normal = |x: f64| x == 0.0 || x.abs() >= LEAST_MAGNITUDE;
        let fits = low >= -Self::FARTHEST
            && high <= Self::FARTHEST
            && high - low >= Self::LEAST_WIDTH
            && centres.iter().all(|a| a.abs() <= clip && normal(*a))
            && slopes.iter().all(|kappa| (0.0..=1.0).contains(kappa) && normal(*kappa));
        let density = (Self::NODES - 1) as f64 / (high - low);
        fits.then_some(Self { low, high, density, centres, slopes })
    }

    /// Returns the largest magnitude of a centre.
    #[must_use]
    pub fn most_centre(&self) -> f64 {
        self.centres.iter().fold(0.0, |most, a| a.abs().max(most))
    }

    /// Returns the table as a kernel holds it.
    pub(super) fn held(&self) -> HeldTable {
        let nodes = self.centres.iter().zip(self.slopes).map(|(a, kappa)| [*a, *kappa]).collect();
        HeldTable { low: self.low, high: self.high, density: self.density, nodes }
    }
}

/// A table in a kernel.
#[derive(Debug, Clone)]
pub(super) struct HeldTable {
    low: f64,
    high: f64,
    density: f64,
    /// The centre and the slope of each node.
    nodes: Vec<[f64; 2]>,
}

impl HeldTable {
    /// Returns the linear predictor within the ends; not-a-number for one that is not finite.
    #[inline(always)]
    pub(super) fn within(&self, eta: f64) -> f64 {
        eta.clamp(self.low, self.high) + 0.0 * eta
    }

    /// Returns the centre and the slope at a linear predictor within the ends; not-a-number for not-a-number.
    #[inline(always)]
    pub(super) fn at(&self, eta: f64) -> [f64; 2] {
        let place = (eta - self.low) * self.density;
        let node = (place as usize).min(SlopeTable::NODES - 2);
        let part = (place - node as f64).min(1.0) + 0.0 * eta;
        let (from, to) = (self.nodes[node], self.nodes[node + 1]);
        [from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1])]
    }
}
