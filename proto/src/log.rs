//! A job's log as whoever reads it takes it in: what its parties are said to hold, and rounds put together from their pieces.

use conclave_common::query::PartyMetadata;

use crate::convert::{MAX_PROPOSALS, opened_from_wire};
use crate::v1::{LogHeader, LogRound};

/// A whole round of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRound {
    /// Its number.
    pub iteration: u64,
    /// `[party][number]`, lattice units, each party's query by query.
    pub releases: Vec<Vec<i64>>,
}

/// Puts rounds together: one of very many parties comes in several pieces.
#[derive(Debug)]
pub struct RoundPieces {
    parties: usize,
    /// A round of which more is to come.
    part: Option<LogRound>,
}

impl RoundPieces {
    /// No round yet, of so many parties.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self { parties, part: None }
    }

    /// Takes in the next piece, and gives the round that it completes. `due` is the number of integers that a party releases in the
    /// round that the job asks next: many more are not kept.
    ///
    /// # Errors
    /// A sentence on how the log breaks here.
    pub fn take(&mut self, mut piece: LogRound, due: usize) -> Result<Option<WholeRound>, String> {
        if let Some(part) = self.part.take() {
            if part.iteration != piece.iteration {
                return Err(format!("round {} breaks off", part.iteration));
            }
            let rest = std::mem::replace(&mut piece.releases, part.releases);
            piece.releases.extend(rest);
        }
        let (iteration, numbers, parties) = (piece.iteration, piece.releases.len(), self.parties);
        let most = due.max(MAX_PROPOSALS).saturating_mul(parties);
        let whole = numbers > 0 && parties > 0 && numbers.is_multiple_of(parties);
        if numbers > most || !(piece.more || whole) {
            return Err(format!("round {iteration} has {numbers} answers of {parties} parties"));
        }
        if piece.more {
            self.part = Some(piece);
            return Ok(None);
        }
        let releases = piece.releases.chunks(numbers / parties).map(<[i64]>::to_vec).collect();
        Ok(Some(WholeRound { iteration, releases }))
    }

    /// The round that the log ends in the middle of, if it does.
    #[must_use]
    pub fn unfinished(&self) -> Option<u64> {
        self.part.as_ref().map(|part| part.iteration)
    }
}

/// What the parties of a log are said to hold, in the job's order; `None` as long as not every one of them has opened the job.
///
/// # Errors
/// A sentence, for other parties than the job's, or an opening that is none.
pub fn opened_parties(header: &LogHeader, names: &[String]) -> Result<Option<Vec<PartyMetadata>>, String> {
    if !header.parties.iter().map(|party| &party.name).eq(names) {
        return Err("the log is of other parties than the job's".to_owned());
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
            (piece(4, &[1], true), piece(5, &[2], false), "round 4 breaks off"),
            (piece(4, &[1], true), piece(4, &[], false), "1 answers of 2"),
            (piece(3, &[1, 2], false), piece(4, &[], false), "0 answers of 2"),
            (piece(3, &[1, 2], false), piece(4, &long, true), "513 answers of 2"),
        ] {
            let mut pieces = RoundPieces::new(2);
            pieces.take(first, 1).unwrap();
            assert!(pieces.take(second, 1).unwrap_err().contains(word), "{word}");
        }
        assert!(RoundPieces::new(0).take(piece(1, &[1], false), 1).is_err());
        // What a round of vectors holds is more.
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
