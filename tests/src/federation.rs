//! Parties in one process: the real kernels, the real lattice and the real noise sampler, with a seed.
//!
//! A real party's noise comes from the operating system and cannot be seeded; a statistical test needs fixed seeds. These parties
//! therefore share every line of the release path except the ledger and the generator's seed. The end-to-end tests cover those
//! two.

use std::collections::HashMap;

use conclave_common::job::JobSpec;
use conclave_common::model;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Draw, PartyMetadata, Phase, Query, Round};
use conclave_inference::diagnostics;
use conclave_inference::diagnostics::Summary;
use conclave_inference::sampler;
use conclave_inference::sampler::{FittedPosterior, Next, Sampler, Totals};
use conclave_privacy::accounting;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{DiscreteGaussian, QueryKind, STEP};
use conclave_privacy::pass::ModelData;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::masks::Masks;

/// A shard as distinct records with their counts. Identical records have identical lattice values, so the sum is exact and a
/// large shard of few distinct records is cheap.
pub struct Shard {
    /// `(record, count)`; a record is a data set of one row, except in a shard of whole columns.
    cells: Vec<(ModelData, i64)>,
}

impl Shard {
    /// Builds a shard of these rows, `(outcome, predictors, count)` on the model's scale.
    pub fn weighted(rows: impl IntoIterator<Item = (f64, Vec<f64>, u64)>) -> Self {
        let cell = |(y, x, n): (f64, Vec<f64>, u64)| {
            let data =
                ModelData { outcome: vec![y], predictors: x.into_iter().map(|v| vec![v]).collect(), ..ModelData::default() };
            (data, i64::try_from(n).expect("a count fits"))
        };
        Self { cells: rows.into_iter().map(cell).collect() }
    }

    /// Builds a shard from columns.
    pub fn columns(data: ModelData) -> Self {
        Self { cells: vec![(data, 1)] }
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.cells.iter().map(|(d, n)| d.records() * n.unsigned_abs()).sum()
    }

    /// Returns the log likelihood in plain floating point.
    pub fn log_likelihood(&self, model: &dyn Model, theta: &[f64]) -> f64 {
        self.cells.iter().map(|(d, n)| *n as f64 * model.log_likelihood(d, theta)).sum()
    }

    fn sum(&self, model: &dyn Model, query: &Query, terms: &QueryTerms) -> Vec<i64> {
        let summand = terms.summand(&query.from, &query.to, terms.sensitivity()).expect("a price");
        let mut total = vec![0; query.length()];
        for (data, n) in &self.cells {
            // The data are made up, so the sums may be opened.
            let one = model::sums(model, data, &[summand]).remove(0).open_components_for_test();
            total.iter_mut().zip(one).for_each(|(total, one)| *total += n * one);
        }
        total
    }
}

/// A planted fault of a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Noise {
    /// Discrete Gaussian at the query's scale.
    Exact,
    /// The same, with releases that an acceptance test uses offset so that only this share of the penalty term remains.
    PenaltyScaled(f64),
    /// Noise of gradients at this multiple of the query's scale.
    GradientsScaled(f64),
}

impl Noise {
    /// Returns the release of one component, given its sum and a draw of the requested noise.
    fn released(self, query: &Query, sum: i64, draw: i64) -> i64 {
        let tested = matches!(query.kind, QueryKind::Ratio | QueryKind::Statistic { .. } | QueryKind::Remainder { .. });
        match (self, query.kind) {
            (Self::PenaltyScaled(share), _) if tested => {
                sum + draw + ((1.0 - share) * query.noise.variance() / 2.0 / STEP) as i64
            }
            (Self::GradientsScaled(by), QueryKind::Gradient { .. }) => sum + (by * draw as f64) as i64,
            _ => sum + draw,
        }
    }
}

/// All parties of one job.
pub struct Federation {
    /// The job.
    pub spec: JobSpec,
    model: Box<dyn Model>,
    shards: Vec<Shard>,
    rng: ChaCha20Rng,
    fault: Noise,
    /// Masks over the answers, in a secure job.
    masks: Option<Masks>,
    /// Sums of statistics by party and component, each computed once, as in a party.
    statistics: HashMap<(usize, u32), Vec<i64>>,
    /// Passes over one party's records so far.
    pub passes: u64,
    /// Total mu² of one party's releases so far.
    pub mu_squared: f64,
    /// Budget of one party, as mu².
    pub budget: f64,
}

/// A finished run.
pub struct Run {
    /// `draws[parameter][chain][draw]`, without warm-up.
    pub draws: Vec<Vec<Vec<f64>>>,
    /// Rounds per phase: locate, warm-up, sampling.
    pub rounds: [u64; 3],
    /// Share of proposals accepted while sampling.
    pub acceptance: f64,
    /// True where the budget ended the run.
    pub stopped_by_budget: bool,
    /// Reason given by the clip watch, if it stopped the run.
    pub clip_stop: Option<String>,
    /// Warning of the clip watch, if any.
    pub clip_warning: Option<String>,
    /// The posterior from a quadratic fitted to all released log ratios.
    pub fitted: Option<FittedPosterior>,
}

impl Run {
    /// Returns the summary of one parameter.
    pub fn summary(&self, parameter: usize) -> Summary {
        let chains: Vec<&[f64]> = self.draws[parameter].iter().map(Vec::as_slice).collect();
        diagnostics::summarise(&chains)
    }
}

impl Federation {
    /// Creates a federation of these shards; `seed` seeds the noise only.
    pub fn new(spec: JobSpec, shards: Vec<Shard>, seed: u64) -> Self {
        let budget = conclave_privacy::accounting::PrivacyFilter::new(&spec.privacy.budget).expect("a budget");
        Self {
            model: spec.build_model(),
            budget: conclave_privacy::accounting::mu_squared(budget.limit_units()),
            masks: Masks::of(&spec, seed),
            spec,
            shards,
            rng: ChaCha20Rng::seed_from_u64(seed),
            fault: Noise::Exact,
            statistics: HashMap::new(),
            passes: 0,
            mu_squared: 0.0,
        }
    }

    /// Plants a fault.
    pub fn with_fault(mut self, fault: Noise) -> Self {
        self.fault = fault;
        self
    }

    /// Returns the model.
    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// Returns the record counts of the parties.
    pub fn records(&self) -> Vec<u64> {
        self.shards.iter().map(Shard::records).collect()
    }

    /// Returns the log posterior density given all data together, up to a constant, without privacy.
    pub fn log_posterior(&self, theta: &[f64]) -> f64 {
        let likelihood: f64 = self.shards.iter().map(|s| s.log_likelihood(self.model(), theta)).sum();
        self.spec.log_prior(theta) + likelihood
    }

    /// Returns all releases for a round, masked in a secure job; `None` when the round would exceed the budget.
    pub fn answer(&mut self, round: &Round) -> Option<Vec<Vec<i64>>> {
        let price: f64 = round.queries.iter().map(|q| self.price(q)).sum();
        if self.mu_squared + price > self.budget {
            return None;
        }
        self.mu_squared += price;
        let parties = 0..self.shards.len();
        let released = |party| round.queries.iter().flat_map(|q| self.release(party, q)).collect();
        let releases: Vec<Vec<i64>> = parties.map(released).collect();
        Some(match &self.masks {
            Some(masks) => masks.cover(round, &releases),
            None => releases,
        })
    }

    fn terms(&self, query: &Query) -> QueryTerms {
        let points = (query.from.as_slice(), query.to.as_slice());
        QueryTerms::new(self.model(), &self.spec, PrivacyUnit::default(), query.kind, points).expect("a price")
    }

    fn price(&self, query: &Query) -> f64 {
        let (unit, sensitivity) = (PrivacyUnit::default(), self.terms(query).sensitivity());
        accounting::mu_squared(unit.charge_of_kind(query.kind, sensitivity, self.spec.protected(query.noise)).expect("a charge"))
    }

    fn sum(&mut self, party: usize, query: &Query) -> Vec<i64> {
        if let QueryKind::Statistic { component } = query.kind
            && let Some(sum) = self.statistics.get(&(party, component))
        {
            return sum.clone();
        }
        let sum = self.shards[party].sum(self.model.as_ref(), query, &self.terms(query));
        self.passes += 1;
        if let QueryKind::Statistic { component } = query.kind {
            self.statistics.insert((party, component), sum.clone());
        }
        sum
    }

    fn release(&mut self, party: usize, query: &Query) -> Vec<i64> {
        let sum = self.sum(party, query);
        let gaussian = DiscreteGaussian::new(query.noise);
        sum.into_iter().map(|sum| self.fault.released(query, sum, gaussian.sample(&mut self.rng))).collect()
    }

    /// Runs the job to its end.
    pub fn run(&mut self) -> Run {
        let spec = &self.spec;
        let mut sampler = sampler_of(spec, &self.records());
        let chains = spec.sampler.chains as usize;
        let mut run = Run {
            draws: vec![vec![Vec::new(); chains]; spec.dimension()],
            rounds: [0; 3],
            acceptance: 0.0,
            stopped_by_budget: false,
            clip_stop: None,
            clip_warning: None,
            fitted: None,
        };
        loop {
            let round = match sampler.next_round() {
                Ok(Next::Ask(round)) => round,
                Ok(Next::Done) => break,
                Ok(Next::Stopped(reason)) => {
                    run.clip_stop = Some(reason);
                    break;
                }
                Err(other) => panic!("{other}"),
            };
            let Some(releases) = self.answer(&round) else {
                run.stopped_by_budget = true;
                break;
            };
            run.rounds[match round.phase {
                Phase::Locate => 0,
                Phase::Warmup => 1,
                Phase::Sampling => 2,
            }] += 1;
            absorb(sampler.as_mut(), &round, &releases);
            for Draw { chain, warmup, theta, .. } in sampler.take_draws() {
                if !warmup {
                    theta.iter().enumerate().for_each(|(j, x)| run.draws[j][chain as usize].push(*x));
                }
            }
        }
        run.acceptance = sampler.acceptance_rate().expect("chains that decide");
        run.clip_warning = sampler.warnings().into_iter().next();
        run.fitted = sampler.report().surrogate;
        run
    }
}

/// Builds the sampler of a job for parties with these numbers of rows.
pub fn sampler_of(spec: &JobSpec, records: &[u64]) -> Box<dyn Sampler> {
    sampler::build(spec, &PartyMetadata::of_rows(records)).expect("a sampler")
}

/// Returns the sampler's next round; `None` when all draws are made.
///
/// # Panics Panics where a clip stops the chains.
pub fn next_round(sampler: &mut dyn Sampler) -> Option<Round> {
    match sampler.next_round().expect("a round") {
        Next::Ask(round) => Some(round),
        Next::Done => None,
        Next::Stopped(why) => panic!("{why}"),
    }
}

/// Passes the parties' releases for the current round to a sampler.
pub fn absorb(sampler: &mut dyn Sampler, round: &Round, releases: &[Vec<i64>]) {
    let totals = Totals::of(round, releases).expect("releases that fit");
    sampler.absorb(&totals).expect("totals that fit");
}
