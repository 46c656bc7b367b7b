//! The released values of all chains of a run, for its diagnostics and for the surrogate.

use super::settings::Settings;
use super::walker::Walker;
use crate::sampler::hmc::{Coordinates, Kicked, Watch};
use crate::sampler::quadratic_fit::{FittedPosterior, QuadraticFit, Slope};
use crate::sampler::target::Target;
use conclave_common::query::Phase;

/// The observations of a run.
pub(crate) struct Observations {
    pub(crate) watch: Watch,
    /// Set if the search released the posterior's shape.
    pub(crate) sharp: bool,
    /// Sum of the thermostats over kept steps, and number of these steps.
    thermostat: (f64, u64),
    /// Directions of a gradient's components, in the model's coordinates.
    axes: Vec<Vec<f64>>,
    fit: QuadraticFit,
}

impl Observations {
    /// Starts without observations.
    pub(crate) fn new(coordinates: &Coordinates, settings: &Settings, chains: u32, sharp: bool) -> Self {
        let axes = coordinates.axes();
        let mut fit = QuadraticFit::of("gradient component", coordinates.dimension());
        let sd = |i: usize| axes.iter().map(|axis| axis[i] * axis[i]).sum::<f64>().sqrt();
        fit.begin(coordinates.plain(&vec![0.0; axes.len()]), &(0..axes.len()).map(sd).collect::<Vec<_>>());
        // A stretch is ten times as long as a chain's memory.
        let watch = Watch::new(chains as usize, 10.0 / settings.law.warmup());
        Self { watch, sharp, thermostat: (0.0, 0), axes, fit }
    }

    /// Adds a chain's observations at the start of a step, and its thermostat after it.
    pub(crate) fn stepped(&mut self, chain: u32, kicked: &Kicked, walker: &Walker, phase: Phase) {
        if phase == Phase::Sampling {
            self.watch.kicked(chain, kicked);
            self.thermostat = (self.thermostat.0 + walker.thermostat(), self.thermostat.1 + 1);
        }
        for (direction, (slope, variance)) in self.axes.iter().zip(kicked.score.iter().zip(&kicked.variances)) {
            self.fit.slope_answered(phase, Slope { at: &kicked.middle, direction, slope: *slope, variance: *variance });
        }
    }

    /// Returns the mean thermostat of kept steps.
    pub(crate) fn thermostat(&self) -> Option<f64> {
        let (sum, steps) = self.thermostat;
        (steps > 0).then(|| sum / steps as f64)
    }

    /// Returns the posterior from the quadratic fit to all slopes.
    pub(super) fn fitted(&self, target: &Target) -> FittedPosterior {
        self.fit.posterior(target, false)
    }
}
