//! What all chains of a run were told beside what moved them: for its diagnostics, for a check of the parties' noise, and for the surrogate.

use super::coordinates::Coordinates;
use super::diagnostics::GradientDiagnostics;
use super::moves::Kicked;
use super::repeats::Repeats;
use super::settings::Settings;
use super::watch::Watch;
use crate::sampler::hopeless::Forecast;
use crate::sampler::quadratic_fit::{FittedPosterior, QuadraticFit, Slope};
use crate::sampler::target::Target;
use conclave_common::query::Phase;

/// Kept steps of all chains after which it is looked whether they move at all.
const LOOK: u64 = 50;
/// The mean probability of acceptance of chains that do not, over what is expected.
const STUCK: f64 = 0.2;

/// The record of a run.
pub(crate) struct Observations {
    watch: Watch,
    repeats: Repeats,
    /// Whether the search told the posterior's shape.
    sharp: bool,
    /// The directions of a gradient's components, in the model's coordinates.
    axes: Vec<Vec<f64>>,
    fit: QuadraticFit,
    /// The mean probability of acceptance of chains that do not move.
    stuck_below: f64,
    /// Found once, and for good.
    stuck: Option<Forecast>,
}

impl Observations {
    /// Nothing yet, of so many chains and parties, of whose answers to a question so many are opened.
    pub(crate) fn new(
        coordinates: &Coordinates,
        settings: &Settings,
        (chains, parties, opened): (u32, usize, usize),
        sharp: bool,
    ) -> Self {
        let axes = coordinates.axes();
        let mut fit = QuadraticFit::of("gradient component", coordinates.dimension());
        let sd = |i: usize| axes.iter().map(|axis| axis[i] * axis[i]).sum::<f64>().sqrt();
        fit.begin(coordinates.plain(&vec![0.0; axes.len()]), &(0..axes.len()).map(sd).collect::<Vec<_>>());
        let length = settings.step * f64::from(settings.test.kicks());
        let (watch, repeats) = (Watch::new(chains as usize, length), Repeats::new(parties, opened));
        let usual = if settings.test.kicks_freely() { settings.acceptance() } else { 1.0 };
        Self { watch, repeats, sharp, axes, fit, stuck_below: STUCK * usual, stuck: None }
    }

    /// Takes what a chain was told at the middle of a step.
    pub(crate) fn kicked(&mut self, chain: u32, told: &Kicked, settings: &Settings, phase: Phase) {
        if let Some(pair) = &told.repeated {
            self.repeats.take(pair, settings.noise.units() as f64);
        }
        if phase == Phase::Sampling && told.at_rest {
            self.watch.kicked(chain, told);
        }
        for (direction, (slope, variance)) in self.axes.iter().zip(told.score.iter().zip(&told.variances)) {
            self.fit.slope_answered(phase, Slope { at: &told.middle, direction, slope: *slope, variance: *variance });
        }
    }

    /// Takes a chain's end of a kept step.
    pub(crate) fn stepped(&mut self, tested: Option<(f64, f64)>) {
        self.watch.stepped(tested);
        let taken = self.watch.acceptance().filter(|taken| self.watch.steps() >= LOOK && *taken < self.stuck_below);
        self.stuck = self.stuck.or(taken.map(Forecast::Stuck));
    }

    /// Why the chains will come to nothing, where they take hardly a step.
    pub(crate) fn stuck(&self) -> Option<&Forecast> {
        self.stuck.as_ref()
    }

    /// How the chains have moved.
    pub(crate) fn diagnostics(&self, settings: &Settings, parties: &[String]) -> GradientDiagnostics {
        GradientDiagnostics::of(settings, self.sharp, (&self.watch, &self.repeats), parties)
    }

    /// The posterior by the quadratic that all slopes make.
    pub(crate) fn fitted(&self, target: &Target) -> FittedPosterior {
        self.fit.posterior(target, false)
    }
}
