//! `conclave jobs`, `watch`, `cancel` and `summary`.

use std::process::ExitCode;

use clap::Args;
use conclave_common::text::one_line;
use conclave_pages::moment::utc;
use conclave_pages::short_id::shortest;
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::thousands;
use conclave_pages::verdict::{Grade, state_words};
use conclave_pages::waiting::is_for_consent;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::{JobRequest, JobStatus, ListRequest};
use serde_json::json;

use crate::client::Connection;
use crate::faults::refused;
use crate::inadequate::AdequacyArgs;
use crate::interval::{IntervalArgs, at_level};
use crate::job_status::as_json;
use crate::output::{say, say_json};
use crate::progress::{ProgressArgs, ProgressFormat};
use crate::short_id::whole_id;
use crate::submit::{Extent, ResultOptions, print_result, wait};

/// List the coordinator's jobs, newest first
#[derive(Args)]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    connection: Connection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A job of the coordinator.
#[derive(Args)]
pub(crate) struct JobArgs {
    /// The job's id, or its first characters, as `conclave jobs` shows it
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn list(args: JobsArgs) -> Result<ExitCode, Fault> {
    let mut client = args.connection.open().await?;
    let reply = client.list(ListRequest {}).await.map_err(refused)?;
    let mut jobs = reply.into_inner().jobs;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.submitted_unix_ms));
    if args.json {
        let jobs: Vec<_> = jobs.iter().map(as_json).collect();
        say_json(&json!({ "jobs": jobs }));
    } else if jobs.is_empty() {
        say!("No jobs yet. `conclave submit JOB.toml` sends one.");
    } else {
        let state = |job: &JobStatus| {
            let words = state_words(&job.state, &job.verdict, is_for_consent(&job.waiting_for, &job.awaiting_consent));
            if job.place > 0 { format!("{words} ({})", job.place) } else { words }
        };
        let verdict = |job: &JobStatus| {
            Grade::parse(&job.verdict).map_or_else(|| "-".to_owned(), |grade| format!("{} {}", grade.sign(), grade.words()))
        };
        let length = shortest(&jobs.iter().map(|job| job.job.as_str()).collect::<Vec<_>>());
        let columns: [Column<'_, JobStatus>; 9] = [
            ("job", &|job| Cell::name(job.job.get(..length).unwrap_or(&job.job))),
            ("name", &|job| Cell::name(&job.name)),
            ("analyst", &|job| Cell::name(&job.analyst)),
            ("state", &|job| Cell::text(state(job))),
            ("verdict", &|job| Cell::text(verdict(job))),
            ("phase", &|job| Cell::text(&job.phase)),
            ("draws", &|job| Cell::number(thousands(job.draws))),
            ("of", &|job| Cell::number(thousands(job.draws_asked))),
            ("submitted", &|job| Cell::text(utc(job.submitted_unix_ms))),
        ];
        say!("{}", Table::new("", &jobs, &columns).text().trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// A job whose result is shown.
#[derive(Args)]
pub(crate) struct ResultArgs {
    #[command(flatten)]
    of: JobArgs,
    #[command(flatten)]
    interval: IntervalArgs,
    #[command(flatten)]
    adequacy: AdequacyArgs,
    /// Print every parameter and all diagnostics, not what fits one screen
    #[arg(long)]
    all: bool,
}

/// A job that is followed to its end.
#[derive(Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    result: ResultArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl JobArgs {
    /// Completes the job's id.
    ///
    /// # Errors
    /// Those of [`whole_id`].
    pub(crate) async fn with_whole_id(self) -> Result<Self, Fault> {
        Ok(Self { job: whole_id(&self.connection, &self.job).await?, ..self })
    }
}

fn extent(json: bool, all: bool) -> Extent {
    match (json, all) {
        (true, _) => Extent::Json,
        (false, true) => Extent::All,
        (false, false) => Extent::Screen,
    }
}

pub(crate) async fn watch(args: WatchArgs) -> Result<ExitCode, Fault> {
    let WatchArgs { result: args, progress } = args;
    let JobArgs { job, connection, json } = args.of.with_whole_id().await?;
    let mut client = connection.open().await?;
    let (options, extent) = (connection.options(), extent(json, args.all));
    let (level, adequacy) = (args.interval.other(), args.adequacy);
    let output = ResultOptions { options: &options, extent, level, adequacy, progress: progress.format };
    wait(&mut client, &job, &output).await
}

pub(crate) async fn cancel(args: JobArgs) -> Result<ExitCode, Fault> {
    let args = args.with_whole_id().await?;
    let mut client = args.connection.open().await?;
    let request = JobRequest { job: args.job.clone() };
    let status = client.cancel(request).await.map_err(refused)?.into_inner();
    if args.json {
        say_json(&as_json(&status));
    } else {
        say!("Job {} is {}.", args.job, one_line(&status.state));
        if !status.result_json.is_empty() {
            say!("The draws made so far are kept: conclave summary {}{}", args.job, args.connection.options());
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn summary(args: ResultArgs) -> Result<ExitCode, Fault> {
    let ResultArgs { of: args, interval, adequacy, all } = args;
    let args = args.with_whole_id().await?;
    let mut client = args.connection.open().await?;
    let request = JobRequest { job: args.job.clone() };
    let status = client.get(request).await.map_err(refused)?.into_inner();
    if status.result_json.is_empty() && status.state != "failed" {
        let state = state_words(&status.state, &status.verdict, is_for_consent(&status.waiting_for, &status.awaiting_consent));
        return Err(Fault::new(ErrorCode::NotFound, format!("job {} is {state} and has no result", args.job))
            .with_remedy(format!("follow it with `conclave watch {}{}`", args.job, args.connection.options())));
    }
    let status = at_level(&mut client, status, interval.other()).await?;
    let options = args.connection.options();
    let (extent, progress) = (extent(args.json, all), ProgressFormat::default());
    let output = ResultOptions { options: &options, extent, level: None, adequacy, progress };
    let ended = print_result(&status, &output)?;
    // Printing a cancelled job's result is a success.
    Ok(if status.state == "cancelled" { ExitCode::SUCCESS } else { ended })
}
