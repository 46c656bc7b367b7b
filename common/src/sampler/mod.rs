//! The sampler as a state machine without input or output: it says what to ask, is told what the parties released, and
//! yields draws.
//!
//! It is a deterministic function of the job, the record counts and the releases. A coordinator that was killed replays
//! the logged releases through a fresh [`Sampler`] and goes on with the same chain.

mod chain;
mod clip_watch;
mod eigen;
mod error;
mod holding;
mod locate;
mod penalty_exp_family;
mod proposal;
mod replay;
mod rotation;
mod round;
mod space;
mod stages;
mod state;
mod surrogate;
mod warmup;

use crate::accounting::{PrivacyFilter, PrivacyUnit};
use crate::job::{Algorithm, CALIBRATE_SHARE, JobSpec, Radius};
use crate::mechanism::{NoiseScale, QueryKind, STEP};
use crate::model::Model;
use crate::query::is_centred;

use chain::Chain;
pub use clip_watch::{ClipWatch, STOP_SHARE, WARN_SHARE};
pub use error::SamplerError;
pub use holding::Holding;
use locate::{Locate, Purpose};
use penalty_exp_family::Family;
use proposal::Frame;
pub use replay::ReplayError;
use rotation::Rotation;
pub use round::{Draw, Phase, Query, Round};
use space::Space;
use warmup::WarmupWatch;

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
        let model = spec.build_model();
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
}

/// What the warm-up learns directions with, where the job asks for it and there is more than one.
fn rotation(spec: &JobSpec, space: &Space) -> Option<Rotation> {
    let sampler = &spec.sampler;
    (sampler.rotate && space.dimension() > 1)
        .then(|| Rotation::new(sampler.proposal, sampler.warmup, space.dimension(), sampler.chains as usize))
}

#[cfg(test)]
mod tests;
