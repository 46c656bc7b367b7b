//! The cost model runs the job's own sampler against the stand-in and prices every round.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::outcome::PlanError;
use super::stand_in::{Guess, StandIn};
use crate::accounting::PrivacyUnit;
use crate::diagnostics;
use crate::job::{Algorithm, JobSpec};
use crate::mechanism::{QueryKind, STEP};
use crate::model::Model;
use crate::rehearsal::query_terms;
use crate::sampler::{self, Next, PartyMetadata, Phase, Query, Round, Totals};

/// Queries of sampling that are walked at least: effective sample sizes are then known to some 5%.
const LEAST_QUERIES: u64 = 120_000;
/// And at most, where the budget holds more: costs beyond are those of an average round.
const MOST_QUERIES: u64 = 400_000;
/// Queries in all, after which a warm-up without end is given up.
const MOST_IN_ALL: u64 = 3_000_000;
/// The walk's noise is nobody's secret, and a plan should say the same twice.
const SEED: u64 = 0x70_6c_61_6e;

/// What the walk found.
pub(super) struct CostModel {
    /// Units of 2^-48 of mu^2 that a party has spent after each round.
    cumulative: Vec<u64>,
    /// Rounds before the first of sampling; `None` where the walk did not get there.
    before: Option<usize>,
    queries: u64,
    /// `[parameter][chain][draw]` of sampling.
    draws: Vec<Vec<Vec<f64>>>,
    acceptance: f64,
    /// Sum over sampling queries of each coordinate's squared move.
    moved: Vec<f64>,
    conditional_sd: Vec<f64>,
}

impl CostModel {
    /// Walks until sampling is known well enough and the budget is spent, or known to hold more.
    pub(super) fn run(spec: &JobSpec, guess: &Guess, limit_units: u64) -> Result<Self, PlanError> {
        let stand_in = StandIn::new(spec, guess)?;
        let mut endless = spec.clone();
        endless.sampler.until = None;
        endless.sampler.draws = MOST_IN_ALL;
        let mut sampler = sampler::build(&endless, &PartyMetadata::of_rows(&guess.records))?;
        let mut parties =
            Parties { spec, model: spec.build_model(), guess, stand_in: &stand_in, rng: ChaCha20Rng::seed_from_u64(SEED) };
        let (d, chains) = (spec.dimension(), spec.sampler.chains as usize);
        let mut walk = Self {
            cumulative: Vec::new(),
            before: None,
            queries: 0,
            draws: vec![vec![Vec::new(); chains]; d],
            acceptance: 0.0,
            moved: vec![0.0; d],
            conditional_sd: Vec::new(),
        };
        let (mut spent, mut asked) = (0_u64, 0_u64);
        loop {
            let round = match sampler.next_round()? {
                Next::Ask(round) => round,
                Next::Done => break,
                Next::Stopped(reason) => return Err(PlanError::Stopped(reason)),
            };
            asked += round.queries.len() as u64;
            if round.phase == Phase::Sampling {
                walk.before.get_or_insert(walk.cumulative.len());
                walk.queries += round.queries.len() as u64;
                for query in &round.queries {
                    let steps = query.from.iter().zip(&query.to);
                    walk.moved.iter_mut().zip(steps).for_each(|(sum, (from, to))| *sum += (to - from).powi(2));
                }
            }
            spent = spent.saturating_add(parties.price(&round)?);
            walk.cumulative.push(spent);
            sampler.absorb(&Totals::of(&round, &parties.answer(&round)?)?)?;
            for draw in sampler.take_draws().iter().filter(|draw| !draw.warmup) {
                draw.theta.iter().zip(&mut walk.draws).for_each(|(x, chains)| chains[draw.chain as usize].push(*x));
            }
            let known = walk.queries >= LEAST_QUERIES && (spent > limit_units || walk.queries >= MOST_QUERIES);
            if known || asked >= MOST_IN_ALL {
                break;
            }
        }
        walk.acceptance = sampler.acceptance_rate().unwrap_or(f64::NAN);
        walk.conditional_sd = stand_in.conditional_sd;
        if spec.algorithm != Algorithm::Penalty {
            // Without statistics the chains go anywhere: what they cost is right, and nothing else.
            walk.acceptance = f64::NAN;
            walk.draws.iter_mut().for_each(Vec::clear);
        }
        Ok(walk)
    }

    /// Rounds of locate and warm-up.
    pub(super) fn rounds_before_sampling(&self) -> u64 {
        self.before.map_or(u64::MAX, |rounds| rounds as u64)
    }

    /// How many rounds stay within a sum of charges.
    pub(super) fn rounds_within(&self, units: u64) -> u64 {
        let within = self.cumulative.partition_point(|spent| *spent <= units);
        let Some(last) = self.cumulative.last().filter(|_| within == self.cumulative.len()) else { return within as u64 };
        let (rounds, cost) = self.sampling();
        within as u64 + u64::try_from(u128::from(units - last) * u128::from(rounds) / u128::from(cost.max(1))).unwrap_or(u64::MAX)
    }

    /// What so many rounds cost, in units of 2^-48 of mu^2.
    pub(super) fn cost_of(&self, rounds: u64) -> f64 {
        let at = usize::try_from(rounds).unwrap_or(usize::MAX).min(self.cumulative.len());
        let walked = at.checked_sub(1).map_or(0.0, |last| self.cumulative[last] as f64);
        let (sampled, cost) = self.sampling();
        walked + (rounds - at as u64) as f64 * cost as f64 / sampled.max(1) as f64
    }

    /// Mean charge of a query of sampling.
    pub(super) fn mean_price(&self) -> f64 {
        self.sampling().1 as f64 / self.queries.max(1) as f64
    }

    /// Share of proposals accepted while sampling.
    pub(super) fn acceptance(&self) -> f64 {
        self.acceptance
    }

    /// Effective draws of each parameter's mean per draw made.
    pub(super) fn efficiency(&self) -> Vec<f64> {
        let one = |chains: &Vec<Vec<f64>>| {
            let slices: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
            diagnostics::ess(&slices) / chains.iter().map(Vec::len).sum::<usize>() as f64
        };
        self.draws.iter().map(one).collect()
    }

    /// The constant of the law for small steps: effective draws per query, times total noise variance,
    /// over the mean squared move in units of the posterior sd of the coordinate given the others.
    pub(super) fn kappas(&self, total_variance: f64) -> Vec<f64> {
        let parameters = self.efficiency().into_iter().zip(&self.moved).zip(&self.conditional_sd);
        parameters.map(|((e, moved), tau)| e * total_variance * tau * tau * self.queries as f64 / moved).collect()
    }

    /// Rounds of sampling and what they cost.
    fn sampling(&self) -> (u64, u64) {
        let Some(before) = self.before else { return (0, 0) };
        let at = |rounds: usize| rounds.checked_sub(1).map_or(0, |last| self.cumulative[last]);
        ((self.cumulative.len() - before) as u64, at(self.cumulative.len()) - at(before))
    }
}

/// Parties that hold the stand-in between them, each its share of the records.
struct Parties<'a> {
    spec: &'a JobSpec,
    model: Box<dyn Model>,
    guess: &'a Guess,
    stand_in: &'a StandIn,
    rng: ChaCha20Rng,
}

impl Parties<'_> {
    /// What one party is charged for a round.
    fn price(&self, round: &Round) -> Result<u64, PlanError> {
        let unit = PrivacyUnit::default();
        round.queries.iter().try_fold(0_u64, |sum, query| {
            let terms = query_terms(self.spec, self.model.as_ref(), unit, query)?;
            Ok(sum.saturating_add(unit.charge_of_kind(query.kind, terms.sensitivity(), query.noise)?))
        })
    }

    fn answer(&mut self, round: &Round) -> Result<Vec<Vec<i64>>, PlanError> {
        let total: f64 = self.guess.records.iter().map(|n| *n as f64).sum();
        let mut releases = vec![Vec::with_capacity(round.length()); self.guess.records.len()];
        for query in &round.queries {
            let Query { from, to, noise, .. } = query;
            let terms = query_terms(self.spec, self.model.as_ref(), PrivacyUnit::default(), query)?;
            // The stand-in has no statistics, and its clips never bite: those answers are noise alone.
            let ratio = if query.kind == QueryKind::Ratio { self.stand_in.log_ratio(from, to) } else { 0.0 };
            for (records, released) in self.guess.records.iter().zip(&mut releases) {
                let records = *records as f64;
                released.extend((0..query.length()).map(|_| {
                    let z: f64 = StandardNormal.sample(&mut self.rng);
                    let answer = records / total * ratio - records * terms.centre() + noise.sd() * z;
                    (answer / STEP).round() as i64
                }));
            }
        }
        Ok(releases)
    }
}
