//! The released values of all chains of a run, for its diagnostics, for a check of the parties' noise, and for the surrogate.

use super::diagnostics::GradientDiagnostics;
use super::{Kicked, Repeats, Settings, Watch};
use crate::sampler::quadratic_fit::{AnswerKind, QuadraticFit, Slope};
use crate::sampler::{Coordinates, FittedPosterior, Forecast, Target};
use conclave_common::query::Phase;

/// Number of kept steps of all chains after which their movement is checked.
const LOOK: u64 = 50;
/// Ratio of the mean probability of acceptance to the expected one below which chains are stuck.
const STUCK: f64 = 0.2;

/// The quadratic fit to all released slopes.
pub(crate) struct SlopeFit {
    /// Directions of a gradient's components, in the model's coordinates.
    axes: Vec<Vec<f64>>,
    fit: QuadraticFit,
}

impl SlopeFit {
    pub(crate) fn new(coordinates: &Coordinates) -> Self {
        let axes = coordinates.axes();
        let mut fit = QuadraticFit::of(AnswerKind::Slope, axes.len());
        let sd = |i: usize| axes.iter().map(|axis| axis[i] * axis[i]).sum::<f64>().sqrt();
        fit.begin(coordinates.plain(&vec![0.0; axes.len()]), &(0..axes.len()).map(sd).collect::<Vec<_>>());
        Self { axes, fit }
    }

    pub(crate) fn add(&mut self, kicked: &Kicked, phase: Phase) {
        for (direction, (slope, variance)) in self.axes.iter().zip(kicked.score.iter().zip(&kicked.variances)) {
            self.fit.slope_answered(phase, Slope { at: &kicked.middle, direction, slope: *slope, variance: *variance });
        }
    }

    pub(crate) fn posterior(&self, target: &Target) -> FittedPosterior {
        self.fit.posterior(target, false)
    }
}

/// The observations of a run.
pub(crate) struct Observations {
    watch: Watch,
    repeats: Repeats,
    /// Set if the search released the posterior's shape.
    sharp: bool,
    pub(super) fit: SlopeFit,
    /// Mean probability of acceptance below which the chains are stuck.
    stuck_below: f64,
    /// Set once the chains are found to be stuck; never reset.
    stuck: Option<Forecast>,
}

impl Observations {
    /// Starts without observations. `opened` is the number of opened answers per query: one per party, or one for their sum.
    pub(crate) fn new(
        coordinates: &Coordinates,
        settings: &Settings,
        (chains, parties, opened): (u32, usize, usize),
        sharp: bool,
    ) -> Self {
        let length = settings.step * f64::from(settings.test.kicks());
        let (watch, repeats) = (Watch::new(chains as usize, length), Repeats::new(parties, opened));
        let usual = if settings.test.kicks_freely() { settings.acceptance() } else { 1.0 };
        Self { watch, repeats, sharp, fit: SlopeFit::new(coordinates), stuck_below: STUCK * usual, stuck: None }
    }

    /// Adds a chain's observations at the midpoint of a step.
    pub(crate) fn kicked(&mut self, chain: u32, kicked: &Kicked, settings: &Settings, phase: Phase) {
        if let Some(pair) = &kicked.repeated {
            self.repeats.take(pair, settings.noise.units() as f64);
        }
        if phase == Phase::Sampling && kicked.at_rest {
            self.watch.kicked(chain, kicked);
        }
        self.fit.add(kicked, phase);
    }

    /// Adds the end of a chain's kept step.
    pub(crate) fn stepped(&mut self, tested: Option<(f64, f64)>) {
        self.watch.stepped(tested);
        let taken = self.watch.acceptance().filter(|taken| self.watch.steps() >= LOOK && *taken < self.stuck_below);
        self.stuck = self.stuck.or(taken.map(Forecast::Stuck));
    }

    pub(super) fn is_sharp(&self) -> bool {
        self.sharp
    }

    pub(crate) fn stuck(&self) -> Option<&Forecast> {
        self.stuck.as_ref()
    }

    pub(crate) fn diagnostics(&self, settings: &Settings, parties: &[String]) -> GradientDiagnostics {
        GradientDiagnostics::of(settings, self.sharp, (&self.watch, &self.repeats), parties)
    }
}
