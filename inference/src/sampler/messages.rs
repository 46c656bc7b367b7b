//! The messages of a run in their order: one is asked until it is answered, and each has a number.

use super::error::SamplerError;
use super::totals::Totals;
use conclave_common::job::JobSpec;
use conclave_common::query::{Opened, Phase, Query, Round};

/// The message being asked, and how many were answered before it.
pub(super) struct Messages {
    parties: usize,
    opened: Opened,
    answered: u64,
    pending: Option<Round>,
}

impl Messages {
    /// No message yet to a job's parties.
    pub(super) fn new(spec: &JobSpec) -> Self {
        Self { parties: spec.parties.len(), opened: Opened::from(&spec.aggregation), answered: 0, pending: None }
    }

    /// The message being asked.
    pub(super) fn pending(&self) -> Option<&Round> {
        self.pending.as_ref()
    }

    /// Makes these queries the message being asked.
    pub(super) fn ask(&mut self, phase: Phase, queries: Vec<Query>) {
        self.pending = Some(Round { iteration: self.answered, phase, queries, opened: self.opened });
    }

    /// Takes the message being asked as answered, and gives it.
    ///
    /// # Errors
    /// No message being asked, or totals that do not fit it; it goes on being asked then.
    pub(super) fn answer(&mut self, totals: &Totals) -> Result<Round, SamplerError> {
        let round = self.pending.as_ref().ok_or(SamplerError::NoRound)?;
        totals.check(round, self.parties)?;
        let round = self.pending.take().ok_or(SamplerError::NoRound)?;
        self.answered += 1;
        Ok(round)
    }

    /// The number of the message answered last; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.answered.saturating_sub(1)
    }
}
