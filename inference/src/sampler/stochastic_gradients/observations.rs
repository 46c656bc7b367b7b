//! What all chains of a run were told beside what moved them: for its diagnostics, and for the surrogate.

use super::settings::Settings;
use super::walker::Walker;
use crate::sampler::hmc::{Coordinates, Kicked, Watch};
use crate::sampler::quadratic_fit::{FittedPosterior, QuadraticFit, Slope};
use crate::sampler::target::Target;
use conclave_common::query::Phase;

/// The record of a run.
pub(crate) struct Observations {
    pub(crate) watch: Watch,
    /// Whether the search told the posterior's shape.
    pub(crate) sharp: bool,
    /// The sum of the thermostats over kept steps, and how many there are.
    thermostat: (f64, u64),
    /// The directions of a gradient's components, in the model's coordinates.
    axes: Vec<Vec<f64>>,
    fit: QuadraticFit,
}

impl Observations {
    /// Nothing yet, of so many chains.
    pub(crate) fn new(coordinates: &Coordinates, settings: &Settings, chains: u32, sharp: bool) -> Self {
        let axes = coordinates.axes();
        let mut fit = QuadraticFit::of("gradient component", coordinates.dimension());
        let sd = |i: usize| axes.iter().map(|axis| axis[i] * axis[i]).sum::<f64>().sqrt();
        fit.begin(coordinates.plain(&vec![0.0; axes.len()]), &(0..axes.len()).map(sd).collect::<Vec<_>>());
        // A stretch is ten times as long as a chain's memory.
        let watch = Watch::new(chains as usize, 10.0 / settings.law.warmup());
        Self { watch, sharp, thermostat: (0.0, 0), axes, fit }
    }

    /// Takes what a chain was told at the beginning of a step, and where its thermostat is after it.
    pub(crate) fn stepped(&mut self, chain: u32, told: &Kicked, walker: &Walker, phase: Phase) {
        if phase == Phase::Sampling {
            self.watch.kicked(chain, told);
            self.thermostat = (self.thermostat.0 + walker.thermostat(), self.thermostat.1 + 1);
        }
        for (direction, (slope, variance)) in self.axes.iter().zip(told.score.iter().zip(&told.variances)) {
            self.fit.slope_answered(phase, Slope { at: &told.middle, direction, slope: *slope, variance: *variance });
        }
    }

    /// The mean thermostat of kept steps.
    pub(crate) fn thermostat(&self) -> Option<f64> {
        let (sum, steps) = self.thermostat;
        (steps > 0).then(|| sum / steps as f64)
    }

    /// The posterior by the quadratic that all slopes make.
    pub(super) fn fitted(&self, target: &Target) -> FittedPosterior {
        self.fit.posterior(target, false)
    }
}
