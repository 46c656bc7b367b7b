//! Fetches a job's releases from the coordinator and replays them.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_common::text::shown;
use conclave_draws::result::StoppedBy;
use conclave_inference::sampler::{RefitError, StoredReleases, refittable};
use conclave_proto::error::Fault;
use conclave_proto::log::{RoundPieces, opened_parties};
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{LogHeader, LogRound};
use tonic::transport::Channel;

use crate::faults::{input, internal};
use crate::signed_job::{check, next, open_log, unexpected_message};

/// Maximum length of a coordinator's text that is shown.
const MAX_TEXT: usize = 300;

/// A job that has ended, with its releases.
pub(super) struct EndedJob {
    /// The job file, byte for byte as signed.
    pub(super) text: String,
    /// Its parties, in the job's order, with the public metadata of their data.
    pub(super) parties: Vec<(String, PartyMetadata)>,
    pub(super) releases: StoredReleases,
    pub(super) stopped_by: StoppedBy,
}

/// Fetches a job's log and replays it.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for a job that can't be refitted, with the reason; [`ErrorCode::Internal`] for a log that
/// contradicts its job.
pub(super) async fn fetch(client: JobsClient<Channel>, job: &str, options: &str) -> Result<EndedJob, Fault> {
    let mut pieces = open_log(client, job).await?;
    let mut log = match next(&mut pieces).await? {
        Body::Header(header) => Log::begin(header, job, options)?,
        Body::End(end) => return Err(damaged(&end.damage)),
        _ => return Err(unexpected_message()),
    };
    loop {
        match next(&mut pieces).await? {
            Body::Rounds(piece) => piece.rounds.into_iter().try_for_each(|round| log.take(round))?,
            Body::End(end) if end.damage.is_empty() => return log.end(),
            Body::End(end) => return Err(damaged(&end.damage)),
            _ => return Err(unexpected_message()),
        }
    }
}

/// A log being received.
struct Log {
    job: EndedJob,
    pieces: RoundPieces,
    /// The coordinator states that everything was released.
    whole: bool,
}

impl Log {
    fn begin(header: LogHeader, job: &str, options: &str) -> Result<Self, Fault> {
        check(&header, job)?;
        let unreadable = |e| internal(format!("this version can't read the file of job {job}: {e}"));
        let spec = JobSpec::parse(&header.spec_toml).map_err(unreadable)?;
        let unfit = |e: RefitError| input(format!("job {job} can't be refitted: {e}"));
        refittable(&spec).map_err(unfit)?;
        ended(&header.state, job, options)?;
        let parties = opened_parties(&header, &spec.parties).map_err(internal)?;
        let parties = parties.ok_or_else(|| unfit(RefitError::NothingReleased))?;
        let releases = StoredReleases::new(&spec, &parties).map_err(unfit)?;
        let said: serde_json::Value = serde_json::from_str(&header.result_json).unwrap_or_default();
        let stopped_by = match header.state.as_str() {
            "cancelled" => StoppedBy::Cancelled,
            "failed" => StoppedBy::Failure,
            _ => StoppedBy::Budget,
        };
        Ok(Self {
            pieces: RoundPieces::new(parties.len()),
            whole: said["stopped_by"] == "released",
            job: EndedJob {
                text: header.spec_toml,
                parties: spec.parties.into_iter().zip(parties).collect(),
                releases,
                stopped_by,
            },
        })
    }

    fn take(&mut self, piece: LogRound) -> Result<(), Fault> {
        let releases = &mut self.job.releases;
        let broken = |why: String| internal(format!("the coordinator's log does not fit its job: {why}"));
        match self.pieces.take(piece, releases.awaited()).map_err(broken)? {
            Some(round) => releases.replay(round.iteration, &round.releases).map_err(|e| broken(e.to_string())),
            None => Ok(()),
        }
    }

    fn end(self) -> Result<EndedJob, Fault> {
        let Self { mut job, pieces, whole } = self;
        let complete = job.releases.complete();
        if pieces.unfinished().is_some() || (whole && !complete) {
            return Err(internal("the coordinator's log ends before the job's last release".to_owned()));
        }
        if complete {
            job.stopped_by = StoppedBy::Released;
        }
        Ok(job)
    }
}

/// Refuses a job that has not ended.
fn ended(state: &str, job: &str, options: &str) -> Result<(), Fault> {
    match state {
        "finished" | "cancelled" | "failed" => Ok(()),
        _ => Err(input(format!("job {job} has not ended, and only a job that has ended can be refitted"))
            .with_remedy(format!("follow it with `conclave watch {job}{options}`"))),
    }
}

fn damaged(why: &str) -> Fault {
    let why: String = why.chars().map(shown).take(MAX_TEXT).collect();
    internal(format!("the coordinator can't read all of the job's log: {why}"))
}
