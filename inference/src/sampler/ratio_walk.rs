//! A walk on noisy log likelihood ratios: a search for the mode, then chains whose proposals are decided one by one from the
//! parties' releases.
//!
//! The decision belongs to the algorithm ([`Decision`]); everything else is shared.

use super::clip_watch::ClipWatch;
use super::ensemble::{Ensemble, Spread};
use super::mode_search::{Purpose, SearchPlan};
use super::quadratic_fit::{Answer, QuadraticFit};
use super::search::{Search, SearchResult};
use super::weighted_walk::{Next as Follows, Weighting};
use super::{
    BarkerDiagnostics, Chain, Forecast, GradientSearch, Located, Messages, Next, RunReport, Sampler, SamplerError, Target,
    Totals, centred_records, proposal,
};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};
use conclave_privacy::mechanism::{QueryKind, STEP};

/// The decision rule for a chain's proposal.
pub(super) trait Decision: Send {
    /// Returns the kind of ratio that chains ask for.
    fn ratio_kind(&self) -> QueryKind {
        QueryKind::Ratio
    }

    /// Records the result of a search: each coordinate's posterior sd given the others, and the radii of the moves. Errors: the
    /// decision rule does not allow such moves.
    fn set_curvature(&mut self, _target: &Target, _sd: &[f64], _radii: &[f64]) -> Result<(), SamplerError> {
        Ok(())
    }

    /// Returns the variance of the log likelihood ratio of a chain's query, over all parties.
    fn variance(&self, target: &Target, _query: &Query) -> f64 {
        target.spec.ratio_variance()
    }

    /// Accepts or rejects a chain's pending proposal on its noisy log likelihood ratio and that ratio's variance.
    fn decide(&mut self, chain: &mut Chain, target: &Target, log_ratio: f64, variance: f64);

    /// Returns a query beside the proposals of the step with this number that checks the rule's assumptions.
    fn check_query(&self, _phase: Phase, _step: u64, _proposals: &[Query]) -> Option<Query> {
        None
    }

    /// Processes the total of that query.
    fn absorb_check(&mut self, _target: &Target, _query: &Query, _total: i128) {}

    /// Returns the diagnostics of a run with this rule; `None` if its draws always follow the posterior.
    fn diagnostics(&self) -> Option<BarkerDiagnostics> {
        None
    }
}

/// The walk as a state machine: a search for the mode, then the chains.
pub(super) struct RatioWalk<D> {
    target: Target,
    decision: D,
    /// Error that stops the chains, found after the search.
    fault: Option<SamplerError>,
    /// Plan of the searches, if the job needs any.
    plan: Option<SearchPlan>,
    /// Present search; the chains wait for its end.
    search: Option<Search>,
    ensemble: Ensemble,
    /// Fit to all released ratios; no decision uses it.
    fit: QuadraticFit,
    /// The choice of weights, if the job may weight records.
    weighting: Option<Weighting>,
    /// Draws from what a search released.
    learnt: Vec<Draw>,
    /// Watch over an explicit clip.
    clip_watch: Option<ClipWatch>,
    /// Number of records whose log ratios the parties centre.
    centred: u64,
    messages: Messages,
}

impl<D: Decision> RatioWalk<D> {
    /// Starts a walk with this decision rule. Errors: a search needs a count of records that is neither public nor guessed; a
    /// budget or scale is out of range.
    pub(super) fn new(spec: &JobSpec, parties: &[PartyMetadata], decision: D) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let budget = target.budget()?;
        let weighting = spec.weighs_chains().then(|| Weighting::new(&target, parties)).transpose()?;
        let (weighting, (search, plan)) = match weighting {
            Some((weighting, search)) => (Some(weighting), (Some(Search::Gradients(search)), None)),
            None => (None, Search::new(&target, parties)?),
        };
        let mut ensemble = Ensemble::new(&target, parties);
        let mut fit = QuadraticFit::new(target.space.dimension());
        if search.is_none() {
            ensemble.start_as_given(&target);
            let sd = proposal::sd_of(spec.sampler.proposal, &target.given_radii().unwrap_or_default());
            fit.begin(ensemble.mean(target.space.dimension()), &sd);
        }
        Ok(Self {
            decision,
            fault: None,
            search,
            plan,
            ensemble,
            fit,
            weighting,
            learnt: Vec::new(),
            clip_watch: ClipWatch::new(spec, parties, target.space.dimension(), budget)?,
            centred: centred_records(parties),
            messages: Messages::new(spec),
            target,
        })
    }

    /// Starts a walk that continues these messages of a run. Errors: those of [`Self::new`].
    pub(super) fn continuing(
        spec: &JobSpec,
        parties: &[PartyMetadata],
        decision: D,
        messages: Messages,
    ) -> Result<Self, SamplerError> {
        Ok(Self { messages, ..Self::new(spec, parties, decision)? })
    }

    /// Returns the noisy log likelihood ratio of a step; a subsampled one is scaled up to all records.
    fn log_ratio(&self, query: &Query, total: i128) -> f64 {
        if query.kind == QueryKind::SampledRatio {
            return STEP * total as f64 / self.target.spec.sampler.batch.get();
        }
        self.target.log_ratio(self.centred, query, total)
    }

    fn propose(&mut self) -> Vec<Query> {
        let mut queries = self.ensemble.propose(&self.target);
        queries.iter_mut().for_each(|query| query.kind = self.decision.ratio_kind());
        if let Some(plan) = self.weighting.as_ref().and_then(Weighting::plan) {
            queries.iter_mut().for_each(|query| query.to.extend(&plan.numbers));
        }
        let beside = self.decision.check_query(self.ensemble.phase, self.ensemble.steps, &queries);
        if let Some(watch) = &mut self.clip_watch {
            queries.extend(watch.ask(self.ensemble.phase, self.ensemble.steps, &queries));
        }
        queries.extend(beside);
        queries
    }

    /// Converts a released ratio to an answer of the fit.
    fn answer(&self, query: &Query, ratio: f64, variance: f64) -> Answer {
        let space = &self.target.space;
        // Weights may follow theta'.
        let to = &query.to[..query.from.len().min(query.to.len())];
        Answer { from: space.coordinates(&query.from), to: space.coordinates(to), ratio, variance }
    }

    /// Decides every chain that proposed.
    fn decide(&mut self, round: &Round, totals: &Totals) {
        self.weighting.iter_mut().for_each(Weighting::moved);
        for (query, total) in single(round, totals) {
            if query.kind == QueryKind::ClipCount {
                self.clip_watch.iter_mut().for_each(|watch| watch.absorb(total));
                continue;
            }
            if query.kind == QueryKind::SecondMoment {
                self.decision.absorb_check(&self.target, query, total);
                continue;
            }
            let (ratio, variance) = (self.log_ratio(query, total), self.decision.variance(&self.target, query));
            self.fit.chain_answered(round.phase, &self.answer(query, ratio, variance));
            if let Some(chain) = self.ensemble.chain(query.chain) {
                self.decision.decide(chain, &self.target, ratio, variance);
            }
        }
    }

    fn step_done(&mut self) {
        self.ensemble.step_done(self.messages.last());
        self.remeasure();
    }

    /// Measures the radii again around the chains' present places, if it is due.
    fn remeasure(&mut self) {
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.purpose == Purpose::Curvature) else { return };
        if self.ensemble.remeasures(&self.target.spec) {
            let mean = self.ensemble.mean(self.target.space.dimension());
            self.search = Some(Search::Ratios(plan.search(&self.target).at(mean).into()));
        }
    }

    /// Starts the chains at a search's result, or gives running chains its radii.
    fn found(&mut self, result: SearchResult) {
        let (u, sd) = match &result {
            SearchResult::Axes(found) => (found.u.clone(), found.sd.clone()),
            SearchResult::Whole(located) => (located.u.clone(), located.conditional_sd()),
        };
        let radii = self.radii(&sd);
        if self.ensemble.started() {
            return self.ensemble.rescale(radii);
        }
        let spread = match &result {
            SearchResult::Axes(found) if found.purpose == Purpose::Curvature => Spread::None,
            SearchResult::Axes(found) => Spread::Axes { sd: &found.sd, error_sd: &found.error_sd },
            SearchResult::Whole(located) => Spread::Whole { covariance: &located.covariance, error: &located.error },
        };
        self.ensemble.start(&self.target, &u, &spread, radii);
        self.fit.begin(u, &sd);
    }

    /// Returns the radii for these sds of each coordinate given the others, or the job's own.
    fn radii(&mut self, sd: &[f64]) -> Vec<f64> {
        self.ensemble.learn_sd(sd);
        let kind = self.target.spec.sampler.proposal;
        let radii = self.target.given_radii().unwrap_or_else(|| proposal::radii(kind, sd, &self.target.space.boxes));
        self.fault = self.decision.set_curvature(&self.target, sd, &radii).err();
        radii
    }

    /// Processes the answers of a search of a job that may weight records: after the last one another search follows, or the chains
    /// start.
    fn searched_for_frame(
        &mut self,
        mut search: Box<GradientSearch>,
        round: &Round,
        totals: &Totals,
    ) -> Result<(), SamplerError> {
        let (Some(found), Some(weighting)) = (search.absorb(&self.target, round, totals)?, &mut self.weighting) else {
            self.search = Some(Search::Gradients(search));
            return Ok(());
        };
        match weighting.searched(&self.target, search, found)? {
            Follows::Search(further) => self.search = Some(Search::Gradients(further)),
            Follows::Chains => self.start_along(),
        }
        Ok(())
    }

    /// Starts chains that move along the vectors of their plan.
    fn start_along(&mut self) {
        let Some(plan) = self.weighting.as_ref().and_then(Weighting::plan) else { return };
        let (Located { u, covariance, error }, sd) = (&plan.located, plan.located.conditional_sd());
        let kind = self.target.spec.sampler.proposal;
        self.ensemble.start(&self.target, u, &Spread::Whole { covariance, error }, Vec::new());
        self.ensemble.move_along(kind, plan.directions.clone());
        self.fit.begin(u.clone(), &sd);
    }

    /// Processes a search's answers: after the last one the chains start, or get their radii.
    fn searched(&mut self, search: Search, round: &Round, totals: &Totals) -> Result<(), SamplerError> {
        let mut search = match search {
            Search::Gradients(search) if self.weighting.is_some() => return self.searched_for_frame(search, round, totals),
            search => search,
        };
        let ratios: Vec<f64> = single(round, totals).map(|(query, total)| self.log_ratio(query, total)).collect();
        for (query, ratio) in round.queries.iter().zip(&ratios).filter(|_| matches!(search, Search::Ratios(_))) {
            let variance = self.target.spec.parties.len() as f64 * query.noise.variance();
            self.fit.search_answered(self.answer(query, *ratio, variance));
        }
        match search.absorb(&self.target, (round, totals), &ratios)? {
            Some(result) => self.found(result),
            None => self.search = Some(search),
        }
        Ok(())
    }
}

/// Yields each query with its total: the walk asks for ratios and counts, which are answered by one integer each.
fn single<'a>(round: &'a Round, totals: &'a Totals) -> impl Iterator<Item = (&'a Query, i128)> {
    let one = |(query, total): (&'a Query, &[i128])| match total {
        [total] => Some((query, *total)),
        _ => None,
    };
    round.queries.iter().zip(totals.by_query()).filter_map(one)
}

impl<D: Decision> Sampler for RatioWalk<D> {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        while self.messages.pending().is_none() {
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            if let Some(reason) = self.clip_watch.as_ref().and_then(ClipWatch::stop) {
                return Ok(Next::Stopped(reason));
            }
            if self.ensemble.finished(&self.target.spec) {
                return Ok(Next::Done);
            }
            let queries = match &mut self.search {
                Some(search) => search.queries(&self.target)?,
                None => self.propose(),
            };
            if queries.is_empty() {
                self.step_done(); // Every proposal fell outside the box: decided without a query.
            } else {
                self.messages.ask(self.ensemble.phase, queries);
            }
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        let round = self.messages.answer(totals)?;
        self.ensemble.charge(&self.target, &round);
        if let Some(search) = self.search.take() {
            return self.searched(search, &round, totals);
        }
        self.decide(&round, totals);
        self.step_done();
        Ok(())
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        let mut draws = self.ensemble.take_draws();
        draws.append(&mut self.learnt);
        draws
    }

    fn conclude(&mut self) -> Result<(), SamplerError> {
        if let Some(weighting) = &mut self.weighting {
            self.learnt.extend(weighting.conclude(&self.target, self.messages.last())?);
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.ensemble.phase
    }

    fn acceptance_rate(&self) -> Option<f64> {
        Some(self.ensemble.acceptance_rate())
    }

    fn futility(&self) -> Option<&Forecast> {
        self.weighting.as_ref().and_then(Weighting::few).or_else(|| self.ensemble.futility())
    }

    fn warnings(&self) -> Vec<String> {
        let clip = self.clip_watch.as_ref().and_then(ClipWatch::word);
        let weights = self.weighting.as_ref().and_then(Weighting::words);
        clip.into_iter().chain(weights).chain(self.decision.diagnostics().iter().flat_map(BarkerDiagnostics::words)).collect()
    }

    fn report(&self) -> RunReport {
        let clipped = self.clip_watch.as_ref().and_then(ClipWatch::word).is_some();
        let (inference, weighted) = self.weighting.as_ref().map(Weighting::report).unwrap_or_default();
        RunReport {
            inference,
            weighted,
            surrogate: Some(self.fit.posterior(&self.target, clipped)),
            radii: self.ensemble.radii_by_parameter(&self.target),
            barker: self.decision.diagnostics(),
            ..RunReport::default()
        }
    }
}
