//! `conclave extend`: a job that continues a finished one.

use std::process::ExitCode;

use clap::Args;
use conclave_common::job::{Continuation, Extension};
use conclave_proto::error::Fault;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobRequest, JobStatus};
use serde::Deserialize;
use tonic::transport::Channel;

use crate::client::Connection;
use crate::faults::{input, refused};
use crate::inadequate::AdequacyArgs;
use crate::interval::IntervalArgs;
use crate::progress::ProgressArgs;
use crate::result::read;
use crate::short_id::whole_id;
use crate::signed_job;
use crate::submit::{OutputOptions, submit_and_report};

const AFTER_HELP: &str = "\
The extension has the model, columns, priors and privacy of the job, and its own seed. Each chain starts at its last draw, with \
the final radii of the job; there is no search and no warm-up. Its cost is added to what the job has spent: the owners' \
remaining budgets must cover it.

To continue further, extend the extension. Extending one job twice would start both from the same states with the same proposals.

Combine the draws of both, chain by chain:
  conclave draws JOB --format zarr --out first.zarr
  conclave draws EXTENSION --format zarr --out second.zarr
  python: parts = [xarray.open_datatree(p, engine=\"zarr\")[\"posterior\"].to_dataset() for p in (\"first.zarr\", \"second.zarr\")]
          draws = xarray.concat([p.drop_vars(\"draw\") for p in parts], dim=\"draw\")

Example:
  conclave extend JOB --draws 10000 --coordinator https://coordinator.example --identity identity/ --wait";

/// Continue a finished job's chains as a new job
///
/// The extension is signed, consented to, capped and charged as any other job. Its result names the job it extends.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExtendArgs {
    /// The finished job's id, or its first characters, as `conclave jobs` shows it
    #[arg(value_name = "JOB")]
    job: String,
    /// Draws per chain [default: the number that the job requested]
    #[arg(long, value_name = "N")]
    draws: Option<u64>,
    /// Budget of the extension at each party [default: that of the job]
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    #[command(flatten)]
    connection: Connection,
    /// Show progress until the extension has ended, then its posterior and the budget spent at each party
    #[arg(long)]
    wait: bool,
    /// Print one JSON object: the result with --wait, else the ids of the extension and of the job
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    interval: IntervalArgs,
    #[command(flatten)]
    adequacy: AdequacyArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// The fields of a run's object that describe its continuation.
#[derive(Deserialize)]
struct Ended {
    continuation: Option<Continuation>,
    stopped_by: Option<String>,
}

pub(crate) async fn run(args: ExtendArgs) -> Result<ExitCode, Fault> {
    let job = whole_id(&args.connection, &args.job).await?;
    let mut client = args.connection.open().await?;
    let text = extension(&mut client, &job, args.draws, args.epsilon, &args.connection.options()).await?;
    let output = OutputOptions {
        extends: Some(&job),
        wait: args.wait,
        json: args.json,
        level: args.interval.other(),
        adequacy: args.adequacy,
        progress: args.progress.format,
    };
    submit_and_report(&mut client, &args.connection, text, &output).await
}

/// Returns the text of a job that continues this one; `options` are those of suggested commands.
///
/// # Errors
/// Those of the coordinator; a job that has not ended, or cannot be continued.
pub(crate) async fn extension(
    client: &mut JobsClient<Channel>,
    job: &str,
    draws: Option<u64>,
    epsilon: Option<f64>,
    options: &str,
) -> Result<String, Fault> {
    let request = JobRequest { job: job.to_owned() };
    let status = client.get(request).await.map_err(refused)?.into_inner();
    let end = continuation(&status, options)?;
    let source = signed_job::text(client, job).await?;
    let extension = Extension { job, end: &end, draws, epsilon };
    extension.of(&source).map_err(|e| input(format!("job {job} can't be extended: {e}")))
}

/// Returns the final state of a job's chains, failed jobs included, unless the chains target another posterior.
fn continuation(status: &JobStatus, options: &str) -> Result<Continuation, Fault> {
    let job = &status.job;
    match status.state.as_str() {
        "finished" | "cancelled" | "failed" => {}
        state => {
            return Err(input(format!("job {job} is {state}, and only a job that has ended can be extended"))
                .with_remedy(format!("follow it with `conclave watch {job}{options}`")));
        }
    }
    if status.result_json.is_empty() {
        return Err(input(format!("job {job} made no draws to continue")).with_remedy("submit it again"));
    }
    let ended: Ended = read(&status.result_json)?;
    let earlier = || {
        input(format!("job {job} ended under a version that stored no last states"))
            .with_remedy("submit it again with more draws")
    };
    if ended.stopped_by.as_deref() == Some("clip") {
        return Err(input(format!(
            "job {job} was stopped because its clip truncates too much: its chains target another posterior"
        )));
    }
    ended.continuation.ok_or_else(earlier)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::error::ErrorCode;

    #[test]
    fn what_ended_with_draws_is_continued() {
        let status = |state: &str, result: &str| JobStatus {
            job: "j".to_owned(),
            state: state.to_owned(),
            result_json: result.to_owned(),
            ..JobStatus::default()
        };
        let whole = r#"{"continuation":{"radii":[0.1],"states":[[0.30000000000000004]]},"more":1}"#;
        for state in ["finished", "cancelled", "failed"] {
            assert_eq!(continuation(&status(state, whole), "").unwrap().states, [[0.1 + 0.2]]);
        }
        for (state, result, word) in [
            ("running", "", "conclave watch j"),
            ("paused", "", "is paused"),
            ("failed", "", "no draws"),
            ("failed", r#"{"continuation":{"radii":[0.1],"states":[[0.3]]},"stopped_by":"clip"}"#, "another posterior"),
            ("cancelled", "", "no draws"),
            ("finished", "{}", "no last states"),
        ] {
            let fault = continuation(&status(state, result), "").unwrap_err();
            assert!(fault.code == ErrorCode::InvalidInput && fault.to_string().contains(word), "{fault}");
        }
    }
}
