//! Runs all parties of a job in one process: the real kernels, lattice, noise and privacy filter, but no ledger.
//!
//! A rehearsal spends no owner's budget. It is for records that its user may see anyway: the analyst's own, or synthetic ones.

use rand::CryptoRng;

use conclave_common::job::JobSpec;
use conclave_common::model::{Model, Summand};
use conclave_common::query::{Candidates, PartyMetadata, Query, QueryError, QueryTerms, Round};
use conclave_privacy::accounting::{
    AccountingError, Cover, FilterRefusal, Honest, OpenBlocks, Priced, PrivacyFilter, PrivacyUnit, SamplingProbability,
    SubsampledError,
};
use conclave_privacy::mechanism::NoiseSample;
use conclave_privacy::pass::{Hold, LatticeSum, ModelData, NoSum, PoissonSampling, Threads, log_weights};

/// Failure to answer a round, other than an exhausted budget.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RehearsalError {
    /// The number of shards differs from the number of parties.
    #[error("{got} shards for {expected} parties")]
    Parties {
        /// Number of parties.
        expected: usize,
        /// Number of shards.
        got: usize,
    },
    /// A query does not belong to the job, or is out of range.
    #[error(transparent)]
    QueryTerms(#[from] QueryError),
    /// The accounting cannot represent the budget or a charge.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A block of subsampled releases may not be opened.
    #[error(transparent)]
    Subsampled(#[from] SubsampledError),
    /// The sum of a shard does not fit on the lattice.
    #[error(
        "{party}: the sum over its records does not fit 64 bits at this step: set privacy.clip, or narrow the parameters' box"
    )]
    TooManyRecords {
        /// The party.
        party: String,
    },
    /// The model yields no sum.
    #[error(transparent)]
    NoSum(#[from] NoSum),
    /// One unit of privacy moves a sum further than was charged.
    #[error("one unit of privacy moves a sum further than was charged")]
    Uncovered,
}

/// Outcome of a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Integers of all queries in the order of the round, in lattice units, one vector per party.
    Released(Vec<Vec<i64>>),
    /// One party's remaining budget is too small for the round. No party was charged for it.
    Refused {
        /// Index of the party in the job's order.
        party: usize,
        /// Reason for the refusal.
        refusal: FilterRefusal,
    },
}

/// Number of candidates of a choice whose weights one pass over the records sums.
const CANDIDATES_IN_A_PASS: usize = 256;

/// Charges of a party, and the free places of blocks that were charged in advance.
#[derive(Debug, Clone)]
struct Account {
    filter: PrivacyFilter,
    blocks: OpenBlocks,
}

struct Party {
    data: ModelData,
    unit: PrivacyUnit,
    account: Account,
    queries: u64,
    /// Sampling law of its subsampled releases; `None` if its releases sum all records.
    sampling: Option<PoissonSampling>,
}

impl Account {
    /// Charges a message's queries as a ledger does. A subsampled release takes a place in a block, or opens a block and takes
    /// its first place.
    ///
    /// The caller discards this account after a refusal, because some of the queries may already be charged. Errors: a block that
    /// may not be opened.
    fn charge(
        &mut self,
        spec: &JobSpec,
        unit: PrivacyUnit,
        (queries, terms): (&[Query], &[QueryTerms]),
    ) -> Result<Result<(), FilterRefusal>, SubsampledError> {
        for (query, terms) in queries.iter().zip(terms) {
            let (sensitivity, noise) = (terms.sensitivity(), query.noise);
            let paid = match spec.block_terms(query.kind, unit, (sensitivity, noise)) {
                Some(block) => self.filter.try_spend(self.blocks.take(query.kind, block)?),
                None => {
                    // A choice is revealed by itself, whatever the rule for the job's other answers.
                    let honest = if query.kind.candidates().is_some() { Honest::ALONE } else { spec.honest() };
                    self.filter.try_charge(&[Priced::new(query.kind, sensitivity, noise, honest)]).map(|_| ())
                }
            };
            if let Err(refusal) = paid {
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(()))
    }
}

/// The parties of one job.
pub struct Rehearsal<R> {
    spec: JobSpec,
    model: Box<dyn Model>,
    parties: Vec<Party>,
    rng: R,
}

impl<R: CryptoRng> Rehearsal<R> {
    /// Creates a rehearsal from one shard and unit of privacy per party, in the job's order. `rng` generates the noise.
    ///
    /// # Errors
    /// A number of shards that differs from the number of parties, or a budget that the accounting rejects.
    pub fn new(spec: &JobSpec, shards: Vec<(ModelData, PrivacyUnit)>, rng: R) -> Result<Self, RehearsalError> {
        if shards.len() != spec.parties.len() {
            return Err(RehearsalError::Parties { expected: spec.parties.len(), got: shards.len() });
        }
        let party = |(data, unit): (ModelData, PrivacyUnit)| {
            let sampling = spec.privacy.blocks.map(|_| PoissonSampling::new(data.units(), spec.sampler.batch));
            let filter = PrivacyFilter::new(&spec.privacy.budget.of(unit))?;
            let account = Account { filter, blocks: OpenBlocks::default() };
            Ok::<_, AccountingError>(Party { data, unit, account, queries: 0, sampling })
        };
        let parties = shards.into_iter().map(party).collect::<Result<_, _>>()?;
        Ok(Self { spec: spec.clone(), model: spec.build_model(), parties, rng })
    }

    /// Returns the public metadata of each party.
    #[must_use]
    pub fn metadata(&self) -> Vec<PartyMetadata> {
        self.parties.iter().map(|party| PartyMetadata::new(party.unit, party.data.units())).collect()
    }

    /// Returns the number of releases of each party and their charge, in units of 2^-48 of mu^2.
    #[must_use]
    pub fn spent(&self) -> Vec<(u64, u64)> {
        self.parties.iter().map(|party| (party.queries, party.account.filter.spent().units)).collect()
    }

    /// Charges a round at every party, or at none, and releases the answers.
    ///
    /// # Errors
    /// A query out of range.
    pub fn answer(&mut self, round: &Round) -> Result<Answer, RehearsalError> {
        let mut charged = Vec::with_capacity(self.parties.len());
        for (index, party) in self.parties.iter().enumerate() {
            let terms = |query: &Query| query_terms(&self.spec, self.model.as_ref(), party.unit, query);
            let queries = round.queries_of(index);
            let terms = queries.iter().map(terms).collect::<Result<Vec<_>, _>>()?;
            if terms.iter().any(|terms| !terms.sum_fits(party.data.units())) {
                return Err(RehearsalError::TooManyRecords { party: self.spec.parties[index].clone() });
            }
            let mut account = party.account.clone();
            if let Err(refusal) = account.charge(&self.spec, party.unit, (queries, &terms))? {
                return Ok(Answer::Refused { party: index, refusal });
            }
            charged.push(account);
        }
        for (party, account) in self.parties.iter_mut().zip(charged) {
            party.account = account;
            party.queries += round.queries.len() as u64;
        }
        let releases = (0..self.parties.len()).map(|party| self.release(party, round)).collect::<Result<_, _>>()?;
        Ok(Answer::Released(releases))
    }

    fn release(&mut self, party: usize, round: &Round) -> Result<Vec<i64>, RehearsalError> {
        let queries = round.queries_of(party);
        if let [query] = queries
            && let Some(candidates) = query.kind.candidates()
        {
            return self.choose(party, query, candidates);
        }
        let sums = self.sums(party, queries)?;
        let mut out = Vec::with_capacity(sums.len());
        for (sum, query) in sums.into_iter().zip(queries) {
            let sample = NoiseSample::gathered(query.kind.length(), || NoiseSample::of_scale(query.noise, &mut self.rng));
            let cover = self.cover(party, query, sum.sampled())?;
            out.extend_from_slice(sum.release(&cover, sample).ok_or(RehearsalError::Uncovered)?.as_slice());
        }
        Ok(out)
    }

    /// Selects the index of a candidate by the exponential mechanism.
    fn choose(&mut self, party: usize, query: &Query, count: u32) -> Result<Vec<i64>, RehearsalError> {
        let (model, Party { data, unit, .. }) = (self.model.as_ref(), &self.parties[party]);
        let terms = query_terms(&self.spec, model, *unit, query)?;
        let none = || RehearsalError::from(QueryError::Vector(query.kind));
        let candidates = Candidates::new(count, &query.from, &query.to).ok_or_else(none)?;
        let steps = candidates.steps(model, &self.spec, *unit, terms.sensitivity())?;
        let mut sums = Vec::with_capacity(steps.len());
        for part in steps.chunks(CANDIDATES_IN_A_PASS) {
            let holds: Vec<Hold<'_>> = part.iter().map(|step| Hold::Step(*step)).collect();
            sums.extend(Threads::one().sums(data, &holds, &|_, pass| model.ratio_kernel(pass))?);
        }
        let weights = log_weights(sums, candidates.public()).ok_or_else(none)?;
        let cover = self.cover(party, query, None)?;
        Ok(vec![i64::from(weights.release(&cover, &mut self.rng).ok_or(RehearsalError::Uncovered)?)])
    }

    /// Returns the terms of a query's charge at a party.
    fn cover(&self, party: usize, query: &Query, sampled: Option<SamplingProbability>) -> Result<Cover, RehearsalError> {
        let unit = self.parties[party].unit;
        let sensitivity = query_terms(&self.spec, self.model.as_ref(), unit, query)?.sensitivity();
        Ok(Cover { priced: Priced::new(query.kind, sensitivity, query.noise, Honest::ALONE), sampled, unit })
    }

    /// Returns the sums of one party without noise, one per query. One pass over all records serves all steps.
    fn sums(&mut self, party: usize, queries: &[Query]) -> Result<Vec<LatticeSum>, RehearsalError> {
        let (model, Party { data, unit, sampling, .. }) = (self.model.as_ref(), &self.parties[party]);
        let terms = |query: &Query| query_terms(&self.spec, model, *unit, query);
        let terms = queries.iter().map(terms).collect::<Result<Vec<_>, _>>()?;
        let (mut whole, mut over_samples, mut samples) = (Vec::new(), Vec::new(), Vec::new());
        for (query, terms) in queries.iter().zip(&terms) {
            let summand = terms.summand(&query.from, &query.to, terms.sensitivity())?;
            match sampling.as_ref().filter(|_| query.kind.is_sampled()) {
                Some(sampling) => {
                    samples.push((summand.hold(), sampling.sample(&mut self.rng)));
                    over_samples.push(summand);
                }
                None => whole.push(summand),
            }
        }
        let (threads, holds) = (Threads::one(), whole.iter().map(Summand::hold).collect::<Vec<_>>());
        let mut whole = threads.sums(data, &holds, &|at, pass| whole[at].give(model, pass))?.into_iter();
        let mut over_samples = threads.sampled_sums(data, samples, &|at, pass| over_samples[at].give(model, pass))?.into_iter();
        let next = |query: &Query| if query.kind.is_sampled() { over_samples.next() } else { whole.next() };
        let sums: Option<Vec<LatticeSum>> = queries.iter().map(next).collect();
        sums.ok_or_else(|| RehearsalError::TooManyRecords { party: self.spec.parties[party].clone() })
    }
}

/// Returns a query's public constants at a party with the privacy unit `unit`.
pub(crate) fn query_terms(spec: &JobSpec, model: &dyn Model, unit: PrivacyUnit, query: &Query) -> Result<QueryTerms, QueryError> {
    QueryTerms::new(model, spec, unit, query.kind, (&query.from, &query.to))
}
