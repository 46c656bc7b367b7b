//! Stage 6, recorded: every release is durable, and only then can it be sent.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use conclave_ops::answer_times::Part;
use conclave_proto::convert::AnswerStatus;

use super::charged::halted;
use super::masking::RoundMasks;
use super::query::Answered;
use super::received::Resources;
use super::summed::{Releases, Summed};
use crate::ledger::{Digest, Recorded as RecordedRelease};

impl Summed<'_> {
    /// Makes the fresh releases durable and returns all releases, in the order in which the message asks them.
    ///
    /// Theorem, replay: a query that is repeated under its key and digest gets the recorded bytes at no charge, and another query under
    /// its key is refused. Proof: docs/explanation/proofs.md, section 4.
    ///
    /// # Errors
    /// [`AnswerStatus::Halted`] once the ledger has failed. A release that was not recorded is dropped.
    pub(super) fn record(self, resources: &mut Resources<'_>) -> Result<Answered, AnswerStatus> {
        let (message, Releases { asked, fresh, earlier }) = self.into_parts();
        let mut recorded: HashMap<Digest, RecordedRelease> =
            earlier.into_iter().map(|release| (release.digest(), release)).collect();
        if !fresh.is_empty() {
            resources.timing.was(Part::Computing);
            let now = resources.ledger.record(fresh);
            resources.timing.was(Part::Ledger);
            recorded.extend(now.map_err(halted)?.into_iter().map(|release| (release.digest(), release)));
            // Only a new release counts as a use of the job's mask key; a refusal or a repeated answer does not.
            message.job.used = (Instant::now(), Duration::ZERO);
        }
        let in_order = asked.iter().map(|digest| recorded.remove(digest).ok_or(AnswerStatus::Halted));
        Ok(Answered { releases: in_order.collect::<Result<_, _>>()?, echo: message.masks.as_ref().map(RoundMasks::echo) })
    }
}
