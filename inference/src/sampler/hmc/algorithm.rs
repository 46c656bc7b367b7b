//! `hmc` as a state machine: a search by score stages, then two messages per step.

use super::coordinates::Coordinates;
use super::diagnostics::GradientDiagnostics;
use super::dp_hmc::{self, Trajectory};
use super::moves::{Moves, TestQuery};
use super::observations::Observations;
use super::place::Field;
use super::settings::Settings;
use super::walker::Walker;
use crate::sampler::enough::Enough;
use crate::sampler::error::SamplerError;
use crate::sampler::futility::Forecast;
use crate::sampler::gradient_search::GradientSearch;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::messages::Messages;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::noisy_statistics::score_strategy::Found;
use crate::sampler::report::RunReport;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::{HmcTest, JobSpec};
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Draw, Phase, Query, Round};
use conclave_common::query::{centre, is_centred};
use conclave_privacy::mechanism::{GRADIENT_UNITS, QueryKind, STEP, Sensitivity};

/// Default share of the budget for the search: more buys a better start and fewer steps.
pub(crate) const LOCATE_SHARE: f64 = 0.05;

/// The sampler: a search, followed by the chains.
pub(crate) struct Hmc {
    target: Target,
    budget: Allotment,
    parties: usize,
    /// Number of records whose log ratios the parties centre.
    centred: u64,
    /// The search, until it has ended.
    search: Option<Box<GradientSearch>>,
    walk: Option<Walk>,
    messages: Messages,
    enough: Enough,
    draws: Vec<Draw>,
}

/// The chains and their progress.
struct Walk {
    coordinates: Coordinates,
    settings: Settings,
    walkers: Vec<Box<dyn Moves + Send>>,
    /// Number of steps that every chain has completed.
    steps: u64,
    /// Number of gradients received in the present step.
    kicks: u32,
    /// Set once the budget is too small for another step.
    spent: bool,
    /// Numbers of accepted and completed steps in the present phase.
    accepted: (u64, u64),
    observations: Observations,
}

impl Walk {
    fn diagnostics(&self, target: &Target) -> GradientDiagnostics {
        self.observations.diagnostics(&self.settings, &target.spec.parties)
    }

    /// Returns true once the gradients of the present step are known, and its test is due.
    fn is_kicked(&self) -> bool {
        self.kicks >= self.settings.test.kicks()
    }

    /// Returns the queries of the present step's tests; none if the budget is too small.
    fn tests(&mut self, target: &Target, budget: &mut Allotment, parties: usize) -> Result<Vec<Query>, SamplerError> {
        let Self { settings, walkers, spent, .. } = self;
        let (spec, model) = (&target.spec, target.model.as_ref());
        let mut queries = Vec::with_capacity(walkers.len());
        for (chain, walker) in (0..).zip(walkers) {
            let Some(TestQuery { kind, from, to }) = walker.test() else { continue };
            let noise = if kind == QueryKind::Ratio {
                if !budget.pay(spec, model, (kind, spec.privacy.noise), (&from, &to))? {
                    *spent = true;
                    return Ok(Vec::new());
                }
                spec.privacy.noise
            } else {
                // The noise is as low as the share buys. It follows the bound, which is the same for the reverse step.
                budget.take(spec, model, kind, (&from, &to), settings.test_share)?
            };
            walker.tested_with(parties as f64 * noise.variance());
            queries.push(Query { chain, kind, from, to, noise });
        }
        Ok(queries)
    }

    fn phase(&self) -> Phase {
        if self.steps < self.settings.warmup { Phase::Warmup } else { Phase::Sampling }
    }

    /// Ends the step that every chain has just completed.
    fn step_done(&mut self, message: u64, enough: &mut Enough, draws: &mut Vec<Draw>) {
        let warmup = self.phase() == Phase::Warmup;
        for walker in &self.walkers {
            let draw = walker.draw(warmup, message);
            self.accepted = (self.accepted.0 + u64::from(draw.accepted), self.accepted.1 + 1);
            if !warmup {
                self.observations.stepped(walker.tested());
                enough.push(&draw);
            }
            draws.push(draw);
        }
        self.steps += 1;
        self.kicks = 0;
        if warmup && self.phase() == Phase::Sampling {
            self.accepted = (0, 0);
        }
        if !warmup {
            enough.look(self.steps - self.settings.warmup);
        }
    }
}

impl Hmc {
    /// Returns the sampler before its first round.
    ///
    /// # Errors
    /// The model has no gradients; a budget is out of range.
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
            centred: parties.iter().filter(|party| is_centred(party.unit())).filter_map(PartyMetadata::records).sum(),
            budget,
            target,
        })
    }

    /// Starts the chains at the result of the search.
    fn start(&mut self, found: Found) -> Result<(), SamplerError> {
        let Self { target, budget, parties, .. } = self;
        let scores = scores(target)?;
        let (error, sharp) = (found.error.clone(), found.sharp);
        let coordinates = Coordinates::new(target, scores.as_ref(), found);
        let settings = match target.spec.runs_dp_hmc() {
            true => dp_hmc::planned(target, scores.as_ref(), &coordinates, budget, *parties)?,
            false => Settings::new(target, scores.as_ref(), &coordinates, budget, *parties)?,
        };
        let error = coordinates.covariance(&error);
        let field = Field { target, scores: scores.as_ref(), coordinates: &coordinates, settings: &settings, parties: *parties };
        let start = |id: u32| -> Box<dyn Moves + Send> {
            let given = target.spec.sampler.starts.as_ref().and_then(|starts| starts.get(id as usize)).map(Vec::as_slice);
            match settings.test {
                HmcTest::Ratio { .. } => Box::new(Trajectory::new(&field, id, &error, given)),
                _ => Box::new(Walker::new(&field, id, &error, given)),
            }
        };
        let chains = target.spec.sampler.chains;
        let walkers = (0..chains).map(start).collect();
        let opened = target.spec.aggregation.opened(*parties);
        let observations = Observations::new(&coordinates, &settings, (chains, *parties, opened), sharp);
        self.walk =
            Some(Walk { coordinates, settings, walkers, steps: 0, kicks: 0, spent: false, accepted: (0, 0), observations });
        Ok(())
    }

    /// Returns the queries of the next message in the chains' present step; none if no chain has one, or if the budget is too
    /// small for another step.
    fn ask(&mut self) -> Result<Vec<Query>, SamplerError> {
        let Self { target, budget, parties, walk, .. } = self;
        let scores = scores(target)?;
        let Some(walk) = walk else { return Ok(Vec::new()) };
        if walk.is_kicked() {
            return walk.tests(target, budget, *parties);
        }
        let chains = target.spec.sampler.chains;
        let Walk { coordinates, settings, walkers, kicks, .. } = walk;
        // The price of a whole ratio is known only once its ends are; that of a remainder is the planned one.
        if settings.test.kicks_freely() && *kicks == 0 && budget.left() < f64::from(chains) * settings.step_share {
            walk.spent = true;
            return Ok(Vec::new());
        }
        let field = Field { target, scores: scores.as_ref(), coordinates, settings, parties: *parties };
        let mut queries = Vec::with_capacity(walkers.len());
        for walker in walkers {
            let Some(query) = walker.gradient_query(&field, *kicks == 0) else { continue };
            if !budget.charge(query.kind, Sensitivity::from_units(GRADIENT_UNITS)?, query.noise)? {
                return Err(SamplerError::TooSmallABudget { kind: query.kind });
            }
            queries.push(query);
        }
        Ok(queries)
    }

    /// Processes the totals of the chains' present message.
    fn take(&mut self, round: &Round, totals: &Totals) -> Result<(), SamplerError> {
        let Self { target, parties, centred, walk, .. } = self;
        let scores = scores(target)?;
        let Some(walk) = walk else { return Err(SamplerError::NoRound) };
        let phase = walk.phase();
        let testing = walk.is_kicked();
        let Walk { coordinates, settings, walkers, observations, .. } = walk;
        let field = Field { target, scores: scores.as_ref(), coordinates, settings, parties: *parties };
        let mut end = 0;
        for (query, sums) in round.queries.iter().zip(totals.by_query()) {
            let begin = end;
            end += sums.len();
            let Some(walker) = walkers.get_mut(query.chain as usize) else { continue };
            match sums {
                [total] if testing => {
                    let asks_centre = *centred > 0 && query.kind == QueryKind::Ratio;
                    let (model, privacy) = (target.model.as_ref(), &target.spec.privacy);
                    let centre = if asks_centre { centre(model, privacy, &query.from, &query.to) } else { 0.0 };
                    walker.decide(settings.step, STEP * *total as f64 + *centred as f64 * centre);
                }
                sums if !testing => {
                    let of = |number| totals.opened(number).get(begin..end).unwrap_or_default().to_vec();
                    let opened = target.spec.aggregation.opened(*parties);
                    let Some(kicked) = walker.kick(&field, sums, (0..opened).map(of).collect()) else { continue };
                    observations.kicked(query.chain, &kicked, settings, phase);
                }
                _ => return Err(SamplerError::Shape("the answer to a test must be one number")),
            }
        }
        Ok(())
    }

    /// Continues with the test of the present step, or with the next step.
    fn go_on(&mut self) {
        let message = self.messages.last();
        let Self { walk, enough, draws, .. } = self;
        let Some(walk) = walk else { return };
        if walk.is_kicked() {
            walk.step_done(message, enough, draws);
        } else {
            walk.kicks += 1;
        }
    }

    fn finished(&self) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.spent || walk.steps >= walk.settings.steps) || self.enough.reached()
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
            if self.finished() {
                return Ok(Next::Done);
            }
            if queries.is_empty() {
                self.go_on(); // Every chain's step has ended, or needs no test.
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

    fn futility(&self) -> Option<&Forecast> {
        let watched = self.walk.as_ref().filter(|_| !self.target.spec.sampler.force);
        watched.and_then(|walk| walk.observations.stuck())
    }

    fn warnings(&self) -> Vec<String> {
        let words = |walk: &Walk| walk.diagnostics(&self.target).words(&walk.settings);
        self.walk.as_ref().map(words).unwrap_or_default()
    }

    fn report(&self) -> RunReport {
        RunReport {
            surrogate: self.walk.as_ref().map(|walk| walk.observations.fitted(&self.target)),
            gradients: self.walk.as_ref().map(|walk| walk.diagnostics(&self.target)),
            ..RunReport::default()
        }
    }

    fn ended_by_budget(&self) -> bool {
        let ended = |walk: &Walk| walk.spent || walk.settings.steps - walk.settings.warmup < self.target.spec.sampler.draws;
        self.finished() && !self.enough.reached() && self.walk.as_ref().is_some_and(ended)
    }

    fn acceptance_rate(&self) -> Option<f64> {
        let (accepted, made) = self.walk.as_ref().map_or((0, 0), |walk| walk.accepted);
        Some(if made == 0 { 0.0 } else { accepted as f64 / made as f64 })
    }
}

/// Returns the model's scores.
fn scores(target: &Target) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
    target.model.scores().ok_or(SamplerError::NoScores)
}
