//! A sampler replays a run from its log: how a coordinator goes on after a restart, and how a party checks
//! it.

use super::error::SamplerError;
use super::interface::Sampler;
use super::totals::Totals;
use conclave_common::query::Round;

/// Where a log does not fit its job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The log has another round than the one that the sampler asks.
    #[error("the log goes on with round {logged}, and the job asks {}", asked(*.expected))]
    OutOfPlace {
        /// The round in the log.
        logged: u64,
        /// The round that is asked; `None` where the run is at its end.
        expected: Option<u64>,
    },
    /// The sampler can't ask a next round.
    #[error(transparent)]
    Asking(SamplerError),
    /// The sampler does not take the logged releases.
    #[error("{0}")]
    Releases(SamplerError),
}

fn asked(expected: Option<u64>) -> String {
    expected.map_or_else(|| "nothing more".to_owned(), |round| format!("round {round}"))
}

impl dyn Sampler + '_ {
    /// Absorbs the next round of a log and gives it as it was asked; `releases[party][component]`, as in
    /// [`Totals::of`].
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
