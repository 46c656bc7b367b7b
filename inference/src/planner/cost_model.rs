//! Cost model: runs the job's own sampler against the stand-in and prices every round.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::outcome::PlanError;
use super::stand_in::{Guess, StandIn};
use super::walk::Walk;
use crate::rehearsal::query_terms;
use crate::sampler;
use crate::sampler::{Next, Totals, round_price};
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::parameter::Transform;
use conclave_common::query::{PartyMetadata, Phase, Query, Round};
use conclave_privacy::accounting::{BlockCosts, PrivacyUnit};
use conclave_privacy::mechanism::{QueryKind, STEP};

/// Least number of sampling queries over all walks. Effective sample sizes are then known to about 5% if the chains mix well.
const LEAST_QUERIES: u64 = 120_000;
/// Least number of effective draws of the worst parameter, for chains that mix badly. A walk with fewer determines its effective
/// sample size only to a factor of 2.
const LEAST_EFFECTIVE: f64 = 400.0;
/// Largest number of sampling queries, in one walk and over all walks. If the budget affords more, further rounds are priced at
/// the average cost.
const MOST_QUERIES: u64 = 400_000;
/// Largest number of queries in all phases, after which an endless warm-up is abandoned.
const MOST_IN_ALL: u64 = 3_000_000;
/// Largest number of walks. Short runs vary, so a budget that ends early takes several walks.
const MOST_WALKS: u64 = 24;
/// Seed of the walk's noise. The noise is not secret, and a plan should be reproducible.
const SEED: u64 = 0x70_6c_61_6e;

pub(super) struct CostModel {
    walks: Vec<Walk>,
    conditional_sd: Vec<f64>,
    /// Long-run effective draws of each parameter per draw of each chain.
    pub(super) efficiency: Vec<f64>,
}

impl CostModel {
    /// Runs the job as often as needed to determine what its budget affords: once if the run is long.
    pub(super) fn run(spec: &JobSpec, guess: &Guess, limit_units: u64) -> Result<Self, PlanError> {
        let stand_in = StandIn::new(spec, guess)?;
        let mut endless = spec.clone();
        endless.sampler.until = None;
        endless.sampler.force = true;
        endless.sampler.draws = MOST_IN_ALL;
        let mut walks: Vec<Walk> = Vec::new();
        // Effective draws of each parameter per draw of each chain, one vector per walk.
        let mut efficiencies: Vec<Vec<f64>> = Vec::new();
        let mut asked = 0;
        for number in 0..MOST_WALKS {
            let mut one = endless.clone();
            // Another run of the same job has different noise, and so different chains.
            one.sampler.seed = spec.sampler.seed.wrapping_add(number);
            let rng = ChaCha20Rng::seed_from_u64(SEED.wrapping_add(number));
            let mut parties = Parties { spec, model: spec.build_model(), guess, stand_in: &stand_in, rng };
            let walk = walk(&one, &mut parties, limit_units)?;
            asked += walk.asked;
            efficiencies.push((0..walk.parameters()).map(|j| walk.efficiency(j)).collect());
            walks.push(walk);
            let queries: u64 = walks.iter().map(Walk::queries).sum();
            let known =
                queries >= MOST_QUERIES || queries >= LEAST_QUERIES && least_effective(&walks, &efficiencies) >= LEAST_EFFECTIVE;
            if known || asked >= MOST_IN_ALL {
                break;
            }
        }
        let parameters = walks.first().map_or(0, Walk::parameters);
        let mean = |j: usize| efficiencies.iter().map(|of_walk| of_walk[j]).sum::<f64>() / walks.len() as f64;
        let efficiency = (0..parameters).map(mean).collect();
        Ok(Self { walks, conditional_sd: stand_in.conditional_sd, efficiency })
    }

    pub(super) fn mean(&self, of: impl Fn(&Walk) -> f64) -> f64 {
        self.walks.iter().map(of).sum::<f64>() / self.walks.len() as f64
    }

    /// Number of rounds of `locate` and warm-up.
    pub(super) fn rounds_before_sampling(&self) -> u64 {
        self.mean(|walk| walk.before as f64).round() as u64
    }

    pub(super) fn rounds_within(&self, units: u64) -> u64 {
        self.mean(|walk| walk.rounds_within(units) as f64).round() as u64
    }

    /// Cost of a number of rounds, in units of 2^-48 of mu^2.
    pub(super) fn cost_of(&self, rounds: u64) -> f64 {
        self.mean(|walk| walk.cost_of(rounds))
    }

    /// Returns the effective draws of each parameter in a run that keeps at most `draws` of each chain within a sum of charges,
    /// as its diagnostics would report them. It is the median over the walks, because the diagnostics of short chains sometimes
    /// report far too many.
    pub(super) fn effective(&self, draws: u64, units: u64) -> Vec<f64> {
        let kept = |walk: &Walk| walk.rounds_within(units).saturating_sub(walk.before).min(draws);
        let one = |j: usize| median(self.walks.iter().map(|walk| walk.effective(j, kept(walk))).collect());
        (0..self.walks.first().map_or(0, Walk::parameters)).map(one).collect()
    }

    /// Constant of the small-step law: effective draws per query, times the total noise variance, over the mean squared move in
    /// units of the conditional posterior sd of the coordinate. It is `NaN` for the last element of a simplex, which has no
    /// coordinate of its own.
    pub(super) fn kappas(&self, transform: &Transform, total_variance: f64) -> Vec<f64> {
        let efficiency = &self.efficiency;
        let mut kappas = vec![f64::NAN; efficiency.len()];
        for (j, (parameter, tau)) in transform.parameters().into_iter().zip(&self.conditional_sd).enumerate() {
            let (queries, moved) = (self.mean(|walk| walk.queries() as f64), self.mean(|walk| walk.moved[j]));
            kappas[parameter] = efficiency[parameter] * total_variance * tau * tau * queries / moved;
        }
        kappas
    }
}

/// Returns the fewest effective draws of any parameter, over all walks; infinite if the draws carry no information.
fn least_effective(walks: &[Walk], efficiencies: &[Vec<f64>]) -> f64 {
    if walks.iter().all(|walk| walk.drawn() == 0) {
        return f64::INFINITY;
    }
    let of = |j: usize| {
        let each = walks.iter().zip(efficiencies).map(|(walk, efficiency)| walk.drawn() as f64 * efficiency[j]);
        each.filter(|effective| effective.is_finite()).sum::<f64>()
    };
    (0..walks[0].parameters()).map(of).fold(f64::INFINITY, f64::min)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = |at: usize| values.get(at).copied().unwrap_or(f64::NAN);
    0.5 * (middle(values.len() / 2) + middle(values.len().saturating_sub(1) / 2))
}

/// Runs the job once, until its budget is spent and its chains are characterised, or until the query limits.
fn walk(spec: &JobSpec, parties: &mut Parties<'_>, limit_units: u64) -> Result<Walk, PlanError> {
    let mut sampler = sampler::build(spec, &PartyMetadata::of_rows(&parties.guess.records))?;
    let transform = spec.transform();
    let mut walk = Walk::new(spec, transform.dimension());
    let (unit, mut blocks) = (PrivacyUnit::default(), BlockCosts::default());
    let mut spent = 0_u64;
    loop {
        let round = match sampler.next_round()? {
            Next::Ask(round) => round,
            Next::Done => break,
            Next::Stopped(reason) => return Err(PlanError::Stopped(reason)),
        };
        if round.phase == Phase::Sampling {
            walk.samples(&round, |theta| transform.unconstrain(theta));
        }
        let before = spent;
        spent = spent.saturating_add(round_price(parties.spec, parties.model.as_ref(), unit, &mut blocks, &round)?);
        walk.asks(&round, before, spent);
        sampler.absorb(&Totals::of(&round, &parties.answer(&round)?)?)?;
        walk.takes(&sampler.take_draws());
        let ended = spent > limit_units && (walk.reaches_sampling(limit_units) || walk.queries() >= LEAST_QUERIES);
        if ended || walk.queries() >= MOST_QUERIES || walk.asked >= MOST_IN_ALL {
            break;
        }
    }
    walk.acceptance = sampler.acceptance_rate().unwrap_or(f64::NAN);
    if !spec.algorithm.walks_on_ratios() {
        // Without statistics the chains move arbitrarily. Only their costs are valid.
        walk.forget_draws();
    }
    Ok(walk)
}

/// Simulated parties that hold the stand-in together, each in proportion to its records.
struct Parties<'a> {
    spec: &'a JobSpec,
    model: Box<dyn Model>,
    guess: &'a Guess,
    stand_in: &'a StandIn<'a>,
    rng: ChaCha20Rng,
}

impl Parties<'_> {
    fn answer(&mut self, round: &Round) -> Result<Vec<Vec<i64>>, PlanError> {
        let total: f64 = self.guess.records.iter().map(|n| *n as f64).sum();
        let mut releases = vec![Vec::with_capacity(round.length()); self.guess.records.len()];
        for query in &round.queries {
            let Query { from, to, noise, .. } = query;
            let terms = query_terms(self.spec, self.model.as_ref(), PrivacyUnit::default(), query)?;
            // For each integer: the sum over all records, and a constant per record, in lattice units. The stand-in has no
            // statistics, and its clips never apply, so those answers are noise alone.
            let none = || vec![(0.0, 0.0); query.length()];
            let sums = match query.kind {
                QueryKind::Ratio => vec![(self.stand_in.log_ratio(from, to) / STEP, -terms.centre() / STEP)],
                // The mean over samples. The stand-in does not simulate the sampling noise.
                QueryKind::SampledRatio => {
                    vec![(self.spec.sampler.batch.get() * self.stand_in.log_ratio(from, to) / STEP, 0.0)]
                }
                QueryKind::Gradient { .. } => self.stand_in.gradient(from, to),
                QueryKind::Curvature { .. } => self.stand_in.information(self.model.as_ref(), to).unwrap_or_else(none),
                _ => none(),
            };
            for (records, released) in self.guess.records.iter().zip(&mut releases) {
                let records = *records as f64;
                released.extend(sums.iter().map(|(all, each)| {
                    let z: f64 = StandardNormal.sample(&mut self.rng);
                    (records / total * all + records * each + noise.units() as f64 * z).round() as i64
                }));
            }
        }
        Ok(releases)
    }
}
