//! The released values of all chains of a run, for its diagnostics and for the surrogate.

use super::{Settings, Walker};
use crate::sampler::Coordinates;
use crate::sampler::hmc::{Kicked, SlopeFit, Watch};
use conclave_common::query::Phase;

/// The observations of a run.
pub(crate) struct Observations {
    pub(crate) watch: Watch,
    /// Set if the search released the posterior's shape.
    pub(crate) sharp: bool,
    /// Sum of the thermostats over kept steps, and number of these steps.
    thermostat: (f64, u64),
    pub(super) fit: SlopeFit,
}

impl Observations {
    pub(crate) fn new(coordinates: &Coordinates, settings: &Settings, chains: u32, sharp: bool) -> Self {
        // A stretch is ten times as long as a chain's memory.
        let watch = Watch::new(chains as usize, 10.0 / settings.law.warmup());
        Self { watch, sharp, thermostat: (0.0, 0), fit: SlopeFit::new(coordinates) }
    }

    /// Adds a chain's observations at the start of a step, and its thermostat after it.
    pub(crate) fn stepped(&mut self, chain: u32, kicked: &Kicked, walker: &Walker, phase: Phase) {
        if phase == Phase::Sampling {
            self.watch.kicked(chain, kicked);
            self.thermostat = (self.thermostat.0 + walker.thermostat(), self.thermostat.1 + 1);
        }
        self.fit.add(kicked, phase);
    }

    /// Returns the mean thermostat of kept steps.
    pub(crate) fn thermostat(&self) -> Option<f64> {
        let (sum, steps) = self.thermostat;
        (steps > 0).then(|| sum / steps as f64)
    }
}
