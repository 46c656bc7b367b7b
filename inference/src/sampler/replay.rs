//! The replay of a run from its log: a coordinator continues after a restart, and a party checks the run.

use super::{Sampler, SamplerError, Totals};
use conclave_common::query::Round;

/// A log that does not fit its job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The log has another round than the sampler's next one.
    #[error("the log continues with round {logged}, but the job expects {}", asked(*.expected))]
    OutOfPlace {
        /// Round in the log.
        logged: u64,
        /// Round that the job expects; `None` at the end of the run.
        expected: Option<u64>,
    },
    /// The sampler can't return a next round.
    #[error(transparent)]
    Asking(SamplerError),
    /// The sampler does not accept the logged releases.
    #[error("{0}")]
    Releases(SamplerError),
}

fn asked(expected: Option<u64>) -> String {
    expected.map_or_else(|| "nothing more".to_owned(), |round| format!("round {round}"))
}

impl dyn Sampler + '_ {
    /// Absorbs the next round of a log and returns it; `releases[party][component]`, as in [`Totals::of`].
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn replay(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<Round, ReplayError> {
        let expected = self.next_round().map_err(ReplayError::Asking)?.round();
        let out_of_place = ReplayError::OutOfPlace { logged: iteration, expected: expected.as_ref().map(|r| r.iteration) };
        let round = expected.filter(|round| round.iteration == iteration).ok_or(out_of_place)?;
        let totals = Totals::of(&round, releases).map_err(ReplayError::Releases)?;
        self.absorb(&totals).map_err(ReplayError::Releases)?;
        Ok(round)
    }
}
