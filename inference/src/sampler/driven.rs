//! The state machine of chains that gradients drive, tested or not: a search by score stages, the chains' steps, and optional
//! penalty sweeps at their end.

use super::enough::Enough;
use super::penalty::Penalty;
use super::stochastic_gradients::Polish;
use super::{
    Allotment, Forecast, Found, GradientSearch, Inference, LEAST_PLANNED, Located, Means, Messages, Next, Polished, RatioWalk,
    RunReport, Sampler, SamplerError, Start, Target, Totals,
};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};

/// The numbers of steps of each chain.
pub(super) struct Steps {
    /// Steps that every chain has completed.
    made: u64,
    /// Steps at the start that are not kept.
    warmup: u64,
    /// Steps at most, including the warm-up.
    planned: u64,
    /// Set once the budget is too small for another step.
    pub(super) spent: bool,
}

impl Steps {
    pub(super) fn new(warmup: u64, planned: u64) -> Self {
        Self { made: 0, warmup, planned, spent: false }
    }

    pub(super) fn phase(&self) -> Phase {
        if self.made < self.warmup { Phase::Warmup } else { Phase::Sampling }
    }

    /// Returns true if fewer draws are planned than the job asks for.
    pub(super) fn is_short_of(&self, draws: u64) -> bool {
        self.planned - self.warmup < draws
    }
}

/// Chains at the result of a search, and the sweeps that are to follow them.
pub(super) type Started<W> = (W, Steps, Option<Polish>);

/// The chains of an algorithm, whose steps take one or more messages.
pub(super) trait Walk: Send + Sized {
    /// True if chains accept or reject their steps.
    const TESTED: bool;

    fn start(means: &mut Means, found: Found) -> Result<Started<Self>, SamplerError>;

    /// Starts the search, whose share of the budget is subtracted.
    fn search(target: &Target, parties: &[PartyMetadata], budget: &mut Allotment) -> Result<GradientSearch, SamplerError> {
        GradientSearch::new(target, parties, budget.split_off(target.spec.gradient_search_share()))
    }

    /// Starts a further search, if chains on the plain posterior suit the result of one with weights.
    fn further_search(_means: &mut Means, _found: &Found) -> Result<Option<GradientSearch>, SamplerError> {
        Ok(None)
    }

    /// Returns the effective draws that the remaining budget allows, if it and not the job limits them.
    fn allowed_by_budget(&self, steps: &Steps, draws: u64) -> Option<f64>;

    /// Returns the queries of the next message in the present step; none if no chain has one, or if the budget is too small for
    /// another step.
    fn ask(&mut self, means: &mut Means, steps: &mut Steps) -> Result<Vec<Query>, SamplerError>;

    /// Processes the totals of that message.
    fn take(&mut self, means: &Means, phase: Phase, round: &Round, totals: &Totals) -> Result<(), SamplerError>;

    /// Continues after a message; returns true if the step has ended.
    fn ends_step(&mut self) -> bool {
        true
    }

    /// Returns the state of every chain after a step; `kept` is set after the warm-up, `warmup` on draws that are not the job's.
    fn draws(&mut self, kept: bool, warmup: bool, message: u64) -> Vec<Draw>;

    fn stuck(&self) -> Option<&Forecast> {
        None
    }

    fn report(&self, target: &Target, polish: Option<Polished>) -> RunReport;

    fn warnings(&self, target: &Target, polish: Option<Polished>) -> Vec<String>;
}

/// A pending posterior sample, at which the chains are to start after a search.
struct Drawing {
    start: Start,
    search: Box<GradientSearch>,
    found: Found,
}

/// The sampler: a search, a posterior sample if the chains start at one, the chains, and the sweeps.
pub(super) struct Driven<W> {
    means: Means,
    /// The search, until it has ended.
    search: Option<Box<GradientSearch>>,
    /// The posterior sample at which the chains start, while it is asked for.
    drawing: Option<Box<Drawing>>,
    /// Set if the ended search shows that the budget allows too few draws: the forecast, and the search.
    few: Option<(Forecast, Box<GradientSearch>)>,
    /// The report on draws from the search's releases, if the run ended with it.
    learnt: Option<Inference>,
    walk: Option<(W, Steps)>,
    /// The sweeps that yield the draws, if the job asks for any.
    polish: Option<Polish>,
    messages: Messages,
    enough: Enough,
    /// Numbers of accepted and completed steps in the present phase.
    accepted: (u64, u64),
    draws: Vec<Draw>,
}

impl<W: Walk> Driven<W> {
    /// Returns the sampler before its first round. Errors: the model has no gradients; a budget is out of range.
    pub(super) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let mut budget = Allotment::new(spec, parties)?;
        Ok(Self {
            search: Some(W::search(&target, parties, &mut budget)?.into()),
            drawing: None,
            few: None,
            learnt: None,
            walk: None,
            polish: None,
            messages: Messages::new(spec),
            enough: Enough::new(spec),
            accepted: (0, 0),
            draws: Vec::new(),
            means: Means { target, budget, parties: parties.to_vec(), start: None },
        })
    }

    /// Continues after a message of the chains.
    fn go_on(&mut self) {
        let Some((walk, steps)) = &mut self.walk else { return };
        if !walk.ends_step() {
            return;
        }
        let kept = steps.phase() == Phase::Sampling;
        for draw in walk.draws(kept, !kept || self.polish.is_some(), self.messages.last()) {
            self.accepted = (self.accepted.0 + u64::from(draw.accepted), self.accepted.1 + 1);
            if !draw.warmup {
                self.enough.push(&draw);
            }
            self.draws.push(draw);
        }
        steps.made += 1;
        if kept {
            self.enough.look(steps.made - steps.warmup);
        } else if steps.phase() == Phase::Sampling {
            self.accepted = (0, 0);
        }
    }

    /// Returns the sweeps once the steps have ended. They start at the chains' last states.
    fn sweeps(&mut self) -> Result<Option<&mut RatioWalk<Penalty>>, SamplerError> {
        if !self.finished() {
            return Ok(None);
        }
        let (Some(polish), Some((walk, _))) = (&mut self.polish, &mut self.walk) else { return Ok(None) };
        if polish.walk().is_none() {
            let starts = walk.draws(false, true, 0).into_iter().map(|draw| draw.theta).collect();
            let messages = std::mem::replace(&mut self.messages, Messages::new(&self.means.target.spec));
            polish.begin(&self.means.target, &self.means.parties, starts, messages)?;
        }
        Ok(polish.walk_mut())
    }

    /// Continues after a search: asks for the posterior sample at which the chains start, or starts them.
    fn located(&mut self, search: Box<GradientSearch>, found: Found) -> Result<(), SamplerError> {
        let Means { target, budget, parties, .. } = &mut self.means;
        if target.spec.start_share().is_none() {
            return self.start(search, found);
        }
        let start = Start::planned(target, parties, Located::of(&found), budget)?;
        self.drawing = Some(Box::new(Drawing { start, search, found }));
        Ok(())
    }

    /// Starts the chains at a search's result, unless the remaining budget is too small for a usable number of draws.
    fn start(&mut self, search: Box<GradientSearch>, found: Found) -> Result<(), SamplerError> {
        let (walk, steps, polish) = W::start(&mut self.means, found)?;
        let spec = &self.means.target.spec;
        let allowed = walk.allowed_by_budget(&steps, spec.sampler.draws);
        let few = allowed.filter(|ess| *ess < LEAST_PLANNED && polish.is_none() && !spec.sampler.force);
        let epsilon = |ess| Forecast::epsilon_for(ess, LEAST_PLANNED, &spec.privacy.budget);
        self.few = few.map(|ess| (Forecast::Few { ess, epsilon: epsilon(ess) }, search));
        (self.walk, self.polish) = (Some((walk, steps)), polish);
        Ok(())
    }

    /// Returns true if no step has been made since the search.
    fn has_only_searched(&self) -> bool {
        self.walk.as_ref().is_some_and(|(_, steps)| steps.made == 0)
    }

    fn polished(&self) -> Option<Polished> {
        let made = self.walk.as_ref().map_or(0, |(_, steps)| steps.made);
        self.polish.as_ref().map(|polish| polish.diagnostics(made))
    }

    fn finished(&self) -> bool {
        self.walk.as_ref().is_some_and(|(_, steps)| steps.spent || steps.made >= steps.planned) || self.enough.reached
    }
}

impl<W: Walk> Sampler for Driven<W> {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        if let Some(sweeps) = self.sweeps()? {
            return sweeps.next_round();
        }
        while self.messages.pending().is_none() {
            if let Some(search) = &mut self.search {
                self.messages.ask(Phase::Locate, search.queries(&self.means.target)?);
                break;
            }
            if let Some(drawing) = &self.drawing {
                self.messages.ask(Phase::Locate, vec![drawing.start.query()]);
                break;
            }
            if self.finished() {
                return Ok(Next::Done);
            }
            let (walk, steps) = self.walk.as_mut().ok_or(SamplerError::NoRound)?;
            let queries = walk.ask(&mut self.means, steps)?;
            if steps.spent {
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
        if let Some(sweeps) = self.sweeps()? {
            return sweeps.absorb(totals);
        }
        let round = self.messages.answer(totals)?;
        if let Some(drawing) = self.drawing.take() {
            let Drawing { start, search, found } = *drawing;
            self.means.start_at(start.drawn(totals)?, start.report);
            return self.start(search, found);
        }
        if let Some(mut search) = self.search.take() {
            match search.absorb(&self.means.target, &round, totals)? {
                Some(found) => match W::further_search(&mut self.means, &found)? {
                    Some(further) => self.search = Some(further.into()),
                    None => self.located(search, found)?,
                },
                None => self.search = Some(search),
            }
            return Ok(());
        }
        let (walk, steps) = self.walk.as_mut().ok_or(SamplerError::NoRound)?;
        walk.take(&self.means, steps.phase(), &round, totals)?;
        self.go_on();
        Ok(())
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        let mut draws = std::mem::take(&mut self.draws);
        draws.extend(self.polish.as_mut().and_then(Polish::walk_mut).map(Sampler::take_draws).unwrap_or_default());
        draws
    }

    fn phase(&self) -> Phase {
        match &self.polish {
            // The sweeps will yield the draws.
            Some(polish) => polish.walk().map_or(Phase::Warmup, Sampler::phase),
            None => self.walk.as_ref().map_or(Phase::Locate, |(_, steps)| steps.phase()),
        }
    }

    fn acceptance_rate(&self) -> Option<f64> {
        let (accepted, made) = self.accepted;
        let rate = if made == 0 { 0.0 } else { accepted as f64 / made as f64 };
        self.polish.as_ref().and_then(Polish::walk).map_or(W::TESTED.then_some(rate), Sampler::acceptance_rate)
    }

    /// Draws from what the search released, if the run ends with it.
    fn conclude(&mut self) -> Result<(), SamplerError> {
        let Some((_, search)) = self.few.as_ref().filter(|_| self.learnt.is_none() && self.has_only_searched()) else {
            return Ok(());
        };
        let (draws, inference) = search.learnt(&self.means.target, self.messages.last())?;
        self.draws.extend(draws);
        self.learnt = Some(inference);
        Ok(())
    }

    fn futility(&self) -> Option<&Forecast> {
        // A run of an earlier version made steps, and makes more after a restart.
        if let Some((few, _)) = self.few.as_ref().filter(|_| self.has_only_searched()) {
            return Some(few);
        }
        let watched = self.walk.as_ref().filter(|_| !self.means.target.spec.sampler.force);
        watched.and_then(|(walk, _)| walk.stuck())
    }

    fn warnings(&self) -> Vec<String> {
        self.walk.as_ref().map(|(walk, _)| walk.warnings(&self.means.target, self.polished())).unwrap_or_default()
    }

    fn report(&self) -> RunReport {
        let report = self.walk.as_ref().map(|(walk, _)| walk.report(&self.means.target, self.polished())).unwrap_or_default();
        // Draws from the search's releases are about what those are.
        let weighted = self.learnt.as_ref().map_or(report.weighted, |learnt| learnt.weighted.clone());
        RunReport { inference: self.learnt.clone(), weighted, ..report }
    }

    fn ended_by_budget(&self) -> bool {
        let short = |steps: &Steps| steps.spent || steps.is_short_of(self.means.target.spec.sampler.draws);
        // The budget of the sweeps was reserved: a party without remaining budget for them refuses itself.
        let ended = self.polish.is_none() && self.finished() && !self.enough.reached;
        ended && self.walk.as_ref().is_some_and(|(_, steps)| short(steps))
    }
}
