//! Reading of a job's log: the metadata that it states for the parties, and rounds assembled from their pieces.

use conclave_common::query::PartyMetadata;

use crate::convert::{MAX_PROPOSALS, opened_from_wire};
use crate::v1::{LogHeader, LogRound};

/// A complete round of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRound {
    /// The number of the round.
    pub iteration: u64,
    /// `[party][integer]` in lattice units, query by query for each party.
    pub releases: Vec<Vec<i64>>,
}

/// Assembles rounds. A round of very many parties comes in several pieces.
#[derive(Debug)]
pub struct RoundPieces {
    parties: usize,
    /// A round with outstanding pieces.
    part: Option<LogRound>,
}

impl RoundPieces {
    /// Creates an empty assembly for `parties` parties.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self { parties, part: None }
    }

    /// Adds the next piece and returns the round that it completes. `due` is the number of integers that a party releases in
    /// the job's next round, and bounds what is kept.
    ///
    /// # Errors
    /// A message on the inconsistency in the log.
    pub fn take(&mut self, mut piece: LogRound, due: usize) -> Result<Option<WholeRound>, String> {
        if let Some(part) = self.part.take() {
            if part.iteration != piece.iteration {
                return Err(format!("round {} is incomplete", part.iteration));
            }
            let rest = std::mem::replace(&mut piece.releases, part.releases);
            piece.releases.extend(rest);
        }
        let (iteration, numbers, parties) = (piece.iteration, piece.releases.len(), self.parties);
        let most = due.max(MAX_PROPOSALS).saturating_mul(parties);
        let whole = numbers > 0 && parties > 0 && numbers.is_multiple_of(parties);
        if numbers > most || !(piece.more || whole) {
            return Err(format!("round {iteration} has {numbers} integers from {parties} parties"));
        }
        if piece.more {
            self.part = Some(piece);
            return Ok(None);
        }
        let releases = piece.releases.chunks(numbers / parties).map(<[i64]>::to_vec).collect();
        Ok(Some(WholeRound { iteration, releases }))
    }

    /// Returns the number of the incomplete round at the end of the log, if any.
    #[must_use]
    pub fn unfinished(&self) -> Option<u64> {
        self.part.as_ref().map(|part| part.iteration)
    }
}

/// Returns the metadata that a log states for its parties, in the job's order; `None` until every party has opened the job.
///
/// # Errors
/// A message if the parties are not the job's, or an opening is invalid.
pub fn opened_parties(header: &LogHeader, names: &[String]) -> Result<Option<Vec<PartyMetadata>>, String> {
    if !header.parties.iter().map(|party| &party.name).eq(names) {
        return Err("the parties of the log are not those of the job".to_owned());
    }
    let opened = header.parties.iter().map(|party| party.opened.as_ref().map(opened_from_wire).transpose());
    Ok(opened.collect::<Result<Vec<_>, _>>().map_err(|fault| fault.message)?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::v1::{JobOpened, LogParty};

    fn piece(iteration: u64, releases: &[i64], more: bool) -> LogRound {
        LogRound { iteration, releases: releases.to_vec(), more }
    }

    #[test]
    fn rounds_are_put_together() {
        let mut pieces = RoundPieces::new(2);
        assert_eq!(pieces.take(piece(4, &[1, 2, 3], true), 2), Ok(None));
        assert_eq!(pieces.unfinished(), Some(4));
        let whole = WholeRound { iteration: 4, releases: vec![vec![1, 2], vec![3, 4]] };
        assert_eq!(pieces.take(piece(4, &[4], false), 2), Ok(Some(whole)));
        assert_eq!(pieces.take(piece(5, &[7, 8], false), 1).unwrap().unwrap().releases, [[7], [8]]);
        assert_eq!(pieces.unfinished(), None);
    }

    #[test]
    fn a_log_that_breaks_is_an_error() {
        let long = vec![0; 2 * MAX_PROPOSALS + 1];
        for (first, second, word) in [
            (piece(4, &[1], true), piece(5, &[2], false), "round 4 is incomplete"),
            (piece(4, &[1], true), piece(4, &[], false), "1 integers from 2"),
            (piece(3, &[1, 2], false), piece(4, &[], false), "0 integers from 2"),
            (piece(3, &[1, 2], false), piece(4, &long, true), "513 integers from 2"),
        ] {
            let mut pieces = RoundPieces::new(2);
            pieces.take(first, 1).unwrap();
            assert!(pieces.take(second, 1).unwrap_err().contains(word), "{word}");
        }
        assert!(RoundPieces::new(0).take(piece(1, &[1], false), 1).is_err());
        // A round of vector queries has more integers.
        assert!(RoundPieces::new(2).take(piece(4, &long, true), 300).is_ok());
    }

    #[test]
    fn parties_are_those_of_the_job_or_none() {
        let party = |name: &str, opened| LogParty { name: name.to_owned(), opened };
        let opened = Some(JobOpened { records: 7, ..JobOpened::default() });
        let header = |second| LogHeader { parties: vec![party("a", opened.clone()), second], ..LogHeader::default() };
        let names = ["a", "b"].map(str::to_owned);
        let both = opened_parties(&header(party("b", opened.clone())), &names).unwrap().unwrap();
        assert_eq!(both, [PartyMetadata::rows(7); 2]);
        assert_eq!(opened_parties(&header(party("b", None)), &names), Ok(None));
        assert!(opened_parties(&header(party("c", None)), &names).is_err());
    }
}
