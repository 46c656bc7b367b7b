//! One party of a rehearsal: its records, what it has granted, and the places that it has left in blocks.

use conclave_common::job::JobSpec;
use conclave_common::query::Query;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{FilterRefusal, Honest, OpenBlocks, Priced, PrivacyFilter, PrivacyUnit, SubsampledError};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{ModelData, PoissonSampling};

/// What is granted, and the free places of blocks that were charged ahead.
#[derive(Debug, Clone)]
pub(super) struct Granted {
    pub(super) filter: PrivacyFilter,
    blocks: OpenBlocks,
}

pub(super) struct Party {
    pub(super) data: ModelData,
    pub(super) unit: PrivacyUnit,
    pub(super) granted: Granted,
    pub(super) queries: u64,
    /// The law of the samples that its releases add up; `None` where they add up all records.
    pub(super) sampling: Option<PoissonSampling>,
}

impl Party {
    pub(super) fn new(spec: &JobSpec, (data, unit): (ModelData, PrivacyUnit), filter: PrivacyFilter) -> Self {
        let sampling = spec.privacy.blocks.map(|_| PoissonSampling::new(data.units(), spec.sampler.batch));
        let granted = Granted { filter, blocks: OpenBlocks::default() };
        Self { data, unit, granted, queries: 0, sampling }
    }
}

impl Granted {
    /// Charges a message's queries, as a ledger does: a release over a sample takes a place, or opens a block and takes its first. All of them,
    /// or none that counts: whoever is refused forgets this.
    ///
    /// # Errors
    /// A block that nobody may open.
    pub(super) fn charge(
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
                    // A choice is opened by itself, whatever else a job's answers are.
                    let honest = if matches!(query.kind, QueryKind::Choice { .. }) { Honest::ALONE } else { spec.honest() };
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
