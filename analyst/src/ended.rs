//! A job that has ended: its result, its file, and its draws.

use std::future::Future;

use conclave_common::job::JobSpec;
use conclave_draws::Draws;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobRequest, JobStatus};
use serde_json::Value;
use tonic::transport::Channel;

use crate::client::Connection;
use crate::draws::fetch;
use crate::faults::{failure, internal, refused};
use crate::result::read;
use crate::signed_job;
use crate::temporary::TemporaryFolder;

/// A job that has ended with draws.
pub(crate) struct FetchedJob {
    /// The job file, byte for byte.
    pub(crate) source: String,
    pub(crate) spec: JobSpec,
    /// The run's object, as `summary --json` prints it.
    pub(crate) result: Value,
    /// The same, as the coordinator sent it.
    pub(crate) json: String,
    pub(crate) draws: Draws,
}

/// Fetches a job's result, file and draws.
///
/// # Errors
/// Those of the coordinator; a job without a result or without draws.
pub(crate) async fn fetch_job(connection: &Connection, job: &str) -> Result<FetchedJob, Fault> {
    fetch_job_at(&mut connection.open().await?, job, &connection.options()).await
}

/// Fetches a job, as [`fetch_job`], on an open connection; `options` are those of suggested commands.
///
/// # Errors
/// Those of [`fetch_job`].
pub(crate) async fn fetch_job_at(client: &mut JobsClient<Channel>, job: &str, options: &str) -> Result<FetchedJob, Fault> {
    let request = JobRequest { job: job.to_owned() };
    let status = client.get(request).await.map_err(refused)?.into_inner();
    let result = result_of(&status, options)?;
    let (source, spec) = fetch_spec(client, job).await?;
    Ok(FetchedJob { source, spec, result, json: status.result_json, draws: fetch_draws(client, job).await? })
}

/// Fetches a job's file, byte for byte, and parses it.
///
/// # Errors
/// Those of the coordinator; a file that this version cannot read.
pub(crate) async fn fetch_spec(client: &JobsClient<Channel>, job: &str) -> Result<(String, JobSpec), Fault> {
    let source = signed_job::text(client, job).await?;
    let unreadable = |e| internal(format!("this version cannot read the job file ({e}): use the version that ran the job"));
    let spec = JobSpec::parse(&source).map_err(unreadable)?;
    Ok((source, spec))
}

/// Fetches a job's draws by way of a temporary folder.
///
/// # Errors
/// Those of the coordinator and the file system; [`ErrorCode::NotFound`] if the coordinator holds no draws.
pub(crate) async fn fetch_draws(client: &mut JobsClient<Channel>, job: &str) -> Result<Draws, Fault> {
    let folder = TemporaryFolder::create()?;
    fetch(client, job, folder.path()).await?;
    Draws::read(folder.path())
}

/// Runs work until it is done or Ctrl-C interrupts it; what it holds is released either way.
///
/// # Errors
/// Those of the work; [`ErrorCode::Internal`] for Ctrl-C.
pub(crate) async fn interruptible<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Err(internal("interrupted: nothing was written")),
    }
}

/// Returns the run's object; without one, fails with the reason and the next step.
pub(crate) fn result_of(status: &JobStatus, options: &str) -> Result<Value, Fault> {
    if !status.result_json.is_empty() {
        return read(&status.result_json);
    }
    let job = &status.job;
    Err(match status.state.as_str() {
        "failed" => failure(status),
        "cancelled" => Fault::new(
            ErrorCode::NotFound,
            format!("job {job} was cancelled before its first draw, so there is nothing to report"),
        )
        .with_remedy("submit it again"),
        state => Fault::new(ErrorCode::NotFound, format!("job {job} is {state} and has no result yet"))
            .with_remedy(format!("follow it to its end with `conclave watch {job}{options}`, then try again")),
    })
}
