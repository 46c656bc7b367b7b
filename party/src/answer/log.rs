//! Collects the releases of a job from its log, beside the checks of `verify`.

use conclave_common::job::JobSpec;
use conclave_inference::sampler::{self, OwnReleases};
use conclave_proto::log::{RoundPieces, opened_parties};
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::{JobLog, LogHeader, LogRound};

use crate::error::StartError;

/// A log being received.
pub(super) struct Log {
    party: String,
    spec: JobSpec,
    releases: Option<OwnReleases>,
    pieces: RoundPieces,
    /// The reason why there is no own answer.
    refused: Option<String>,
}

impl Log {
    pub(super) fn new(party: &str, spec: JobSpec) -> Self {
        let pieces = RoundPieces::new(spec.parties.len());
        Self { party: party.to_owned(), spec, releases: None, pieces, refused: None }
    }

    /// Takes a piece of the log. Faults of the log are the checks' to report.
    pub(super) fn take(&mut self, piece: &JobLog) {
        let taken = match (&piece.body, &self.refused) {
            (_, Some(_)) => Ok(()),
            (Some(Body::Header(header)), None) => self.begin(header),
            (Some(Body::Rounds(piece)), None) => piece.rounds.iter().try_for_each(|round| self.round(round.clone())),
            _ => Ok(()),
        };
        self.refused = taken.err().or(self.refused.take());
    }

    fn begin(&mut self, header: &LogHeader) -> Result<(), String> {
        let Some(parties) = opened_parties(header, &self.spec.parties)? else {
            return Err("not every party has opened it yet: wait until it has ended".to_owned());
        };
        let party = self.spec.parties.iter().position(|name| *name == self.party);
        let party = party.ok_or("this party is not one of its parties")?;
        let settled = sampler::settled(&self.spec, &parties).into_owned();
        self.releases = Some(OwnReleases::new(&settled, &parties, party).map_err(|e| e.to_string())?);
        Ok(())
    }

    fn round(&mut self, piece: LogRound) -> Result<(), String> {
        let Some(releases) = &mut self.releases else { return Ok(()) };
        match self.pieces.take(piece, releases.awaited())? {
            Some(whole) => releases.replay(whole.iteration, &whole.releases).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }

    /// Returns the releases of the whole log.
    ///
    /// # Errors
    /// The reason why they give no own answer.
    pub(super) fn finish(self) -> Result<OwnReleases, StartError> {
        let refused = |why: String| StartError::Input(format!("there is no own answer to this job: {why}"));
        match (self.refused, self.releases) {
            (Some(why), _) => Err(refused(why)),
            (None, Some(releases)) => Ok(releases),
            (None, None) => Err(refused("its log is empty".to_owned())),
        }
    }
}
