//! Parties in one process: the real kernels, the real lattice and the real noise sampler, with a seed.
//!
//! A real party's noise comes from the operating system and can't be seeded; a statistical test wants fixed seeds. So
//! these parties share every line of the release but the ledger and the generator's seed. The end-to-end tests cover those.

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

/// A shard as distinct records with how often each occurs: identical records have identical lattice values, so the sum is
/// exact and a large shard of few distinct records costs little.
pub struct Shard {
    /// `(record, count)`; each record is a data set of one row.
    cells: Vec<(ModelData, i64)>,
}

impl Shard {
    /// A shard of these rows, `(outcome, predictors)` on the model's scale, with multiplicities.
    pub fn weighted(rows: impl IntoIterator<Item = (f64, Vec<f64>, u64)>) -> Self {
        let cell = |(y, x, n): (f64, Vec<f64>, u64)| {
            let data =
                ModelData { outcome: vec![y], predictors: x.into_iter().map(|v| vec![v]).collect(), ..ModelData::default() };
            (data, i64::try_from(n).expect("a count fits"))
        };
        Self { cells: rows.into_iter().map(cell).collect() }
    }

    /// A shard held as columns.
    pub fn columns(data: ModelData) -> Self {
        Self { cells: vec![(data, 1)] }
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.cells.iter().map(|(d, n)| d.records() * n.unsigned_abs()).sum()
    }

    /// Log likelihood in plain floating point.
    pub fn log_likelihood(&self, model: &dyn Model, theta: &[f64]) -> f64 {
        self.cells.iter().map(|(d, n)| *n as f64 * model.log_likelihood(d, theta)).sum()
    }

    fn sum(&self, model: &dyn Model, query: &Query, terms: &QueryTerms) -> Vec<i64> {
        let summand = terms.summand(&query.from, &query.to, terms.sensitivity()).expect("a price");
        let mut total = vec![0; query.length()];
        for (data, n) in &self.cells {
            // These are test data.
            let one = model::sums(model, data, &[summand]).remove(0).open_components_for_test();
            total.iter_mut().zip(one).for_each(|(total, one)| *total += n * one);
        }
        total
    }
}

/// What a planted fault does to a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Noise {
    /// Discrete Gaussian at the query's scale.
    Exact,
    /// The same, and the releases that a step is tested on carry an extra offset that undoes this share of the penalty term.
    PenaltyScaled(f64),
    /// The noise of gradients is this multiple of what the query asks for.
    GradientsScaled(f64),
}

impl Noise {
    /// What is released of one component, where the sum and a draw of the asked noise are these.
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
    /// Under what the answers leave.
    masks: Option<Masks>,
    /// Sums of statistics by party and component, each computed once, as a party does.
    statistics: HashMap<(usize, u32), Vec<i64>>,
    /// Passes over one party's records so far.
    pub passes: u64,
    /// mu² that one party has spent so far.
    pub mu_squared: f64,
    /// mu² that one party may spend.
    pub budget: f64,
}

/// A finished run.
pub struct Run {
    /// `draws[parameter][chain][draw]`, warm-up left out.
    pub draws: Vec<Vec<Vec<f64>>>,
    /// Messages per phase: locate, warm-up, sampling.
    pub rounds: [u64; 3],
    /// Share of proposals accepted while sampling.
    pub acceptance: f64,
    /// Whether the budget ended it.
    pub stopped_by_budget: bool,
    /// Why the clip watch stopped it, if it did.
    pub clip_stop: Option<String>,
    /// What the clip watch warned of.
    pub clip_warning: Option<String>,
    /// The posterior by a quadratic fitted to all released log ratios.
    pub fitted: Option<FittedPosterior>,
}

impl Run {
    /// Summary of one parameter.
    pub fn summary(&self, parameter: usize) -> Summary {
        let chains: Vec<&[f64]> = self.draws[parameter].iter().map(Vec::as_slice).collect();
        diagnostics::summarise(&chains)
    }
}

impl Federation {
    /// A federation of these shards; `seed` is the noise's alone.
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

    /// The same with a planted fault.
    pub fn with_fault(mut self, fault: Noise) -> Self {
        self.fault = fault;
        self
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// Record counts.
    pub fn records(&self) -> Vec<u64> {
        self.shards.iter().map(Shard::records).collect()
    }

    /// Log posterior density of all data together, up to a constant, without privacy.
    pub fn log_posterior(&self, theta: &[f64]) -> f64 {
        let likelihood: f64 = self.shards.iter().map(|s| s.log_likelihood(self.model(), theta)).sum();
        self.spec.log_prior(theta) + likelihood
    }

    /// All answers to a round as they leave the parties, masked where the job's do, or `None` when it would overspend.
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
            give(sampler.as_mut(), &round, &releases);
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

/// The sampler of a job over parties of so many rows.
pub fn sampler_of(spec: &JobSpec, records: &[u64]) -> Box<dyn Sampler> {
    sampler::build(spec, &PartyMetadata::of_rows(records)).expect("a sampler")
}

/// The round that a sampler asks; `None` when all draws are made.
///
/// # Panics
/// Where a clip stops the chains.
pub fn asked(sampler: &mut dyn Sampler) -> Option<Round> {
    match sampler.next_round().expect("a round") {
        Next::Ask(round) => Some(round),
        Next::Done => None,
        Next::Stopped(why) => panic!("{why}"),
    }
}

/// Gives a sampler what the parties released for the round being asked.
pub fn give(sampler: &mut dyn Sampler, round: &Round, releases: &[Vec<i64>]) {
    let totals = Totals::of(round, releases).expect("releases that fit");
    sampler.absorb(&totals).expect("totals that fit");
}
