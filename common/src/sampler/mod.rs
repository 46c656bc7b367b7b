//! The sampler as a state machine without input or output: it says what to ask, is told what the parties released, and
//! yields draws.
//!
//! It is a deterministic function of the job, the record counts and the releases. A coordinator that was killed replays
//! the logged releases through a fresh [`Sampler`] and goes on with the same chain.

mod chain;
mod clip_watch;
mod eigen;
mod holding;
mod locate;
pub(crate) mod penalty_exp_family;
mod proposal;
mod replay;
mod rotation;
mod space;
mod surrogate;
mod warmup;

use crate::accounting::{AccountingError, PrivacyFilter, PrivacyUnit};
use crate::job::{Algorithm, JobSpec, Radius};
use crate::mechanism::{MechanismError, NoiseScale, QueryKind, STEP};
use crate::model::{self, Model, is_centred};

use chain::Chain;
pub use clip_watch::{ClipWatch, STOP_SHARE, WARN_SHARE};
pub use holding::Holding;
use locate::{Locate, Purpose};
use penalty_exp_family::Family;
use proposal::Frame;
pub use replay::ReplayError;
use rotation::Rotation;
use space::Space;
use warmup::WarmupWatch;

/// Share of the job's budget (as mu²) that each measurement of curvature takes when starting values are given and radii are
/// not: one at the start, up to three more in the warm-up.
pub const CALIBRATE_SHARE: f64 = 0.02;
/// Squared ratio of the starting values' spread to the posterior's.
const START_VARIANCE: f64 = 2.0;

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding the mode and the posterior's curvature, one search for all chains.
    Locate,
    /// Chains run; draws are set apart.
    Warmup,
    /// Chains run; draws are kept.
    Sampling,
}

impl Phase {
    /// The name in statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Locate => "locate",
            Phase::Warmup => "warmup",
            Phase::Sampling => "sampling",
        }
    }
}

/// One question to every party.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The chain, or the slot of another question of the round; part of the query's identity.
    pub chain: u32,
    /// What is asked; a ratio is the log-likelihood ratio of `to` against `from`.
    pub kind: QueryKind,
    /// theta; empty where a statistic is asked.
    pub from: Vec<f64>,
    /// theta'; empty where a statistic is asked.
    pub to: Vec<f64>,
    /// Noise scale of each party's release.
    pub noise: NoiseScale,
}

/// One message to every party.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Number of the message, from 0; part of each query's identity.
    pub iteration: u64,
    /// What it is for.
    pub phase: Phase,
    /// At least one query; fewer than there are chains when a proposal fell outside the parameter box.
    pub queries: Vec<Query>,
}

/// One state of one chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The chain, from 0.
    pub chain: u32,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// The chain's state after the decision.
    pub theta: Vec<f64>,
    /// Whether the proposal was accepted.
    pub accepted: bool,
    /// Noisy log acceptance ratio, penalty and prior included; −∞ for a proposal outside the box.
    pub log_alpha: f64,
    /// The round's number.
    pub iteration: u64,
}

/// What the sampler refuses.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SamplerError {
    /// As many record counts as parties are needed.
    #[error("{got} record counts for {expected} parties")]
    Records {
        /// Number of parties.
        expected: usize,
        /// Number of counts.
        got: usize,
    },
    /// A party's record count isn't public and the job makes no guess.
    #[error("{party} does not publish its record count: give [sampler] records_guess, a guess of one party's number of records")]
    UnknownCount {
        /// The party.
        party: String,
    },
    /// Algorithm 3 needs the number of records, and a record as the unit of privacy.
    #[error(
        "{party} protects a unit of \"{unit}\", and penalty-exp-family needs rows that are replaced: use algorithm = \"penalty\", or leave the party out"
    )]
    Protects {
        /// The party.
        party: String,
        /// What it protects.
        unit: String,
    },
    /// The model is no exponential family.
    #[error("the model is no exponential family with a bounded statistic: use algorithm = \"penalty\"")]
    NoFamily,
    /// A sum over the records could leave the lattice.
    #[error(
        "{party} holds more records than a sum of this statistic can: narrow the columns' bounds, or bring them nearer to 0 for their width"
    )]
    TooManyRecords {
        /// The party.
        party: String,
    },
    /// The clip cuts so much that the chains can't be trusted: draws made so far are of another posterior.
    #[error("{0}")]
    Clipped(String),
    /// Releases that do not fit the round that was asked.
    #[error("the releases do not fit the round: {0}")]
    Shape(&'static str),
    /// No round is being asked.
    #[error("no round is waiting for releases")]
    NoRound,
    /// A noise scale or sensitivity out of range.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The budget is not a budget.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
}

enum Stage {
    Locate(Box<Locate>),
    /// One release of the whole statistic, before the chains of Algorithm 3.
    Statistic(Purpose, NoiseScale),
    Chains,
}

/// What a search needs besides the job.
struct SearchPlan {
    records: Vec<u64>,
    units: Vec<PrivacyUnit>,
    purpose: Purpose,
    mu_squared: f64,
}

impl SearchPlan {
    fn search(&self, spec: &JobSpec, space: &Space, model: &dyn Model) -> Locate {
        Locate::new(spec, space, model, &self.records, self.purpose, self.mu_squared).priced_for(self.units.iter().copied())
    }
}

/// Algorithms 2 and 3 of Yıldırım, *On the use of penalty MCMC for differential privacy*, several chains in step.
pub struct Sampler {
    spec: JobSpec,
    space: Space,
    model: Box<dyn Model>,
    stage: Stage,
    plan: Option<SearchPlan>,
    /// Algorithm 3's statistic.
    family: Option<Family>,
    /// Counts what an explicit clip cuts.
    clip_watch: Option<ClipWatch>,
    /// Records of the parties that take the model's centre off each log ratio.
    centred: u64,
    chains: Vec<Chain>,
    frame: Frame,
    warmup: WarmupWatch,
    rotation: Option<Rotation>,
    /// Each coordinate's posterior sd given the others, as a search found it.
    sd: Vec<f64>,
    phase: Phase,
    /// Steps made by every chain in the present phase.
    steps: u64,
    accepted: u64,
    iteration: u64,
    pending: Option<Round>,
    draws: Vec<Draw>,
}

impl Sampler {
    /// A sampler at its start, for parties that protect rows against replacement.
    ///
    /// `records` holds one public record count per party, in the job's order.
    ///
    /// # Errors
    /// As [`Sampler::with_holdings`].
    pub fn new(spec: &JobSpec, records: &[u64]) -> Result<Self, SamplerError> {
        let holdings: Vec<Holding> = records.iter().map(|count| Holding::rows(*count)).collect();
        Self::with_holdings(spec, &holdings)
    }

    /// A sampler at its start; one holding per party, in the job's order.
    ///
    /// Counts bound the curvature that a search meets, and units price its questions. Nothing else uses them.
    ///
    /// # Errors
    /// Holdings that do not match the job's parties; a count that a search needs and nobody gives; a budget or scale out of range.
    pub fn with_holdings(spec: &JobSpec, holdings: &[Holding]) -> Result<Self, SamplerError> {
        if holdings.len() != spec.parties.len() {
            return Err(SamplerError::Records { expected: spec.parties.len(), got: holdings.len() });
        }
        let model = model::build(spec);
        let space = Space::new(spec);
        let start = spec.sampler.start.clone();
        let share = spec.sampler.locate_share;
        let budget = crate::accounting::mu_squared(PrivacyFilter::new(&spec.privacy.budget)?.limit_units());
        let purpose = if share > 0.0 {
            Some((Purpose::Mode, share))
        } else if spec.sampler.radius == Radius::Auto {
            Some((Purpose::Curvature, CALIBRATE_SHARE))
        } else {
            None
        };
        let family = match spec.algorithm {
            Algorithm::Penalty => None,
            Algorithm::PenaltyExpFamily => Some(Family::new(spec, model.as_ref(), holdings)?),
        };
        let plan = match purpose {
            _ if family.is_some() => None,
            None => None,
            Some((purpose, share)) => Some(SearchPlan {
                records: holding::record_bounds(spec, holdings)?,
                units: holdings.iter().map(Holding::unit).collect(),
                purpose,
                mu_squared: share * budget,
            }),
        };
        let stage = match (&plan, &family, purpose) {
            (Some(plan), ..) => Stage::Locate(plan.search(spec, &space, model.as_ref()).into()),
            (None, Some(family), Some((purpose, share))) => Stage::Statistic(purpose, family.noise_for(share * budget)?),
            _ => Stage::Chains,
        };
        let space_dimension = space.dimension();
        let mut sampler = Self {
            warmup: WarmupWatch::new(spec, space.dimension()),
            rotation: rotation(spec, &space),
            sd: Vec::new(),
            spec: spec.clone(),
            space,
            model,
            stage,
            plan,
            family,
            clip_watch: ClipWatch::new(spec, holdings, space_dimension, budget)?,
            // Counts are other people's word: no sum of them may panic.
            centred: holdings.iter().filter(|h| is_centred(h.unit())).filter_map(Holding::records).fold(0, u64::saturating_add),
            chains: Vec::new(),
            frame: Frame::default(),
            phase: Phase::Locate,
            steps: 0,
            accepted: 0,
            iteration: 0,
            pending: None,
            draws: Vec::new(),
        };
        if purpose.is_none() {
            // Without a search the analyst gave both: `JobSpec` has checked it.
            let radii = if let Radius::Fixed(r) = &spec.sampler.radius { sampler.fixed(r) } else { Vec::new() };
            match &spec.sampler.starts {
                Some(starts) => sampler.continue_chains(starts, radii),
                None => {
                    let start = sampler.space.coordinates(&start.unwrap_or_default());
                    sampler.start_chains(start, None, radii);
                }
            }
        }
        Ok(sampler)
    }

    /// The round to ask now; the same one until [`Sampler::absorb`]. `None` when all draws are made.
    ///
    /// # Errors
    /// A query whose noise scale or sensitivity can't be represented.
    pub fn next_round(&mut self) -> Result<Option<Round>, SamplerError> {
        while self.pending.is_none() {
            if let Some(reason) = self.clip_watch.as_ref().and_then(ClipWatch::stop) {
                return Err(SamplerError::Clipped(reason));
            }
            if self.finished() {
                return Ok(None);
            }
            let queries = match &mut self.stage {
                Stage::Locate(search) => search.queries(&self.spec, &self.space, self.model.as_ref())?,
                Stage::Statistic(_, noise) => {
                    let noise = *noise;
                    self.family.as_ref().map(|family| family.queries(0, noise).collect()).unwrap_or_default()
                }
                Stage::Chains => self.propose(),
            };
            if queries.is_empty() {
                self.step_done(); // every proposal fell outside the box: decided without a question
            } else {
                self.pending = Some(Round { iteration: self.iteration, phase: self.phase, queries });
            }
        }
        Ok(self.pending.clone())
    }

    /// Takes what every party released for the pending round: `releases[party][query]`, in lattice units.
    ///
    /// # Errors
    /// No pending round, or another number of parties or queries; nothing is changed then.
    pub fn absorb(&mut self, releases: &[Vec<i64>]) -> Result<(), SamplerError> {
        let round = self.pending.as_ref().ok_or(SamplerError::NoRound)?;
        if releases.len() != self.spec.parties.len() {
            return Err(SamplerError::Shape("another number of parties"));
        }
        if releases.iter().any(|r| r.len() != round.queries.len()) {
            return Err(SamplerError::Shape("another number of releases than queries"));
        }
        let totals: Vec<i128> =
            (0..round.queries.len()).map(|q| releases.iter().map(|party| i128::from(party[q])).sum()).collect();
        let ratios: Vec<f64> = round.queries.iter().zip(&totals).map(|(query, total)| self.log_ratio(query, *total)).collect();
        let round = self.pending.take().ok_or(SamplerError::NoRound)?;
        self.iteration += 1;
        match &mut self.stage {
            Stage::Locate(search) => {
                search.absorb(&self.spec, &self.space, &round.queries, &ratios);
                if let Some(found) = search.found() {
                    self.sd.clone_from(&found.sd);
                    let radii = match &self.spec.sampler.radius {
                        Radius::Fixed(r) => self.fixed(r),
                        Radius::Auto => proposal::radii(self.spec.sampler.proposal, &found.sd, &self.space.boxes),
                    };
                    if self.chains.is_empty() {
                        let spread = (found.purpose == Purpose::Mode).then_some((found.sd, found.error_sd));
                        self.start_chains(found.u, spread, radii);
                    } else {
                        let turned = self.rotation.as_ref().and_then(|rotation| rotation.frame(&self.sd));
                        self.frame = turned.unwrap_or_else(|| Frame::axes(radii));
                        self.stage = Stage::Chains;
                    }
                }
            }
            Stage::Statistic(purpose, noise) => {
                let (purpose, noise) = (*purpose, *noise);
                self.settle_on_statistic(purpose, noise, &totals)?;
            }
            Stage::Chains if self.family.is_some() => {
                self.decide_on_statistics(&round.queries, &totals);
                self.step_done();
            }
            Stage::Chains => {
                let variance = self.spec.parties.len() as f64 * self.spec.privacy.noise.variance();
                for ((at, query), ratio) in round.queries.iter().enumerate().zip(ratios) {
                    if query.kind == QueryKind::ClipCount {
                        let counts: Vec<i64> = releases.iter().map(|party| party[at]).collect();
                        self.clip_watch.iter_mut().for_each(|watch| watch.absorb(&counts));
                        continue;
                    }
                    self.chains[query.chain as usize].decide(&self.spec, &self.space, ratio, variance);
                }
                self.step_done();
            }
        }
        Ok(())
    }

    /// Draws made since the last call, chain by chain within each round.
    pub fn take_draws(&mut self) -> Vec<Draw> {
        std::mem::take(&mut self.draws)
    }

    /// What is known of an explicit clip; `None` without one.
    pub fn clip_watch(&self) -> Option<&ClipWatch> {
        self.clip_watch.as_ref()
    }

    /// What the present round is for.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Share of proposals accepted in the present phase; 0 before the first decision.
    pub fn acceptance_rate(&self) -> f64 {
        let decisions = self.steps * self.chains.len() as u64;
        if decisions == 0 { 0.0 } else { self.accepted as f64 / decisions as f64 }
    }

    /// Proposal radii, one per direction of the moves, on the unconstrained scale; empty before the chains start.
    pub fn radii(&self) -> &[f64] {
        &self.frame.radii
    }

    /// Unit vectors along which one-direction moves go, once the warm-up has turned them away from the coordinates.
    pub fn directions(&self) -> Option<&[Vec<f64>]> {
        self.frame.directions.as_deref()
    }

    /// Proposal radii as a job file gives them, one per parameter on the unconstrained scale; `None` before the chains start, and
    /// where the moves were turned away from the coordinates.
    pub fn radii_by_parameter(&self) -> Option<Vec<f64>> {
        if self.frame.directions.is_some() || self.frame.radii.is_empty() {
            return None;
        }
        // The last of a simplex has no coordinate of its own: its radius is not used.
        let mut radii = vec![1.0; self.spec.dimension()];
        self.space.parameters.iter().zip(&self.frame.radii).for_each(|(p, r)| radii[*p] = *r);
        Some(radii)
    }

    /// Radii given per parameter as radii per coordinate.
    fn fixed(&self, radii: &[f64]) -> Vec<f64> {
        self.space.parameters.iter().map(|p| radii[*p]).collect()
    }

    /// The noisy log likelihood ratio of a step: the released integers, and what the parties took off each record's ratio before they
    /// summed. Both change sign with the step, bit for bit.
    fn log_ratio(&self, query: &Query, total: i128) -> f64 {
        let centre =
            if self.centred > 0 && query.kind == QueryKind::Ratio { self.model.centre(&query.from, &query.to) } else { 0.0 };
        STEP * total as f64 + self.centred as f64 * centre
    }

    fn finished(&self) -> bool {
        self.phase == Phase::Sampling && self.steps >= self.spec.sampler.draws
    }

    fn propose(&mut self) -> Vec<Query> {
        let (spec, space, frame) = (&self.spec, &self.space, &self.frame);
        let steps = self.chains.iter_mut().filter_map(|chain| chain.propose(spec, space, frame));
        let Some(family) = &self.family else {
            let mut queries: Vec<Query> = steps.collect();
            if let Some(watch) = &mut self.clip_watch {
                queries.extend(watch.ask(self.phase, self.steps, &queries));
            }
            return queries;
        };
        // Algorithm 3 releases the whole statistic afresh for every chain, whatever the step.
        let each = |step: Query| family.queries(step.chain as usize * family.components(), spec.privacy.noise);
        steps.flat_map(each).collect()
    }

    /// Algorithm 3's search: one release, then a look around on what it says.
    fn settle_on_statistic(&mut self, purpose: Purpose, noise: NoiseScale, totals: &[i128]) -> Result<(), SamplerError> {
        if let Some(family) = &mut self.family {
            family.learn(totals, noise);
        }
        let Some(family) = &self.family else { return Ok(()) };
        let mode = family.mode(&self.spec, &self.space, self.model.as_ref())?;
        let radii = match &self.spec.sampler.radius {
            Radius::Fixed(r) => self.fixed(r),
            Radius::Auto => family.radii(&self.spec, &self.space, self.model.as_ref(), &mode),
        };
        match (purpose, self.spec.sampler.start.clone()) {
            (Purpose::Curvature, Some(start)) => self.start_chains(self.space.coordinates(&start), None, radii),
            _ => self.start_chains(mode.u, Some((mode.sd, mode.error_sd)), radii),
        }
        Ok(())
    }

    /// Decides every chain that proposed, each on its own release of the statistic.
    fn decide_on_statistics(&mut self, queries: &[Query], totals: &[i128]) {
        let Some(family) = &mut self.family else { return };
        let (components, noise) = (family.components(), self.spec.privacy.noise);
        for (asked, totals) in queries.chunks(components).zip(totals.chunks(components)) {
            let chain = &mut self.chains[asked[0].chain as usize / components];
            let Some(step) = chain.step() else { continue };
            let (ratio, variance) = family.ratio(self.model.as_ref(), step, totals, noise);
            family.learn(totals, noise);
            chain.decide(&self.spec, &self.space, ratio, variance);
        }
    }

    /// Books the step that every chain has just made and moves to the next phase where it is due.
    fn step_done(&mut self) {
        self.steps += 1;
        let warmup = self.phase == Phase::Warmup;
        for chain in &mut self.chains {
            let draw = chain.draw(warmup, self.iteration.saturating_sub(1));
            self.accepted += u64::from(draw.accepted);
            if warmup {
                self.warmup.push(&draw);
            }
            self.draws.push(draw);
        }
        if warmup {
            self.turn();
        }
        if warmup && self.warmup.over(self.steps) {
            self.enter(Phase::Sampling);
        } else if warmup {
            self.measure_anew();
        }
    }

    /// Turns the moves into the axes of the warm-up's draws, when that is asked for and due.
    fn turn(&mut self) {
        let dimension = self.space.dimension() as u64;
        let Some(rotation) = self.rotation.as_mut().filter(|_| self.steps.is_multiple_of(dimension)) else { return };
        if let Some(frame) = rotation.sweep(self.chains.iter().map(Chain::coordinates), self.steps / dimension, &self.sd) {
            self.frame = frame;
        }
    }

    /// Measures the radii again around where the chains are now, when that is due: a given start may have been far away.
    fn measure_anew(&mut self) {
        let dimension = self.space.dimension();
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.purpose == Purpose::Curvature) else { return };
        if !warmup::remeasures(self.spec.sampler.warmup, dimension, self.steps) {
            return;
        }
        let mut mean = vec![0.0; dimension];
        for chain in &self.chains {
            mean.iter_mut().zip(chain.coordinates()).for_each(|(m, x)| *m += x / self.chains.len() as f64);
        }
        self.stage = Stage::Locate(plan.search(&self.spec, &self.space, self.model.as_ref()).at(mean).into());
    }

    fn start_chains(&mut self, centre: Vec<f64>, spread: Option<(Vec<f64>, Vec<f64>)>, radii: Vec<f64>) {
        self.chains = (0..self.spec.sampler.chains)
            .map(|id| {
                let mut chain = Chain::new(&self.spec, &self.space, id, centre.clone());
                if let Some((sd, error_sd)) = &spread {
                    // The search's own error widens the starts, so that R-hat can show a search that ended far away.
                    let widths: Vec<f64> =
                        sd.iter().zip(error_sd).map(|(s, e)| (START_VARIANCE * s * s + e * e).sqrt()).collect();
                    chain.disperse(&self.spec, &self.space, &widths);
                }
                chain
            })
            .collect();
        self.begin(radii);
    }

    /// Starts each chain at its own state.
    fn continue_chains(&mut self, starts: &[Vec<f64>], radii: Vec<f64>) {
        self.chains = (0..).zip(starts).map(|(id, theta)| Chain::at(&self.spec, &self.space, id, theta.clone())).collect();
        self.begin(radii);
    }

    fn begin(&mut self, radii: Vec<f64>) {
        self.frame = Frame::axes(radii);
        self.stage = Stage::Chains;
        let phase = if self.warmup.over(0) { Phase::Sampling } else { Phase::Warmup };
        self.enter(phase);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.steps = 0;
        self.accepted = 0;
    }
}

/// What the warm-up learns directions with, where the job asks for it and there is more than one.
fn rotation(spec: &JobSpec, space: &Space) -> Option<Rotation> {
    let sampler = &spec.sampler;
    (sampler.rotate && space.dimension() > 1)
        .then(|| Rotation::new(sampler.proposal, sampler.warmup, space.dimension(), sampler.chains as usize))
}

#[cfg(test)]
mod tests;
