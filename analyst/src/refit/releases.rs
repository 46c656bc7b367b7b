//! What a job's parties released, fetched from the coordinator and replayed.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_common::text::shown;
use conclave_draws::result::StoppedBy;
use conclave_inference::sampler::{RefitError, StoredReleases, refittable};
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::log::{RoundPieces, opened_parties};
use conclave_proto::submission;
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::{JobLog, JobRequest, LogHeader, LogRound};
use tonic::{Code, Status, Streaming};

use crate::client::Connection;

/// Longest message taken. Rounds come in small ones; a header holds the result, below 2 KiB for each parameter of up to 4096.
const MOST_BYTES: usize = 16 << 20;
/// Longest sentence of the coordinator's that is shown.
const LONGEST_WORD: usize = 300;

/// A job that has ended, with what its parties released.
pub(super) struct EndedJob {
    /// The job file, byte for byte as it was signed.
    pub(super) text: String,
    /// What is public about its parties' data, in the job's order.
    pub(super) parties: Vec<PartyMetadata>,
    pub(super) releases: StoredReleases,
    /// What ended it.
    pub(super) stopped_by: StoppedBy,
}

/// Fetches a job's log and replays it.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for a job that can't be refitted, with the reason; [`ErrorCode::Internal`] for a log that does not fit its
/// job.
pub(super) async fn fetch(connection: &Connection, job: &str) -> Result<EndedJob, Fault> {
    let mut client = connection.open().await?.max_decoding_message_size(MOST_BYTES);
    let mut pieces = client.log(JobRequest { job: job.to_owned() }).await.map_err(|s| fault(&s))?.into_inner();
    let mut log = match next(&mut pieces).await? {
        Body::Header(header) => Log::begin(header, job, &connection.options())?,
        Body::End(end) => return Err(damaged(&end.damage)),
        _ => return Err(strange()),
    };
    loop {
        match next(&mut pieces).await? {
            Body::Rounds(piece) => piece.rounds.into_iter().try_for_each(|round| log.take(round))?,
            Body::End(end) if end.damage.is_empty() => return log.end(),
            Body::End(end) => return Err(damaged(&end.damage)),
            _ => return Err(strange()),
        }
    }
}

async fn next(pieces: &mut Streaming<JobLog>) -> Result<Body, Fault> {
    match pieces.message().await.map_err(|s| fault(&s))? {
        Some(JobLog { body: Some(body) }) => Ok(body),
        Some(_) => Err(strange()),
        None => Err(Fault::new(ErrorCode::Unreachable, "the coordinator broke the log off: try again")),
    }
}

/// A log as it is taken in.
struct Log {
    job: EndedJob,
    pieces: RoundPieces,
    /// Whether the coordinator says that everything was released.
    whole: bool,
}

impl Log {
    fn begin(header: LogHeader, job: &str, options: &str) -> Result<Self, Fault> {
        // The id follows from the job file: no other text has it.
        let signed = submission::check(header.submission.as_ref(), &header.analyst, &header.spec_toml);
        if !signed.is_ok_and(|id| id == job) {
            return Err(internal(format!("the job file that the coordinator shows is not the one of job {job}")));
        }
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
            job: EndedJob { text: header.spec_toml, parties, releases, stopped_by },
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
            return Err(internal("the coordinator's log ends before all that the job released".to_owned()));
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
        _ => Err(input(format!(
            "job {job} has not ended, and only jobs that have are refitted: follow it with `conclave watch {job}{options}`"
        ))),
    }
}

fn fault(status: &Status) -> Fault {
    if status.code() == Code::Unimplemented {
        let message = "the coordinator is of a version that shows analysts no log: its operator has to upgrade it";
        return Fault::new(ErrorCode::Unreachable, message);
    }
    from_status(status)
}

fn damaged(why: &str) -> Fault {
    let why: String = why.chars().map(shown).take(LONGEST_WORD).collect();
    internal(format!("the coordinator can't read all of the job's log: {why}"))
}

/// A log that is not of this protocol's form.
fn strange() -> Fault {
    internal("the coordinator sent what is no log of this version: bring both to one version".to_owned())
}

fn internal(message: String) -> Fault {
    Fault::new(ErrorCode::Internal, message)
}

/// A fault of the user's input.
pub(super) fn input(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}
