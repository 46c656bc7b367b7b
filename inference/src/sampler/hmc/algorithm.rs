//! The chains of `hmc`: one message for each gradient of a step, and one for its test.

use super::dp_hmc::{self, Trajectory};
use super::observations::Observations;
use super::walker::Walker;
use super::weighting::{self, PLAIN_SHARE, plain_draws, weighted_plan};
use super::{Field, Moves, Settings, TestQuery};
use crate::sampler::adequacy::planned_for_shape;
use crate::sampler::driven::{Started, Steps, Walk};
use crate::sampler::{
    Allotment, Coordinates, Forecast, Found, GradientSearch, Means, Polished, RunReport, SamplerError, Target, Totals, Weighted,
    centred_records,
};
use conclave_common::job::HmcTest;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};
use conclave_privacy::mechanism::QueryKind;

/// The chains and their progress.
pub(crate) struct Chains {
    coordinates: Coordinates,
    settings: Settings,
    walkers: Vec<Box<dyn Moves + Send>>,
    /// Number of records whose log ratios the parties centre.
    centred: u64,
    /// Number of gradients received in the present step.
    kicks: u32,
    observations: Observations,
    /// The weights of the records, if the chains are weighted.
    weighted: Option<Weighted>,
}

impl Chains {
    /// Returns true once the gradients of the present step are known, and its test is due.
    fn is_kicked(&self) -> bool {
        self.kicks >= self.settings.test.kicks()
    }

    /// Returns the queries of the present step's tests; none if the budget is too small.
    fn tests(
        &mut self,
        Means { target, budget, parties, .. }: &mut Means,
        steps: &mut Steps,
    ) -> Result<Vec<Query>, SamplerError> {
        let (spec, model) = (&target.spec, target.model.as_ref());
        let mut queries = Vec::with_capacity(self.walkers.len());
        for (chain, walker) in (0..).zip(&mut self.walkers) {
            let Some(TestQuery { kind, from, to }) = walker.test() else { continue };
            let noise = if kind == QueryKind::Ratio {
                if !budget.pay(spec, model, (kind, spec.privacy.noise), (&from, &to))? {
                    steps.spent = true;
                    return Ok(Vec::new());
                }
                spec.privacy.noise
            } else {
                // The noise is as low as the share buys. It follows the bound, which is the same for the reverse step.
                budget.take(spec, model, kind, (&from, &to), self.settings.test_share)?
            };
            walker.state_mut().test_variance = parties.len() as f64 * noise.variance();
            queries.push(Query { chain, kind, from, to, noise });
        }
        Ok(queries)
    }
}

impl Walk for Chains {
    const TESTED: bool = true;

    fn start(means: &mut Means, found: Found) -> Result<Started<Self>, SamplerError> {
        let Means { target, budget, parties, .. } = &*means;
        let scores = target.scores()?;
        let (error, sharp) = (found.error.clone(), found.sharp);
        let weighted = weighted_plan(target, &found, budget, parties.len())?;
        let (coordinates, settings, weighted) = match weighted {
            Some(plan) => {
                let plain = plain_draws(target, &found, budget, parties.len())?;
                let report = found.frame.as_ref().map(|frame| frame.weighted(plan.radius, plain.max(1.0).sqrt().recip()));
                (plan.coordinates, plan.settings, report)
            }
            None => {
                let coordinates = Coordinates::new(target, scores.as_ref(), found);
                let plan = if target.spec.runs_dp_hmc() { dp_hmc::planned } else { Settings::new };
                let settings = plan(target, scores.as_ref(), &coordinates, budget, parties.len())?;
                (coordinates, settings, None)
            }
        };
        let error = coordinates.covariance(&error);
        let field = Field::new(means, scores.as_ref(), &coordinates, &settings);
        let start = |id: u32| -> Box<dyn Moves + Send> {
            match settings.test {
                HmcTest::Ratio { .. } => Box::new(Trajectory::new(&field, id, &error, means.given_start(id))),
                _ => Box::new(Walker::new(&field, id, &error, means.given_start(id))),
            }
        };
        let chains = target.spec.sampler.chains;
        let walkers = (0..chains).map(start).collect();
        let opened = target.spec.aggregation.opened(parties.len());
        let observations = Observations::new(&coordinates, &settings, (chains, parties.len(), opened), sharp);
        let steps = Steps::new(settings.warmup, settings.steps);
        let centred = centred_records(parties);
        Ok((Self { coordinates, settings, walkers, centred, kicks: 0, observations, weighted }, steps, None))
    }

    fn search(target: &Target, parties: &[PartyMetadata], budget: &mut Allotment) -> Result<GradientSearch, SamplerError> {
        weighting::search(target, parties, budget)
    }

    fn further_search(means: &mut Means, found: &Found) -> Result<Option<GradientSearch>, SamplerError> {
        let Means { target, budget, parties, .. } = &*means;
        let is_plain = found.frame.is_some() && weighted_plan(target, found, budget, parties.len())?.is_none();
        if !is_plain {
            return Ok(None);
        }
        let part = means.budget.split_off(PLAIN_SHARE);
        GradientSearch::plain_after(&means.target, &means.parties, part, found).map(Some)
    }

    fn allowed_by_budget(&self, _: &Steps, draws: u64) -> Option<f64> {
        // Without friction the number of steps is open, and the budget ends them.
        let Settings { affordable, warmup, planned_ess, .. } = self.settings;
        (affordable - warmup < draws).then(|| planned_for_shape(planned_ess, self.observations.is_sharp()))
    }

    fn ask(&mut self, means: &mut Means, steps: &mut Steps) -> Result<Vec<Query>, SamplerError> {
        if self.is_kicked() {
            return self.tests(means, steps);
        }
        let Self { coordinates, settings, walkers, kicks, .. } = self;
        // The price of a whole ratio is known only once its ends are; that of a remainder is the planned one.
        let step_share = f64::from(means.target.spec.sampler.chains) * settings.step_share;
        if settings.test.kicks_freely() && *kicks == 0 && means.budget.left() < step_share {
            steps.spent = true;
            return Ok(Vec::new());
        }
        let scores = means.target.scores()?;
        let field = Field::new(means, scores.as_ref(), coordinates, settings);
        let queries: Vec<Query> = walkers.iter_mut().filter_map(|walker| walker.gradient_query(&field, *kicks == 0)).collect();
        drop(scores);
        queries.iter().try_for_each(|query| means.charge_gradient(query))?;
        Ok(queries)
    }

    fn take(&mut self, means: &Means, phase: Phase, round: &Round, totals: &Totals) -> Result<(), SamplerError> {
        let scores = means.target.scores()?;
        let testing = self.is_kicked();
        let Self { coordinates, settings, walkers, centred, observations, .. } = self;
        let field = Field::new(means, scores.as_ref(), coordinates, settings);
        let mut end = 0;
        for (query, sums) in round.queries.iter().zip(totals.by_query()) {
            let begin = end;
            end += sums.len();
            let Some(walker) = walkers.get_mut(query.chain as usize) else { continue };
            match sums {
                [total] if testing => walker.decide(settings.step, means.target.log_ratio(*centred, query, *total)),
                sums if !testing => {
                    let of = |number| totals.opened(number).get(begin..end).unwrap_or_default().to_vec();
                    let opened = means.target.spec.aggregation.opened(means.parties.len());
                    let Some(kicked) = walker.kick(&field, sums, (0..opened).map(of).collect()) else { continue };
                    observations.kicked(query.chain, &kicked, settings, phase);
                }
                _ => return Err(SamplerError::Shape("the answer to a test must be one number")),
            }
        }
        Ok(())
    }

    fn ends_step(&mut self) -> bool {
        let ends = self.is_kicked();
        self.kicks = if ends { 0 } else { self.kicks + 1 };
        ends
    }

    fn draws(&mut self, kept: bool, warmup: bool, message: u64) -> Vec<Draw> {
        let states = self.walkers.iter().map(|walker| walker.state());
        states.clone().filter(|_| kept).for_each(|state| self.observations.stepped(state.tested()));
        states.map(|state| state.draw(warmup, message)).collect()
    }

    fn stuck(&self) -> Option<&Forecast> {
        self.observations.stuck()
    }

    fn report(&self, target: &Target, _: Option<Polished>) -> RunReport {
        let gradients = Some(self.observations.diagnostics(&self.settings, &target.spec.parties));
        let (surrogate, weighted) = (Some(self.observations.fit.posterior(target)), self.weighted.clone());
        RunReport { surrogate, gradients, weighted, ..RunReport::default() }
    }

    fn warnings(&self, target: &Target, _: Option<Polished>) -> Vec<String> {
        let of_gradients = self.observations.diagnostics(&self.settings, &target.spec.parties).words(&self.settings);
        self.weighted.as_ref().map(Weighted::words).into_iter().chain(of_gradients).collect()
    }
}
