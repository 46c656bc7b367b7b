//! The chains of `sgld`, `sghmc`, `sgnht` and `sgfs`: one message per step.

use super::diagnostics::StochasticGradients;
use super::polish::Polish;
use super::walker::Field;
use super::{Kept, Observations, Settings, SettingsInput, Sweeps, Walker};
use crate::sampler::adequacy::planned_for_shape;
use crate::sampler::driven::{Started, Steps, Walk};
use crate::sampler::{Coordinates, Found, Located, Means, Polished, RunReport, SamplerError, StartingDraw, Target, Totals};
use conclave_common::model::ScoreModel;
use conclave_common::query::{Draw, Phase, Query, Round};
use conclave_privacy::accounting::SamplingProbability;

/// The chains and their progress.
pub(crate) struct Chains {
    coordinates: Coordinates,
    settings: Settings,
    walkers: Vec<Walker>,
    observations: Observations,
    kept: Kept,
    /// The draw at which the chains started, if they did at one.
    start: Option<StartingDraw>,
}

impl Chains {
    fn diagnostics(&self, target: &Target, polish: Option<Polished>) -> StochasticGradients {
        let steps = StochasticGradients::of(target, &self.settings, &self.observations, &self.walkers);
        StochasticGradients { polish, start: self.start, ..steps }
    }
}

impl Walk for Chains {
    const TESTED: bool = false;

    fn start(means: &mut Means, found: Found) -> Result<Started<Self>, SamplerError> {
        let (error, sharp) = (found.error.clone(), found.sharp);
        // The budget of the final sweeps is reserved before the chains get the rest.
        let polish = Sweeps::planned(&means.target, &Located::of(&found), &mut means.budget)?.map(Polish::new);
        let Means { target, budget, parties, .. } = &*means;
        let scores = target.scores()?;
        let coordinates = coordinates(target, scores.as_ref(), found);
        let error = coordinates.covariance(&error);
        let scores = scores.as_ref();
        let settings =
            Settings::new(&SettingsInput { target, scores, coordinates: &coordinates, error: &error, parties, budget })?;
        let field = Field::new(means, scores, &coordinates, &settings);
        let start = |id: u32| Walker::new(&field, id, &error, means.given_start(id)).ok_or(SamplerError::NoPlace);
        let chains = target.spec.sampler.chains;
        let walkers = (0..chains).map(start).collect::<Result<_, _>>()?;
        let observations = Observations::new(&coordinates, &settings, chains, sharp);
        let steps = Steps::new(settings.warmup, settings.steps);
        let (kept, start) = (Kept::default(), means.start);
        Ok((Self { coordinates, settings, walkers, observations, kept, start }, steps, polish))
    }

    fn allowed_by_budget(&self, steps: &Steps, draws: u64) -> Option<f64> {
        steps.is_short_of(draws).then(|| planned_for_shape(self.settings.planned_ess, self.observations.sharp))
    }

    fn ask(&mut self, means: &mut Means, _: &mut Steps) -> Result<Vec<Query>, SamplerError> {
        let queries: Vec<Query> = self.walkers.iter().map(|walker| walker.ask(&self.coordinates, &self.settings)).collect();
        // Blocks are paid in advance, and planned for all steps.
        queries.iter().filter(|query| !query.kind.is_sampled()).try_for_each(|query| means.charge_gradient(query))?;
        Ok(queries)
    }

    fn take(&mut self, means: &Means, phase: Phase, round: &Round, totals: &Totals) -> Result<(), SamplerError> {
        let scores = means.target.scores()?;
        let Self { coordinates, settings, walkers, observations, .. } = self;
        let field = Field::new(means, scores.as_ref(), coordinates, settings);
        for (query, sums) in round.queries.iter().zip(totals.by_query()) {
            let Some(walker) = walkers.get_mut(query.chain as usize) else { continue };
            let kicked = walker.step(&field, sums);
            observations.stepped(query.chain, &kicked, walker, phase);
        }
        Ok(())
    }

    fn draws(&mut self, kept: bool, warmup: bool, message: u64) -> Vec<Draw> {
        let made = self.walkers.first().map_or(0, |walker| walker.made);
        if kept && !warmup && !self.kept.keeps(self.settings.schedule.step(made) / self.settings.pace.step) {
            return Vec::new();
        }
        self.walkers.iter().map(|walker| walker.draw(warmup, message)).collect()
    }

    fn report(&self, target: &Target, polish: Option<Polished>) -> RunReport {
        let stochastic_gradients = Some(self.diagnostics(target, polish));
        RunReport { surrogate: Some(self.observations.fit.posterior(target)), stochastic_gradients, ..RunReport::default() }
    }

    fn warnings(&self, target: &Target, polish: Option<Polished>) -> Vec<String> {
        self.diagnostics(target, polish).words(&self.settings)
    }
}

/// Returns the coordinates of the chains. For subsampled gradients there is no centre, because only sampled records would
/// subtract it.
pub(super) fn coordinates(target: &Target, scores: &dyn ScoreModel, found: Found) -> Coordinates {
    let whole = target.spec.sampler.batch == SamplingProbability::ONE;
    let centred = if whole { found.centred } else { 0.0 };
    Coordinates::new(target, scores, Found { centred, ..found })
}
