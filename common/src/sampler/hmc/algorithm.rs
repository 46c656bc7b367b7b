//! `hmc` as a state machine: a search by score stages, then two messages a step.

use super::coordinates::Coordinates;
use super::diagnostics::GradientDiagnostics;
use super::observations::Observations;
use super::settings::Settings;
use super::walker::{Field, Walker};
use crate::job::JobSpec;
use crate::mechanism::{GRADIENT_UNITS, QueryKind, STEP, Sensitivity};
use crate::model::ScoreModel;
use crate::sampler::enough::Enough;
use crate::sampler::error::SamplerError;
use crate::sampler::gradient_search::GradientSearch;
use crate::sampler::hopeless::Forecast;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::messages::Messages;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::noisy_statistics::score_way::Found;
use crate::sampler::party_metadata::PartyMetadata;
use crate::sampler::quadratic_fit::FittedPosterior;
use crate::sampler::round::{Draw, Phase, Query, Round};
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;

/// The share of the budget that the search takes where the job names none: more buys a better start and fewer steps.
pub(crate) const LOCATE_SHARE: f64 = 0.05;

/// The sampler: a search, and what walks after it.
pub(crate) struct Hmc {
    target: Target,
    budget: Allotment,
    parties: usize,
    /// The search, until it is over.
    search: Option<Box<GradientSearch>>,
    walk: Option<Walk>,
    messages: Messages,
    enough: Enough,
    draws: Vec<Draw>,
}

/// The chains, and how far they are.
struct Walk {
    coordinates: Coordinates,
    settings: Settings,
    walkers: Vec<Walker>,
    /// Steps that every chain has made.
    steps: u64,
    /// Whether the gradients of the present step are in.
    kicked: bool,
    /// Steps taken and made in the present phase.
    accepted: (u64, u64),
    observations: Observations,
}

impl Walk {
    fn phase(&self) -> Phase {
        if self.steps < self.settings.warmup { Phase::Warmup } else { Phase::Sampling }
    }

    /// Ends the step that every chain has just made.
    fn step_done(&mut self, message: u64, enough: &mut Enough, draws: &mut Vec<Draw>) {
        let warmup = self.phase() == Phase::Warmup;
        for walker in &self.walkers {
            let draw = walker.draw(warmup, message);
            self.accepted = (self.accepted.0 + u64::from(draw.accepted), self.accepted.1 + 1);
            if !warmup {
                self.observations.stepped(walker);
                enough.push(&draw);
            }
            draws.push(draw);
        }
        self.steps += 1;
        self.kicked = false;
        if warmup && self.phase() == Phase::Sampling {
            self.accepted = (0, 0);
        }
        if !warmup {
            enough.look(self.steps - self.settings.warmup);
        }
    }
}

impl Hmc {
    /// The sampler at its start.
    ///
    /// # Errors
    /// A model without gradients; a budget out of range.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let mut budget = Allotment::new(spec, parties)?;
        let part = budget.split_off(spec.sampler.hmc.locate_share.unwrap_or(LOCATE_SHARE));
        Ok(Self {
            search: Some(GradientSearch::new(&target, parties, part)?.into()),
            walk: None,
            messages: Messages::new(spec),
            enough: Enough::new(spec),
            draws: Vec::new(),
            parties: parties.len(),
            budget,
            target,
        })
    }

    /// Starts the chains where the search ended.
    fn start(&mut self, found: Found) -> Result<(), SamplerError> {
        let Self { target, budget, parties, .. } = self;
        let scores = scores(target)?;
        let (error, sharp) = (found.error.clone(), found.sharp);
        let coordinates = Coordinates::new(target, scores.as_ref(), found);
        let settings = Settings::new(target, scores.as_ref(), &coordinates, budget, *parties)?;
        let error = coordinates.covariance(&error);
        let field = Field { target, scores: scores.as_ref(), coordinates: &coordinates, settings: &settings, parties: *parties };
        let start = |id: u32| {
            let given = target.spec.sampler.starts.as_ref().and_then(|starts| starts.get(id as usize));
            Walker::new(&field, id, &error, given.map(Vec::as_slice))
        };
        let chains = target.spec.sampler.chains;
        let walkers = (0..chains).map(start).collect();
        let opened = target.spec.aggregation.opened(*parties);
        let observations = Observations::new(&coordinates, &settings, (chains, *parties, opened), sharp);
        self.walk = Some(Walk { coordinates, settings, walkers, steps: 0, kicked: false, accepted: (0, 0), observations });
        Ok(())
    }

    /// The queries of the next message of the chains' present step; none where no chain has one.
    fn ask(&mut self) -> Result<Vec<Query>, SamplerError> {
        let Self { target, budget, parties, walk, .. } = self;
        let scores = scores(target)?;
        let Some(Walk { coordinates, settings, walkers, kicked, .. }) = walk else { return Ok(Vec::new()) };
        let mut queries = Vec::with_capacity(walkers.len());
        if *kicked {
            for (chain, walker) in (0..).zip(walkers) {
                let Some((from, to)) = walker.test() else { continue };
                let kind = QueryKind::Remainder { parameters: scores.parameters() as u32 };
                // As quiet as the share buys: the noise follows the bound, which is the same for the way back.
                let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&from, &to), settings.test_share)?;
                walker.tested_with(*parties as f64 * noise.variance());
                queries.push(Query { chain, kind, from, to, noise });
            }
            return Ok(queries);
        }
        let field = Field { target, scores: scores.as_ref(), coordinates, settings, parties: *parties };
        for walker in walkers {
            let Some(query) = walker.begin(&field) else { continue };
            if !budget.charge(query.kind, Sensitivity::from_units(GRADIENT_UNITS)?, query.noise)? {
                return Err(SamplerError::TooSmallABudget { kind: query.kind });
            }
            queries.push(query);
        }
        Ok(queries)
    }

    /// Takes the totals of the chains' present message.
    fn take(&mut self, round: &Round, totals: &Totals) -> Result<(), SamplerError> {
        let Self { target, parties, walk, .. } = self;
        let scores = scores(target)?;
        let Some(walk) = walk else { return Err(SamplerError::NoRound) };
        let phase = walk.phase();
        let Walk { coordinates, settings, walkers, kicked, observations, .. } = walk;
        let field = Field { target, scores: scores.as_ref(), coordinates, settings, parties: *parties };
        let mut end = 0;
        for (query, sums) in round.queries.iter().zip(totals.by_query()) {
            let begin = end;
            end += sums.len();
            let Some(walker) = walkers.get_mut(query.chain as usize) else { continue };
            match sums {
                [total] if *kicked => walker.decide(settings.step, STEP * *total as f64),
                sums if !*kicked => {
                    let of = |number| totals.opened(number).get(begin..end).unwrap_or_default().to_vec();
                    let opened = target.spec.aggregation.opened(*parties);
                    let Some(told) = walker.kick(&field, sums, (0..opened).map(of).collect()) else { continue };
                    observations.kicked(query.chain, &told, settings, phase);
                }
                _ => return Err(SamplerError::Shape("a remainder is one number")),
            }
        }
        Ok(())
    }

    /// Goes on to the test of the present step, or to the next step.
    fn go_on(&mut self) {
        let message = self.messages.last();
        let Self { walk, enough, draws, .. } = self;
        let Some(walk) = walk else { return };
        if walk.kicked {
            walk.step_done(message, enough, draws);
        } else {
            walk.kicked = true;
        }
    }

    fn finished(&self) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.steps >= walk.settings.steps) || self.enough.reached()
    }
}

impl Sampler for Hmc {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        while self.messages.pending().is_none() {
            if let Some(search) = &mut self.search {
                let queries = search.queries(&self.target)?;
                self.messages.ask(Phase::Locate, queries);
                break;
            }
            if self.finished() {
                return Ok(Next::Done);
            }
            let queries = self.ask()?;
            if queries.is_empty() {
                self.go_on(); // every chain's step is over, or needs no test
            } else {
                self.messages.ask(self.phase(), queries);
            }
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        let round = self.messages.answer(totals)?;
        let Some(mut search) = self.search.take() else {
            self.take(&round, totals)?;
            self.go_on();
            return Ok(());
        };
        match search.absorb(&self.target, &round, totals)? {
            Some(found) => self.start(found),
            None => {
                self.search = Some(search);
                Ok(())
            }
        }
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        std::mem::take(&mut self.draws)
    }

    fn phase(&self) -> Phase {
        self.walk.as_ref().map_or(Phase::Locate, Walk::phase)
    }

    fn warnings(&self) -> Vec<String> {
        let words = |walk: &Walk| self.gradient_diagnostics().map(|told| told.words(&walk.settings));
        self.walk.as_ref().and_then(words).unwrap_or_default()
    }

    fn hopeless(&self) -> Option<&Forecast> {
        let watched = self.walk.as_ref().filter(|_| !self.target.spec.sampler.force);
        watched.and_then(|walk| walk.observations.stuck())
    }

    fn fitted_posterior(&self) -> Option<FittedPosterior> {
        self.walk.as_ref().map(|walk| walk.observations.fitted(&self.target))
    }

    fn gradient_diagnostics(&self) -> Option<GradientDiagnostics> {
        self.walk.as_ref().map(|walk| walk.observations.diagnostics(&walk.settings, &self.target.spec.parties))
    }

    fn ended_by_budget(&self) -> bool {
        let planned = self.walk.as_ref().map(|walk| walk.settings.steps - walk.settings.warmup);
        self.finished() && !self.enough.reached() && planned.is_some_and(|draws| draws < self.target.spec.sampler.draws)
    }

    fn acceptance_rate(&self) -> Option<f64> {
        let (accepted, made) = self.walk.as_ref().map_or((0, 0), |walk| walk.accepted);
        Some(if made == 0 { 0.0 } else { accepted as f64 / made as f64 })
    }
}

/// The model's scores.
fn scores(target: &Target) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
    target.model.scores().ok_or(SamplerError::NoScores)
}
