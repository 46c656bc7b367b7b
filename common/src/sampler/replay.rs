//! A run put through the sampler again from its log: how a coordinator goes on after a restart, and how a party checks it.

use super::{Round, Sampler, SamplerError};

/// Where a log does not fit its job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The log has another round than the one that the sampler asks.
    #[error("the log goes on with round {logged}, and the job asks {}", asked(*.expected))]
    OutOfPlace {
        /// The round in the log.
        logged: u64,
        /// The round that is asked; `None` where all draws are made.
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

impl Sampler {
    /// The round to ask now, as [`Sampler::next_round`]; also `None` where the clip watch has ended the chains.
    ///
    /// # Errors
    /// As [`Sampler::next_round`], the clip watch's word aside.
    pub fn asking(&mut self) -> Result<Option<Round>, SamplerError> {
        match self.next_round() {
            Err(SamplerError::Clipped(_)) => Ok(None),
            round => round,
        }
    }

    /// Absorbs the next round of a log and gives it as it was asked.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn replay(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<Round, ReplayError> {
        let expected = self.asking().map_err(ReplayError::Asking)?;
        let out_of_place = ReplayError::OutOfPlace { logged: iteration, expected: expected.as_ref().map(|r| r.iteration) };
        let round = expected.filter(|round| round.iteration == iteration).ok_or(out_of_place)?;
        self.absorb(releases).map_err(ReplayError::Releases)?;
        Ok(round)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::job::JobSpec;

    fn sampler() -> Sampler {
        let job = "name = \"m\"\nparties = [\"a\", \"b\"]\n\
                   model = { kind = \"gaussian_mean\", outcome = \"x\", sd = 1.0 }\n\
                   columns = { x = { min = -4, max = 4 } }\n\
                   [sampler]\nchains = 2\ndraws = 3\nwarmup = 0\nstart = { mean = 0.1 }\n\
                   proposal = { kind = \"guided\", radius = 0.05 }\n\
                   [privacy]\nepsilon = 20.0\ndelta = 1e-6\n";
        Sampler::new(&JobSpec::parse(job).unwrap(), &[100, 200]).unwrap()
    }

    #[test]
    fn a_log_leads_where_the_run_went() {
        let (mut live, mut log) = (sampler(), Vec::new());
        while let Some(round) = live.next_round().unwrap() {
            let releases = vec![vec![round.iteration as i64 * 7 - 9; round.queries.len()]; 2];
            live.absorb(&releases).unwrap();
            log.push((round, releases));
        }
        let mut again = sampler();
        for (round, releases) in &log {
            assert_eq!(again.replay(round.iteration, releases).unwrap(), *round);
        }
        assert_eq!((again.asking().unwrap(), again.take_draws()), (None, live.take_draws()));
        let beyond = again.replay(3, &log[0].1).unwrap_err();
        assert_eq!(beyond, ReplayError::OutOfPlace { logged: 3, expected: None });
        assert!(beyond.to_string().contains("nothing more"));
    }

    #[test]
    fn a_round_that_is_missing_or_of_another_length_is_told() {
        let mut again = sampler();
        let asked = again.next_round().unwrap().unwrap();
        let releases = vec![vec![0; asked.queries.len()]; 2];
        assert_eq!(again.replay(1, &releases).unwrap_err(), ReplayError::OutOfPlace { logged: 1, expected: Some(0) });
        assert!(matches!(again.replay(0, &releases[..1]).unwrap_err(), ReplayError::Releases(SamplerError::Shape(_))));
        // Neither has moved it on.
        assert_eq!(again.replay(0, &releases).unwrap(), asked);
    }

    #[test]
    fn counts_that_nobody_can_hold_are_no_panic() {
        let job = sampler().spec;
        let mut wild = Sampler::new(&job, &[u64::MAX, u64::MAX]).unwrap();
        let asked = wild.next_round().unwrap().unwrap();
        assert!(wild.replay(0, &vec![vec![i64::MAX; asked.queries.len()]; 2]).is_ok());
    }
}
