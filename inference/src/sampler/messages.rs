//! The numbered messages of a run: one at a time is pending until it is answered.

use super::{SamplerError, Totals};
use conclave_common::job::JobSpec;
use conclave_common::query::{Opened, Phase, Query, Round};

/// The pending message, and the number of answered ones.
pub(super) struct Messages {
    parties: usize,
    opened: Opened,
    answered: u64,
    pending: Option<Round>,
}

impl Messages {
    pub(super) fn new(spec: &JobSpec) -> Self {
        Self { parties: spec.parties.len(), opened: Opened::from(&spec.aggregation), answered: 0, pending: None }
    }

    /// Returns the messages at the same place, without a pending one.
    pub(super) fn again(&self) -> Self {
        Self { parties: self.parties, opened: self.opened, answered: self.answered, pending: None }
    }

    pub(super) fn pending(&self) -> Option<&Round> {
        self.pending.as_ref()
    }

    pub(super) fn ask(&mut self, phase: Phase, queries: Vec<Query>) {
        self.pending = Some(Round { iteration: self.answered, phase, queries, apart: Vec::new(), opened: self.opened });
    }

    /// Asks every party its own queries. Errors: they differ in kinds or number.
    pub(super) fn ask_apart(&mut self, phase: Phase, apart: Vec<Vec<Query>>) -> Result<(), SamplerError> {
        let queries = apart.first().cloned().unwrap_or_default();
        let same = |of: &Vec<Query>| {
            of.iter().map(|query| (query.chain, query.kind)).eq(queries.iter().map(|query| (query.chain, query.kind)))
        };
        if !apart.iter().all(same) {
            return Err(SamplerError::Shape("the parties' own queries differ in kind"));
        }
        self.ask(phase, queries);
        self.pending.iter_mut().for_each(|round| round.apart.clone_from(&apart));
        Ok(())
    }

    /// Marks the pending message as answered, and returns it. Errors: there is no pending message, or the totals do not fit it;
    /// it then stays pending.
    pub(super) fn answer(&mut self, totals: &Totals) -> Result<Round, SamplerError> {
        let round = self.pending.as_ref().ok_or(SamplerError::NoRound)?;
        totals.check(round, self.parties)?;
        let round = self.pending.take().ok_or(SamplerError::NoRound)?;
        self.answered += 1;
        Ok(round)
    }

    /// Returns the number of the last answered message; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.answered.saturating_sub(1)
    }
}
