//! One party of a rehearsal: its records, its charges, and the free places in its blocks.

use conclave_common::job::JobSpec;
use conclave_common::query::{Query, QueryTerms};
use conclave_privacy::accounting::{FilterRefusal, Honest, OpenBlocks, Priced, PrivacyFilter, PrivacyUnit, SubsampledError};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{ModelData, PoissonSampling};

/// Charges of a party, and the free places of blocks that were charged in advance.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) filter: PrivacyFilter,
    blocks: OpenBlocks,
}

pub(super) struct Party {
    pub(super) data: ModelData,
    pub(super) unit: PrivacyUnit,
    pub(super) account: Account,
    pub(super) queries: u64,
    /// Sampling law of its subsampled releases; `None` if its releases sum all records.
    pub(super) sampling: Option<PoissonSampling>,
}

impl Party {
    pub(super) fn new(spec: &JobSpec, (data, unit): (ModelData, PrivacyUnit), filter: PrivacyFilter) -> Self {
        let sampling = spec.privacy.blocks.map(|_| PoissonSampling::new(data.units(), spec.sampler.batch));
        let account = Account { filter, blocks: OpenBlocks::default() };
        Self { data, unit, account, queries: 0, sampling }
    }
}

impl Account {
    /// Charges a message's queries as a ledger does. A subsampled release takes a place in a block, or opens a block and takes
    /// its first place.
    ///
    /// The caller discards this account after a refusal, because some of the queries may already be charged. Errors: a block that
    /// may not be opened.
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
                    // A choice is revealed by itself, whatever the rule for the job's other answers.
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
