//! Chains that step together: their starts, their phases, and the scale of their moves.
//!
//! Penalty samplers hold one, and decide its chains' proposals in their own way.

use super::enough::Enough;
use super::futility::FutilityWatch;
use super::rotation::Rotation;
use super::space::START_VARIANCE;
use super::warmup::{self, WarmupWatch};
use super::{Chain, Forecast, Matrix, ProposalScale, Target, factor};
use conclave_common::job::{JobSpec, ProposalKind};
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};

/// The spread of the chains' starts.
pub(super) enum Spread<'a> {
    /// All chains start at one place.
    None,
    /// By the posterior's sd of each coordinate there, and the place's standard error.
    Axes { sd: &'a [f64], error_sd: &'a [f64] },
    /// By the posterior's covariance, and that of the place's error.
    Whole { covariance: &'a Matrix, error: &'a Matrix },
}

pub(super) struct Ensemble {
    /// Empty before they start.
    chains: Vec<Chain>,
    scale: ProposalScale,
    warmup: WarmupWatch,
    enough: Enough,
    futility: FutilityWatch,
    rotation: Option<Rotation>,
    /// Posterior sd of each coordinate given the others, from a search.
    sd: Vec<f64>,
    pub(super) phase: Phase,
    /// Number of steps of every chain in the present phase.
    pub(super) steps: u64,
    accepted: u64,
    draws: Vec<Draw>,
}

impl Ensemble {
    /// Creates an ensemble without chains.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Self {
        let dimension = target.space.dimension();
        Self {
            chains: Vec::new(),
            scale: ProposalScale::default(),
            warmup: WarmupWatch::new(&target.spec, dimension),
            enough: Enough::new(&target.spec),
            futility: FutilityWatch::new(&target.spec, parties.iter().map(PartyMetadata::unit)),
            rotation: rotation(&target.spec, dimension),
            sd: Vec::new(),
            phase: Phase::Locate,
            steps: 0,
            accepted: 0,
            draws: Vec::new(),
        }
    }

    /// Starts the chains at the job's values, with the job's radii; a job without a search states both.
    pub(super) fn start_as_given(&mut self, target: &Target) {
        let radii = target.given_radii().unwrap_or_default();
        match &target.spec.sampler.starts {
            Some(starts) => {
                self.chains = (0..).zip(starts).map(|(id, theta)| Chain::at(target, id, theta.clone())).collect();
                self.begin(radii);
            }
            None => {
                let start = target.spec.sampler.start.as_deref().unwrap_or_default();
                self.start(target, &target.space.coordinates(start), &Spread::None, radii);
            }
        }
    }

    /// Starts every chain at `centre`, or dispersed around it.
    pub(super) fn start(&mut self, target: &Target, centre: &[f64], spread: &Spread<'_>, radii: Vec<f64>) {
        let start = |id| {
            let mut chain = Chain::new(target, id, centre.to_vec());
            match spread {
                Spread::None => {}
                Spread::Axes { sd, error_sd } => chain.disperse(target, sd, error_sd),
                Spread::Whole { covariance, error } => {
                    let both = (*covariance).clone().scaled(START_VARIANCE).plus(error, 1.0);
                    chain.disperse_along(target, factor(&both).lower());
                }
            }
            chain
        };
        self.chains = (0..target.spec.sampler.chains).map(start).collect();
        self.begin(radii);
    }

    fn begin(&mut self, radii: Vec<f64>) {
        self.scale = ProposalScale::axes(radii);
        let phase = if self.warmup.over(0) { Phase::Sampling } else { Phase::Warmup };
        self.enter(phase);
    }

    pub(super) fn started(&self) -> bool {
        !self.chains.is_empty()
    }

    pub(super) fn learn_sd(&mut self, sd: &[f64]) {
        self.sd = sd.to_vec();
    }

    /// Sets the radii of the moves, or those along the principal axes if the draws so far determine them.
    pub(super) fn rescale(&mut self, radii: Vec<f64>) {
        let turned = self.rotation.as_ref().and_then(|rotation| rotation.scale(&self.sd));
        self.scale = turned.unwrap_or_else(|| ProposalScale::axes(radii));
    }

    /// Makes all moves go along these vectors, in which the posterior is standard normal.
    pub(super) fn move_along(&mut self, kind: ProposalKind, vectors: Vec<Vec<f64>>) {
        self.scale = ProposalScale::along(kind, vectors);
    }

    /// Returns the proposals of all chains that need a query; the others are already rejected.
    pub(super) fn propose(&mut self, target: &Target) -> Vec<Query> {
        let scale = &self.scale;
        self.chains.iter_mut().filter_map(|chain| chain.propose(target, scale)).collect()
    }

    pub(super) fn chain(&mut self, id: u32) -> Option<&mut Chain> {
        self.chains.get_mut(id as usize)
    }

    /// Ends the step that every chain has just completed, in the message with this number, and enters the next phase if it is
    /// due.
    pub(super) fn step_done(&mut self, message: u64) {
        self.steps += 1;
        let warmup = self.phase == Phase::Warmup;
        for chain in &self.chains {
            let draw = chain.draw(warmup, message);
            self.accepted += u64::from(draw.accepted);
            if warmup {
                self.warmup.push(&draw);
            } else {
                self.enough.push(&draw);
                self.futility.push(&draw, self.steps);
            }
            self.draws.push(draw);
        }
        if warmup {
            self.turn();
            if self.warmup.over(self.steps) {
                self.enter(Phase::Sampling);
            }
        } else {
            self.enough.look(self.steps);
            self.futility.look(self.steps);
        }
    }

    /// Turns the moves into the axes of the warm-up's draws, if the job asks for it and it is due.
    fn turn(&mut self) {
        let dimension = self.warmup.dimension;
        let Some(rotation) = self.rotation.as_mut().filter(|_| self.steps.is_multiple_of(dimension)) else { return };
        if let Some(scale) = rotation.sweep(self.chains.iter().map(Chain::coordinates), self.steps / dimension, &self.sd) {
            self.scale = scale;
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.steps = 0;
        self.accepted = 0;
    }

    /// Returns true if radii measured at the job's start have to be measured again now, because that start may have been far
    /// away.
    pub(super) fn remeasures(&self, spec: &JobSpec) -> bool {
        self.phase == Phase::Warmup && warmup::remeasures(spec.sampler.warmup, self.warmup.dimension, self.steps)
    }

    /// Returns the mean place of the chains, in coordinates.
    pub(super) fn mean(&self, dimension: usize) -> Vec<f64> {
        let mut mean = vec![0.0; dimension];
        for chain in &self.chains {
            mean.iter_mut().zip(chain.coordinates()).for_each(|(m, x)| *m += x / self.chains.len() as f64);
        }
        mean
    }

    /// Adds the cost of a round, before its draws.
    pub(super) fn charge(&mut self, target: &Target, round: &Round) {
        self.futility.charge(target, round, round.phase == Phase::Sampling);
    }

    pub(super) fn futility(&self) -> Option<&Forecast> {
        self.futility.found().filter(|_| !self.enough.reached)
    }

    /// Returns true if all draws are made, or the stopping rule is satisfied.
    pub(super) fn finished(&self, spec: &JobSpec) -> bool {
        self.phase == Phase::Sampling && (self.steps >= spec.sampler.draws || self.enough.reached)
    }

    /// Returns the draws made since the last call, chain by chain within each round.
    pub(super) fn take_draws(&mut self) -> Vec<Draw> {
        std::mem::take(&mut self.draws)
    }

    /// Returns the share of proposals accepted in the present phase; 0 before the first decision.
    pub(super) fn acceptance_rate(&self) -> f64 {
        let decisions = self.steps * self.chains.len() as u64;
        if decisions == 0 { 0.0 } else { self.accepted as f64 / decisions as f64 }
    }

    /// Returns proposal radii in the form of a job file; `None` before the chains start, and if the moves were turned away from
    /// the coordinates.
    pub(super) fn radii_by_parameter(&self, target: &Target) -> Option<Vec<f64>> {
        if self.scale.directions.is_some() || self.scale.radii.is_empty() {
            return None;
        }
        // The last component of a simplex has no coordinate of its own: its radius is not used.
        let mut radii = vec![1.0; target.spec.dimension()];
        target.space.parameters.iter().zip(&self.scale.radii).for_each(|(p, r)| radii[*p] = *r);
        Some(radii)
    }
}

/// Creates the learner of directions for the warm-up, if the job asks for it and there is more than one direction.
fn rotation(spec: &JobSpec, dimension: usize) -> Option<Rotation> {
    let sampler = &spec.sampler;
    (sampler.rotate && dimension > 1).then(|| Rotation::new(sampler.proposal, sampler.warmup, dimension, sampler.chains as usize))
}
