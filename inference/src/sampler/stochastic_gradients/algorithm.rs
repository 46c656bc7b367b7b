//! `sgld`, `sghmc`, `sgnht` and `sgfs` as a state machine: a search by score stages, then one message per step.

use super::diagnostics::StochasticGradients;
use super::observations::Observations;
use super::polish::{Polish, Sweeps};
use super::settings::{Settings, SettingsInput};
use super::walker::{Field, Walker};
use crate::sampler::enough::Enough;
use crate::sampler::error::SamplerError;
use crate::sampler::gradient_search::{GradientSearch, Located};
use crate::sampler::hmc::Coordinates;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::messages::Messages;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::noisy_statistics::score_strategy::Found;
use crate::sampler::penalty::Penalty;
use crate::sampler::ratio_walk::RatioWalk;
use crate::sampler::report::RunReport;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Draw, Phase, Query, Round};
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::{GRADIENT_UNITS, Sensitivity};

/// Default share of the budget for the search.
pub(crate) const LOCATE_SHARE: f64 = 0.05;

/// The sampler: a search, the chains, and optional sweeps at their end.
pub(crate) struct StochasticGradient {
    target: Target,
    budget: Allotment,
    parties: Vec<PartyMetadata>,
    /// The search, until it has ended.
    search: Option<Box<GradientSearch>>,
    walk: Option<Walk>,
    /// The sweeps that yield the draws, if the job asks for any.
    polish: Option<Polish>,
    messages: Messages,
    enough: Enough,
    draws: Vec<Draw>,
}

/// The chains and their progress.
struct Walk {
    coordinates: Coordinates,
    settings: Settings,
    walkers: Vec<Walker>,
    /// Number of steps that every chain has completed.
    steps: u64,
    observations: Observations,
}

impl Walk {
    fn phase(&self) -> Phase {
        if self.steps < self.settings.warmup { Phase::Warmup } else { Phase::Sampling }
    }

    /// Ends the step that every chain has just completed; `polished` says that sweeps will yield the job's draws.
    fn step_done(&mut self, message: u64, polished: bool, enough: &mut Enough, draws: &mut Vec<Draw>) {
        let warmup = self.phase() == Phase::Warmup;
        for walker in &self.walkers {
            let draw = walker.draw(warmup || polished, message);
            if !draw.warmup {
                enough.push(&draw);
            }
            draws.push(draw);
        }
        self.steps += 1;
        if !warmup {
            enough.look(self.steps - self.settings.warmup);
        }
    }
}

impl StochasticGradient {
    fn diagnostics(&self, walk: &Walk) -> StochasticGradients {
        let polish = self.polish.as_ref().map(|polish| polish.diagnostics(walk.steps));
        let steps = StochasticGradients::of(&self.target, &walk.settings, &walk.observations, &walk.walkers);
        StochasticGradients { polish, ..steps }
    }

    /// Returns the sampler before its first round.
    ///
    /// # Errors
    /// The model has no gradients; a budget is out of range.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let mut budget = Allotment::new(spec, parties)?;
        let part = budget.split_off(spec.sampler.stochastic.locate_share.unwrap_or(LOCATE_SHARE));
        Ok(Self {
            search: Some(GradientSearch::new(&target, parties, part)?.into()),
            walk: None,
            polish: None,
            messages: Messages::new(spec),
            enough: Enough::new(spec),
            draws: Vec::new(),
            parties: parties.to_vec(),
            budget,
            target,
        })
    }

    /// Starts the chains at the result of the search.
    fn start(&mut self, found: Found) -> Result<(), SamplerError> {
        let Self { target, budget, parties, .. } = self;
        let scores = scores(target)?;
        let (error, sharp) = (found.error.clone(), found.sharp);
        // The budget of the final sweeps is reserved before the chains get the rest.
        self.polish = Sweeps::planned(target, &Located::of(&found), budget)?.map(Polish::new);
        let coordinates = coordinates(target, scores.as_ref(), found);
        let error = coordinates.covariance(&error);
        let means = SettingsInput { target, scores: scores.as_ref(), coordinates: &coordinates, error: &error, parties, budget };
        let settings = Settings::new(&means)?;
        let (coordinates_of, settings_of) = (&coordinates, &settings);
        let field =
            Field { target, scores: scores.as_ref(), coordinates: coordinates_of, settings: settings_of, parties: parties.len() };
        let start = |id: u32| {
            let given = target.spec.sampler.starts.as_ref().and_then(|starts| starts.get(id as usize));
            Walker::new(&field, id, &error, given.map(Vec::as_slice)).ok_or(SamplerError::NoPlace)
        };
        let chains = target.spec.sampler.chains;
        let walkers = (0..chains).map(start).collect::<Result<_, _>>()?;
        let observations = Observations::new(&coordinates, &settings, chains, sharp);
        self.walk = Some(Walk { coordinates, settings, walkers, steps: 0, observations });
        Ok(())
    }

    /// Returns the queries of the chains' present step.
    fn ask(&mut self) -> Result<Vec<Query>, SamplerError> {
        let Self { target, budget, parties, walk, .. } = self;
        let scores = scores(target)?;
        let Some(Walk { coordinates, settings, walkers, .. }) = walk else { return Ok(Vec::new()) };
        let field = Field { target, scores: scores.as_ref(), coordinates, settings, parties: parties.len() };
        let mut queries = Vec::with_capacity(walkers.len());
        for walker in walkers {
            let query = walker.ask(&field);
            // Blocks are paid in advance, and planned for all steps.
            let record = Sensitivity::from_units(GRADIENT_UNITS)?;
            if !query.kind.is_sampled() && !budget.charge(query.kind, record, query.noise)? {
                return Err(SamplerError::TooSmallABudget { kind: query.kind });
            }
            queries.push(query);
        }
        Ok(queries)
    }

    /// Processes the totals of the chains' present message.
    fn take(&mut self, round: &Round, totals: &Totals) -> Result<(), SamplerError> {
        let Self { target, parties, walk, .. } = self;
        let scores = scores(target)?;
        let Some(walk) = walk else { return Err(SamplerError::NoRound) };
        let phase = walk.phase();
        let Walk { coordinates, settings, walkers, observations, .. } = walk;
        let field = Field { target, scores: scores.as_ref(), coordinates, settings, parties: parties.len() };
        for (query, sums) in round.queries.iter().zip(totals.by_query()) {
            let Some(walker) = walkers.get_mut(query.chain as usize) else { continue };
            let kicked = walker.step(&field, sums);
            observations.stepped(query.chain, &kicked, walker, phase);
        }
        Ok(())
    }

    /// Returns the sweeps once the steps have ended. They start at the chains' last states.
    fn sweeps(&mut self) -> Result<Option<&mut RatioWalk<Penalty>>, SamplerError> {
        if !self.finished() {
            return Ok(None);
        }
        let Self { target, parties, walk, polish, messages, .. } = self;
        let Some(polish) = polish else { return Ok(None) };
        if polish.walk().is_none() {
            let starts = walk.iter().flat_map(|walk| &walk.walkers).map(|walker| walker.draw(true, 0).theta).collect();
            let messages = std::mem::replace(messages, Messages::new(&target.spec));
            polish.begin(target, parties, starts, messages)?;
        }
        Ok(polish.walk_mut())
    }

    fn polishing(&self) -> Option<&RatioWalk<Penalty>> {
        self.polish.as_ref().and_then(Polish::walk)
    }

    fn finished(&self) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.steps >= walk.settings.steps) || self.enough.reached()
    }
}

impl Sampler for StochasticGradient {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        if let Some(sweeps) = self.sweeps()? {
            return sweeps.next_round();
        }
        if self.messages.pending().is_none() {
            if let Some(search) = &mut self.search {
                let queries = search.queries(&self.target)?;
                self.messages.ask(Phase::Locate, queries);
            } else if self.finished() {
                return Ok(Next::Done);
            } else {
                let queries = self.ask()?;
                self.messages.ask(self.phase(), queries);
            }
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        if let Some(sweeps) = self.sweeps()? {
            return sweeps.absorb(totals);
        }
        let round = self.messages.answer(totals)?;
        let Some(mut search) = self.search.take() else {
            self.take(&round, totals)?;
            let message = self.messages.last();
            if let Some(walk) = &mut self.walk {
                walk.step_done(message, self.polish.is_some(), &mut self.enough, &mut self.draws);
            }
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
        let mut draws = std::mem::take(&mut self.draws);
        draws.extend(self.polish.as_mut().and_then(Polish::walk_mut).map(Sampler::take_draws).unwrap_or_default());
        draws
    }

    fn phase(&self) -> Phase {
        match (&self.polish, self.polishing()) {
            (_, Some(sweeps)) => sweeps.phase(),
            // The sweeps will yield the draws.
            (Some(_), None) => Phase::Warmup,
            (None, None) => self.walk.as_ref().map_or(Phase::Locate, Walk::phase),
        }
    }

    fn acceptance_rate(&self) -> Option<f64> {
        self.polishing().and_then(Sampler::acceptance_rate)
    }

    fn warnings(&self) -> Vec<String> {
        let words = |walk: &Walk| self.diagnostics(walk).words(&walk.settings);
        self.walk.as_ref().map(words).unwrap_or_default()
    }

    fn report(&self) -> RunReport {
        RunReport {
            surrogate: self.walk.as_ref().map(|walk| walk.observations.fitted(&self.target)),
            stochastic_gradients: self.walk.as_ref().map(|walk| self.diagnostics(walk)),
            ..RunReport::default()
        }
    }

    fn ended_by_budget(&self) -> bool {
        // The budget of the sweeps was reserved: a party without remaining budget for them refuses itself.
        if self.polish.is_some() {
            return false;
        }
        let planned = self.walk.as_ref().map(|walk| walk.settings.steps - walk.settings.warmup);
        self.finished() && !self.enough.reached() && planned.is_some_and(|draws| draws < self.target.spec.sampler.draws)
    }
}

/// Returns the coordinates of the chains. For subsampled gradients there is no centre, because only sampled records would
/// subtract it.
pub(super) fn coordinates(target: &Target, scores: &dyn ScoreModel, found: Found) -> Coordinates {
    let whole = target.spec.sampler.batch == SamplingProbability::ONE;
    let centred = if whole { found.centred } else { 0.0 };
    Coordinates::new(target, scores, Found { centred, ..found })
}

/// Returns the model's scores.
fn scores(target: &Target) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
    target.model.scores().ok_or(SamplerError::NoScores)
}
