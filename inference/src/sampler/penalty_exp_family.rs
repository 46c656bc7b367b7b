//! Algorithm 3 of Yıldırım, *On the use of penalty MCMC for differential privacy*: chains on noisy sufficient statistics, for any
//! number of owners.
//!
//! In each round, every party releases a fresh noisy sum of every component of the statistic for every chain. With `S` their
//! totals, `d = n [log g(theta') - log g(theta)] + (phi(theta') - phi(theta)) . S` is an unbiased log likelihood ratio. Its noise
//! has variance `N sum_j (phi_j(theta') - phi_j(theta))^2 (s g_j)^2` for N parties of noise scale s and components of lattice
//! step `g_j`. A release costs the same for every step, so its noise follows from the budget and the job's number of rounds, and
//! the proposal's length follows from the noise. The search for the mode costs one round: it then continues on the released
//! statistic, at no further charge.

use super::ensemble::{Ensemble, Spread};
use super::mode_search::Purpose;
use super::statistic::family_of;
use super::{
    Engine, ErrorSource, Forecast, Messages, Mode, Next, ReleasedStatistic, RunReport, Sampler, SamplerError, Target, Totals,
    penalty,
};
use conclave_common::job::{JobSpec, ProposalKind};
use conclave_common::model::statistic_noise;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};
use conclave_privacy::mechanism::NoiseScale;

/// Largest radius of a guided one-coordinate move in posterior sds: without noise it mixes best near there.
const GUIDED: f64 = 1.0;
/// Largest radius of a one-coordinate move of random sign, and of a joint step before division by √d.
const RANDOM: f64 = 2.2;

/// Algorithm 3 as a state machine: one release of the statistic to start from, then the chains.
pub(super) struct PenaltyExpFamily {
    target: Target,
    statistic: ReleasedStatistic,
    /// Purpose and noise of the first release; `None` once it is known, or if the job needs none.
    search: Option<(Purpose, NoiseScale)>,
    ensemble: Ensemble,
    messages: Messages,
}

impl PenaltyExpFamily {
    /// Returns the sampler before its first round. Errors: the model has no bounded statistic; a party does not protect rows
    /// against replacement; a budget or scale is out of range.
    pub(super) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let budget = target.budget()?;
        let statistic = ReleasedStatistic::new(&target, parties)?;
        let search = match Purpose::of(spec) {
            Some((purpose, share)) => {
                Some((purpose, statistic_noise(&statistic.grids, share * budget * f64::from(spec.honest().get()))?))
            }
            None => None,
        };
        let mut ensemble = Ensemble::new(&target, parties);
        if search.is_none() {
            ensemble.start_as_given(&target);
        }
        Ok(Self { target, statistic, search, ensemble, messages: Messages::new(spec) })
    }

    /// Returns the queries for a release of the whole statistic for every chain that proposes.
    fn propose(&mut self) -> Vec<Query> {
        let (statistic, noise) = (&self.statistic, self.target.spec.privacy.noise);
        let each = |step: Query| statistic.queries(step.chain as usize * statistic.components(), noise);
        self.ensemble.propose(&self.target).into_iter().flat_map(each).collect()
    }

    /// Starts the chains on the first release.
    fn start(&mut self, purpose: Purpose, noise: NoiseScale, totals: &[i128]) -> Result<(), SamplerError> {
        self.statistic.learn(totals, noise);
        let (target, ensemble) = (&self.target, &mut self.ensemble);
        let mode = self.statistic.mode(target)?;
        let radii = target.given_radii().unwrap_or_else(|| radii(&self.statistic, target, &mode));
        match (purpose, &target.spec.sampler.start) {
            (Purpose::Curvature, Some(start)) => ensemble.start(target, &target.space.coordinates(start), &Spread::None, radii),
            _ => ensemble.start(target, &mode.u, &Spread::Axes { sd: &mode.sd, error_sd: &mode.error_sd }, radii),
        }
        Ok(())
    }

    /// Decides every chain that proposed, each on its own release of the statistic.
    fn decide(&mut self, round: &Round, totals: &Totals) {
        let (components, noise) = (self.statistic.components(), self.target.spec.privacy.noise);
        let mut by_query = totals.by_query();
        for queries in round.queries.chunks(components) {
            let totals = by_query.by_ref().take(queries.len()).collect::<Vec<_>>().concat();
            let Some(chain) = self.ensemble.chain(queries[0].chain / components as u32) else { continue };
            let Some(step) = chain.step() else { continue };
            let (ratio, variance) = log_ratio(&self.statistic, &self.target, step, &totals, noise);
            self.statistic.learn(&totals, noise);
            penalty::decide(chain, &self.target, ratio, variance);
        }
    }
}

pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Unknown { note: "fresh noisy sums for every draw: `conclave rehearse` shows the resulting error" },
    small_step_acceptance: |_| f64::NAN,
    refit_obstacle: Some("queries its statistic afresh at every step of its own chains, which depend on the job's prior"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(PenaltyExpFamily::new(spec, parties)?)))
};

impl Sampler for PenaltyExpFamily {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        while self.messages.pending().is_none() {
            if self.ensemble.finished(&self.target.spec) {
                return Ok(Next::Done);
            }
            let queries = match self.search {
                Some((_, noise)) => self.statistic.queries(0, noise).collect(),
                None => self.propose(),
            };
            if queries.is_empty() {
                self.ensemble.step_done(self.messages.last()); // Every proposal fell outside the box: decided without a query.
            } else {
                self.messages.ask(self.ensemble.phase, queries);
            }
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        let round = self.messages.answer(totals)?;
        self.ensemble.charge(&self.target, &round);
        if let Some((purpose, noise)) = self.search.take() {
            return self.start(purpose, noise, totals.components());
        }
        self.decide(&round, totals);
        self.ensemble.step_done(self.messages.last());
        Ok(())
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        self.ensemble.take_draws()
    }

    fn phase(&self) -> Phase {
        self.ensemble.phase
    }

    fn acceptance_rate(&self) -> Option<f64> {
        Some(self.ensemble.acceptance_rate())
    }

    fn report(&self) -> RunReport {
        RunReport { radii: self.ensemble.radii_by_parameter(&self.target), ..RunReport::default() }
    }

    fn futility(&self) -> Option<&Forecast> {
        self.ensemble.futility()
    }
}

/// Returns the noisy log likelihood ratio `d` of a step and the variance of its noise; `totals` belong to one release.
fn log_ratio(
    statistic: &ReleasedStatistic,
    target: &Target,
    (from, to): (&[f64], &[f64]),
    totals: &[i128],
    noise: NoiseScale,
) -> (f64, f64) {
    let Ok(family) = family_of(target.model.as_ref()) else { return (f64::NAN, 0.0) };
    let (before, after) = (family.natural(from), family.natural(to));
    let mut ratio = statistic.records * (family.log_normaliser(to) - family.log_normaliser(from));
    let mut variance = 0.0;
    for (((before, after), grid), total) in before.iter().zip(&after).zip(&statistic.grids).zip(totals) {
        let difference = after - before;
        ratio += difference * (grid.step * *total as f64);
        let sd = difference * grid.step * noise.units() as f64;
        variance += sd * sd;
    }
    (ratio, statistic.parties * variance)
}

/// Returns radii at which the posterior is well explored and the noise of a ratio suits the proposal.
fn radii(statistic: &ReleasedStatistic, target: &Target, mode: &Mode) -> Vec<f64> {
    let Target { spec, space, .. } = target;
    let kind = spec.sampler.proposal;
    let most_noise = kind.total_noise_sd();
    // Noise sd of a ratio per unit of each coordinate, near the mode.
    let slope = |j: usize| {
        let width = 0.1 * mode.sd[j];
        let mut to = mode.u.clone();
        to[j] = if space.boxes[j].contains(to[j] + width) { to[j] + width } else { to[j] - width };
        let zeros = vec![0; statistic.components()];
        let (from, to) = (space.theta_inside(spec, &mode.u), space.theta_inside(spec, &to));
        log_ratio(statistic, target, (&from, &to), &zeros, spec.privacy.noise).1.sqrt() / width
    };
    let slopes: Vec<f64> = (0..mode.sd.len()).map(slope).collect();
    let half = |j: usize| (space.boxes[j].max - space.boxes[j].min) / 2.0;
    let one = |most: f64| -> Vec<f64> {
        let radius = |(j, (sd, slope)): (usize, (&f64, &f64))| (most * sd).min(most_noise / slope).min(half(j));
        mode.sd.iter().zip(&slopes).enumerate().map(radius).collect()
    };
    match kind {
        ProposalKind::Guided => one(GUIDED),
        ProposalKind::Componentwise => one(RANDOM),
        ProposalKind::RandomWalk | ProposalKind::TruncatedWalk => {
            let noise = mode.sd.iter().zip(&slopes).map(|(sd, slope)| (sd * slope).powi(2)).sum::<f64>().sqrt();
            let factor = (RANDOM / (mode.sd.len() as f64).sqrt()).min(most_noise / noise);
            mode.sd.iter().enumerate().map(|(j, sd)| (factor * sd).min(half(j))).collect()
        }
    }
}
