//! All parties of a job in one process: the real kernels, lattice, noise and privacy filter, and no ledger.
//!
//! What a rehearsal spends is nobody's budget: it is for records that its user may see anyway, the analyst's own or made-up ones.

use rand::CryptoRng;

use crate::accounting::{AccountingError, Budget, FilterRefusal, Priced, PrivacyFilter, PrivacyUnit};
use crate::job::JobSpec;
use crate::mechanism::{DiscreteGaussian, LatticeSum, NoiseSample, NoiseScale};
use crate::model::{self, Model, ModelData};
use crate::query::{QueryError, QueryTerms};
use crate::sampler::{PartyMetadata, Query, Round};

/// Why a round can't be answered, the budget aside.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RehearsalError {
    /// Not as many shards as parties.
    #[error("{got} shards for {expected} parties")]
    Parties {
        /// Number of parties.
        expected: usize,
        /// Number of shards.
        got: usize,
    },
    /// A query that does not belong to the job, or is out of range.
    #[error(transparent)]
    QueryTerms(#[from] QueryError),
    /// The budget can't be kept.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// The sum of a shard does not fit the lattice.
    #[error(
        "{party}: the sum over its records does not fit 64 bits at this step: set privacy.clip, or narrow the parameters' box"
    )]
    TooManyRecords {
        /// The party.
        party: String,
    },
}

/// What the parties say to a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Per party the integers of all queries, one after the other in the order asked; lattice units.
    Released(Vec<Vec<i64>>),
    /// This party's budget does not hold the round; nobody was charged for it.
    Refused {
        /// Index in the job's order.
        party: usize,
        /// Why.
        refusal: FilterRefusal,
    },
}

struct Party {
    data: ModelData,
    unit: PrivacyUnit,
    filter: PrivacyFilter,
    queries: u64,
}

/// The parties of one job.
pub struct Rehearsal<R> {
    spec: JobSpec,
    model: Box<dyn Model>,
    parties: Vec<Party>,
    rng: R,
    noise: Option<(NoiseScale, DiscreteGaussian)>,
}

impl<R: CryptoRng> Rehearsal<R> {
    /// One shard per party with what it protects, in the job's order; `rng` is the noise's.
    ///
    /// # Errors
    /// Another number of shards than parties, or a budget that no ledger can keep.
    pub fn new(spec: &JobSpec, shards: Vec<(ModelData, PrivacyUnit)>, rng: R) -> Result<Self, RehearsalError> {
        if shards.len() != spec.parties.len() {
            return Err(RehearsalError::Parties { expected: spec.parties.len(), got: shards.len() });
        }
        let budget: Budget = spec.privacy.budget;
        let party = |(data, unit): (ModelData, PrivacyUnit)| {
            let filter = PrivacyFilter::new(&budget.of(unit))?;
            Ok::<_, AccountingError>(Party { data, unit, filter, queries: 0 })
        };
        let parties = shards.into_iter().map(party).collect::<Result<_, _>>()?;
        Ok(Self { spec: spec.clone(), model: spec.build_model(), parties, rng, noise: None })
    }

    /// What is public about each party.
    #[must_use]
    pub fn metadata(&self) -> Vec<PartyMetadata> {
        self.parties.iter().map(|party| PartyMetadata::new(party.unit, party.data.units())).collect()
    }

    /// What each party has released and what it cost: number of releases, and units of 2^-48 of mu^2.
    #[must_use]
    pub fn spent(&self) -> Vec<(u64, u64)> {
        self.parties.iter().map(|party| (party.queries, party.filter.spent().units)).collect()
    }

    /// Charges a round at every party, or at none, and releases the answers.
    ///
    /// # Errors
    /// A query out of range.
    pub fn answer(&mut self, round: &Round) -> Result<Answer, RehearsalError> {
        let mut priced = Vec::new();
        for (index, party) in self.parties.iter().enumerate() {
            let mut prices = Vec::with_capacity(round.queries.len());
            for query in &round.queries {
                let terms = query_terms(&self.spec, self.model.as_ref(), party.unit, query)?;
                if !terms.sum_fits(party.data.units()) {
                    return Err(RehearsalError::TooManyRecords { party: self.spec.parties[index].clone() });
                }
                prices.push(Priced::new(query.kind, terms.sensitivity(), query.noise, self.spec.honest()));
            }
            let mut filter = party.filter.clone();
            if let Err(refusal) = filter.try_charge(&prices) {
                return Ok(Answer::Refused { party: index, refusal });
            }
            priced.push(filter);
        }
        for (party, filter) in self.parties.iter_mut().zip(priced) {
            party.filter = filter;
            party.queries += round.queries.len() as u64;
        }
        let releases = (0..self.parties.len()).map(|party| self.release(party, round)).collect::<Result<_, _>>()?;
        Ok(Answer::Released(releases))
    }

    fn release(&mut self, party: usize, round: &Round) -> Result<Vec<i64>, RehearsalError> {
        let sums = self.sums(party, &round.queries)?;
        let mut out = Vec::with_capacity(sums.len());
        for (sum, query) in sums.into_iter().zip(&round.queries) {
            let known = self.noise.take().filter(|(scale, _)| *scale == query.noise);
            let (scale, sampler) = known.unwrap_or_else(|| (query.noise, DiscreteGaussian::new(query.noise)));
            let sample = NoiseSample::gathered(query.kind.length(), || NoiseSample::new(&sampler, &mut self.rng));
            out.extend_from_slice(sum.add_noise(sample).as_slice());
            self.noise = Some((scale, sampler));
        }
        Ok(out)
    }

    /// The un-noised sums of one party, one per query; all steps in one pass over the records.
    fn sums(&self, party: usize, queries: &[Query]) -> Result<Vec<LatticeSum>, RehearsalError> {
        let Party { data, unit, .. } = &self.parties[party];
        let mut summands = Vec::with_capacity(queries.len());
        for query in queries {
            let terms = query_terms(&self.spec, self.model.as_ref(), *unit, query)?;
            summands.push(terms.summand(&query.from, &query.to, terms.sensitivity())?);
        }
        Ok(model::sums(self.model.as_ref(), data, &summands))
    }
}

/// A query's public constants at a party that protects `unit`.
pub(crate) fn query_terms(spec: &JobSpec, model: &dyn Model, unit: PrivacyUnit, query: &Query) -> Result<QueryTerms, QueryError> {
    QueryTerms::new(model, spec, unit, query.kind, (&query.from, &query.to))
}
