//! The futility forecast: an estimate of a run's draws at the end of its budget, from released numbers only.
//!
//! Spent budget is not returned, so chains that will not agree by the end of it end early. Effective draws grow in proportion to
//! the draws, and `R-hat² − 1` falls accordingly. For chains shorter than their own memory the number of effective draws is
//! overestimated, so that the forecast is too optimistic rather than too pessimistic. The forecast is a function of the job, of
//! the parties' public metadata, and of their releases.

use super::{Obstacle, SamplerError, Target};
use crate::diagnostics::{ess_bulk, split_rhat};
use crate::figures::rounded_up;
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::{Draw, QueryTerms, Round};
use conclave_privacy::accounting::{BlockCosts, Budget, PrivacyFilter, PrivacyUnit, gaussian_dp};

/// Least planned effective draws of all chains. With fewer the reported sds are too small, without any visible sign.
pub(crate) const LEAST_PLANNED: f64 = 20.0;

/// Number of kept draws of a chain at the first look.
const FIRST_LOOK: u64 = 100;
/// Looks grow by a quarter each.
const GROWTH: u64 = 4;
/// A run that is nearly over is not stopped: least ratio of the whole run's length to the present one.
const NEAREST: f64 = 1.25;
/// Largest ratio of the forecast length to the present one.
const FURTHEST: f64 = 8.0;
/// Maximum number of a chain's draws that are kept for the look; beyond it, every second, fourth, … one is kept.
const MOST_KEPT: usize = 8192;
/// Effective draws of each chain, and R-hat, of useless draws.
const USELESS: (f64, f64) = (10.0, 1.1);
/// Least ratio of the forecast `R-hat² − 1` to the required one.
const EXCESS: f64 = 3.0;
/// Largest ratio of the forecast effective draws to the useful number, and to the number that a job states.
const SHARES: (f64, f64) = (0.5, 0.25);

/// The reason why a run is futile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Forecast {
    /// Forecast of a parameter's draws at the end of the budget.
    Apart(AtTheEnd),
    /// The share of accepted steps, if chains accept hardly any.
    Stuck(f64),
    /// The effective draws that the budget allows after a search.
    Few {
        /// Their number.
        ess: f64,
        /// Approximate epsilon that would allow enough.
        epsilon: f64,
    },
    /// The reason why the remaining releases cannot make an answer adequate.
    Unreachable(Obstacle),
}

/// The forecast of a parameter's draws at the end of the budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtTheEnd {
    parameter: usize,
    /// Number of kept draws of a chain by then.
    draws: f64,
    rhat: f64,
    ess: f64,
}

impl Forecast {
    /// Returns the epsilon at which the budget would allow `wanted` effective draws in place of `ess`, whose number is proportional
    /// to mu².
    pub(super) fn epsilon_for(ess: f64, wanted: f64, budget: &Budget) -> f64 {
        gaussian_dp::epsilon(budget.mu() * (wanted / ess.max(f64::MIN_POSITIVE)).sqrt(), budget.delta)
    }

    /// Returns the reason for the stop, as a sentence.
    #[must_use]
    pub fn word(&self, spec: &JobSpec) -> String {
        let AtTheEnd { parameter, draws, rhat, ess } = match self {
            Self::Apart(at) => at,
            Self::Unreachable(obstacle) => {
                return format!(
                    "the run was stopped for futility after its first stages, and the rest of the budget was not spent: {}. Ask for a larger \
                     epsilon or more records; to continue anyway, set force = true under [sampler].",
                    obstacle.words()
                );
            }
            Self::Few { ess, epsilon } => {
                return format!(
                    "the run was stopped for futility after its search, and the rest of the budget was not spent: it would allow about {ess:.0} \
                     effective draws, and fewer than {LEAST_PLANNED:.0} determine neither means nor sds. The draws are from what the search released. \
                     About epsilon {} would be needed; to continue anyway, set force = true under [sampler].",
                    rounded_up(*epsilon)
                );
            }
            Self::Stuck(taken) => {
                return format!(
                    "the run was stopped for futility, and the rest of the budget was not spent: of the chains' steps {:.0}% were taken, so that the \
                     draws are those of no posterior. The search's share of the budget did not find where the posterior lies, or how wide it is: ask \
                     for a larger epsilon or fewer parameters, or for a larger locate_share; to continue anyway, set force = true under [sampler].",
                    100.0 * taken
                );
            }
        };
        let names = spec.model.parameter_names();
        format!(
            "the run was stopped for futility, and the rest of the budget was not spent: with all of it, {draws:.0} draws of each chain, the split R-hat of \
             {} would be about {rhat:.2}, of {ess:.0} effective draws. Ask for a larger epsilon, fewer parameters or better starting values (`conclave \
             plan`); to continue anyway, set force = true under [sampler].",
            names.get(*parameter).map_or("a parameter", String::as_str),
        )
    }
}

/// Returns the charge of a round at a party with this privacy unit; a subsampled release costs its part of a block. Errors: a
/// query has no price.
pub(crate) fn round_price(
    spec: &JobSpec,
    model: &dyn Model,
    unit: PrivacyUnit,
    blocks: &mut BlockCosts,
    round: &Round,
) -> Result<u64, SamplerError> {
    round.queries.iter().try_fold(0_u64, |sum, query| {
        let terms = QueryTerms::new(model, spec, unit, query.kind, (&query.from, &query.to))?;
        let charge = match spec.block_terms(query.kind, unit, (terms.sensitivity(), query.noise)) {
            Some(block) => blocks.of(&block)?.units.div_ceil(block.releases),
            None => unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise))?,
        };
        Ok(sum.saturating_add(charge))
    })
}

/// Watches kept draws and charges.
pub(super) struct FutilityWatch {
    /// Kept draws of each chain, `[parameter][chain][draw]`; empty if there is nothing to watch.
    history: Vec<Vec<Vec<f64>>>,
    /// Interval between the draws in it.
    stride: u64,
    units: Vec<PrivacyUnit>,
    /// Costs of blocks of subsampled releases.
    blocks: BlockCosts,
    limit: u64,
    spent: u64,
    /// Cost of the rounds of kept draws.
    sampling: u64,
    most_draws: u64,
    /// Effective draws and `R-hat² − 1` beyond which a run is futile.
    bar: (f64, f64),
    next_look: u64,
    /// Set if the last look found the run futile.
    before: bool,
    found: Option<Forecast>,
}

impl FutilityWatch {
    /// Creates the watch of a job at parties with these units of privacy. It is inactive if the job is forced, has one chain, or
    /// has an invalid budget.
    pub(super) fn new(spec: &JobSpec, units: impl Iterator<Item = PrivacyUnit>) -> Self {
        let limit = PrivacyFilter::new(&spec.privacy.budget).map_or(0, |filter| filter.limit_units());
        let watched = !spec.sampler.force && spec.sampler.chains > 1 && limit > 0;
        let mut of: Vec<PrivacyUnit> = Vec::new();
        units.for_each(|unit| {
            if !of.contains(&unit) {
                of.push(unit);
            }
        });
        let excess = |rhat: f64| EXCESS * (rhat * rhat - 1.0);
        let bar = match spec.sampler.until {
            Some(until) => (SHARES.1 * until.ess, excess(until.rhat)),
            None => (SHARES.0 * USELESS.0 * f64::from(spec.sampler.chains), excess(USELESS.1)),
        };
        Self {
            history: if watched { vec![vec![Vec::new(); spec.sampler.chains as usize]; spec.dimension()] } else { Vec::new() },
            stride: 1,
            units: of,
            blocks: BlockCosts::default(),
            limit,
            spent: 0,
            sampling: 0,
            most_draws: spec.sampler.draws,
            bar,
            next_look: FIRST_LOOK,
            before: false,
            found: None,
        }
    }

    /// Adds the cost of a round to the party where it costs most.
    pub(super) fn charge(&mut self, target: &Target, round: &Round, sampling: bool) {
        if self.history.is_empty() {
            return;
        }
        let Self { units, blocks, .. } = self;
        let mut at = |unit: &PrivacyUnit| round_price(&target.spec, target.model.as_ref(), *unit, blocks, round).ok();
        match units.iter().map(&mut at).max().flatten() {
            Some(units) => self.pays(units, sampling),
            // A run with queries that have no price can't be forecast.
            None => self.history.clear(),
        }
    }

    fn pays(&mut self, units: u64, sampling: bool) {
        self.spent = self.spent.saturating_add(units);
        self.sampling = self.sampling.saturating_add(if sampling { units } else { 0 });
    }

    /// Adds a kept draw from the chain's step with this number.
    pub(super) fn push(&mut self, draw: &Draw, step: u64) {
        if step.is_multiple_of(self.stride) {
            for (chains, value) in self.history.iter_mut().zip(&draw.theta) {
                chains[draw.chain as usize].push(*value);
            }
        }
    }

    /// Makes a forecast, if it is due after this number of kept draws of every chain. Only a finding of two looks in a row
    /// counts.
    pub(super) fn look(&mut self, draws: u64) {
        if self.history.is_empty() || self.found.is_some() || draws < self.next_look {
            return;
        }
        self.next_look = draws + (draws / GROWTH).max(1);
        let rate = self.sampling as f64 / draws as f64;
        let affordable = draws as f64 + self.limit.saturating_sub(self.spent) as f64 / rate.max(1.0);
        let growth = affordable / draws as f64;
        // A run that ends by its number of draws has the length that its analyst wants, and leaves budget.
        if affordable >= self.most_draws as f64 || !(NEAREST..=FURTHEST).contains(&growth) {
            return;
        }
        let mut least = f64::INFINITY;
        let mut worst: Option<AtTheEnd> = None;
        for (parameter, chains) in self.history.iter().enumerate() {
            let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
            let (ess, excess) = (growth * ess_bulk(&chains), (split_rhat(&chains).powi(2) - 1.0) / growth);
            least = least.min(ess);
            if ess < self.bar.0 && excess > self.bar.1 && worst.is_none_or(|worst| ess < worst.ess) {
                worst = Some(AtTheEnd { parameter, draws: growth * draws as f64, rhat: (1.0 + excess).sqrt(), ess });
            }
        }
        self.found = worst.filter(|_| self.before).map(Forecast::Apart);
        self.before = worst.is_some();
        if self.found.is_some() || (worst.is_none() && least >= growth * self.bar.0) {
            // Nothing more can be found: the draws have already reached their target.
            self.history.clear();
        }
        self.thin();
    }

    fn thin(&mut self) {
        if self.history.first().and_then(|chains| chains.first()).is_some_and(|chain| chain.len() > MOST_KEPT) {
            self.stride *= 2;
            let every_second = |chain: &mut Vec<f64>| *chain = chain.iter().skip(1).step_by(2).copied().collect();
            self.history.iter_mut().flatten().for_each(every_second);
        }
    }

    pub(super) fn found(&self) -> Option<&Forecast> {
        self.found.as_ref()
    }
}

#[cfg(test)]
#[path = "tests/futility.rs"]
mod tests;
