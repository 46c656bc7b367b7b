//! Stage 3, charged: for every query the ledger durably holds either its charge, or the release that already answered it.

use std::collections::HashMap;

use conclave_ops::answer_times::Part;
use conclave_proto::convert::AnswerStatus;

use super::priced::{Priced, PricedQuery};
use super::received::{Message, Resources};
use crate::ledger::{ChargeOutcome, Digest, Grant, LedgerError, QueryKey, Refusal};

/// A query and the ledger's grant for it.
pub(super) struct ChargedQuery {
    pub(super) priced: PricedQuery,
    pub(super) grant: Grant,
}

/// A message whose queries are all charged, or were answered before.
pub(super) struct Charged<'j> {
    message: Message<'j>,
    queries: Vec<ChargedQuery>,
}

impl<'j> Priced<'j> {
    /// Charges all queries of the message durably, or none. No record has been read so far.
    ///
    /// Theorem, spend then look: a record is read only for a query whose charge is durable, so the releases of all time cost at
    /// most the budget, whenever the party crashes. Proof: docs/explanation/proofs.md, section 4.
    ///
    /// # Errors
    /// [`AnswerStatus::Policy`] where the owner's permit has ended; the status of the ledger's refusal; [`AnswerStatus::Halted`] once the
    /// ledger has failed.
    pub(super) fn charge(self, resources: &mut Resources<'_>) -> Result<Charged<'j>, AnswerStatus> {
        let (message, queries) = self.into_parts();
        // Also for a message that arrived before the end of the permit and waited since.
        resources.permission.check(&message.id).map_err(|why| {
            tracing::warn!(job = %message.id, "{why}");
            AnswerStatus::Policy
        })?;
        let keys: Vec<QueryKey> = queries.iter().map(|priced| *priced.key()).collect();
        resources.timing.was(Part::Computing);
        let outcome = resources.ledger.charge(&message.id, message.iteration, &keys);
        resources.timing.was(Part::Ledger);
        let grants = match outcome.map_err(halted)? {
            ChargeOutcome::Granted(grants) => grants,
            ChargeOutcome::Refused(refusal) => return Err(refused(&message, refusal)),
        };
        // Matched by digest and not by position, so that a grant can serve only the query that it was made for.
        let mut grants: HashMap<Digest, Grant> = grants.into_iter().map(|grant| (grant.digest(), grant)).collect();
        let with_grant = |priced: PricedQuery| {
            let grant = grants.remove(&priced.key().digest).ok_or(AnswerStatus::Halted)?;
            Ok(ChargedQuery { priced, grant })
        };
        let queries = queries.into_iter().map(with_grant).collect::<Result<_, _>>()?;
        Ok(Charged { message, queries })
    }
}

impl<'j> Charged<'j> {
    pub(super) fn into_parts(self) -> (Message<'j>, Vec<ChargedQuery>) {
        (self.message, self.queries)
    }
}

/// Logs a refusal, and returns its status.
fn refused(message: &Message<'_>, refusal: Refusal) -> AnswerStatus {
    tracing::warn!(job = %message.id, iteration = message.iteration, "{refusal}");
    match refusal {
        Refusal::DataBudget(_) | Refusal::AnalystBudget(_) | Refusal::JobBudget(_) | Refusal::CollusionBudget(_) => {
            AnswerStatus::Budget
        }
        Refusal::Roster | Refusal::Block | Refusal::OtherBlock | Refusal::Priced => AnswerStatus::Policy,
        Refusal::Attempt { .. } => AnswerStatus::Attempt,
        Refusal::Behind => AnswerStatus::Behind,
        Refusal::Conflict { .. } => AnswerStatus::Conflict,
        Refusal::UnknownJob => AnswerStatus::UnknownJob,
        // Messages are answered one at a time, so an earlier answer failed after its charge. The query stays unanswered until a restart, which
        // answers it under the old charge where nothing can have left.
        Refusal::InFlight { .. } => AnswerStatus::Halted,
    }
}

/// Returns the status for a failure of the ledger, which has logged it.
pub(super) fn halted(_: LedgerError) -> AnswerStatus {
    AnswerStatus::Halted
}
