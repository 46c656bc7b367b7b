//! `conclave report`: its options, and the file that it writes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_draws::Draws;
use conclave_pages::text::thousands;
use conclave_predict::Level;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobRequest, JobStatus};
use serde_json::json;
use tonic::transport::Channel;

use super::failed;
use super::material::Material;
use super::page::page;
use super::units::{Per, Units};
use crate::draws::{fetch, partial_name};
use crate::ended::{fetch_spec, result_of};
use crate::faults::{input, refused};
use crate::files;
use crate::interval::{IntervalArgs, of_draws, without_draws};
use crate::jobs::JobArgs;
use crate::output::show;
use crate::signed_job;

/// Write a job's result as one HTML file
///
/// The report leads with the result: a forest plot of all coefficients, to copy as a table or to save as a picture. Methods to
/// paste, diagnostics, the budget spent at each party with its guarantee, and an appendix with every figure and the job file follow.
/// The file needs no network and has no external references: mail it, archive it, print it. The same job yields the same file.
///
/// Works for every job that has ended: finished, ended by a budget, cancelled. For one that failed before its first draw the report
/// states the query, the spending of each party, the reason and the remedy. Its numbers are those of `conclave summary JOB --json`,
/// rounded. Programs find every digit in <data value="..."> elements, and the full object at the end.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  conclave report JOB -o report.html\n  conclave report JOB -o report.html --interval 0.95 --per \"age=10 years\"\n  conclave report JOB -o report.html && xdg-open report.html"
)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    from: JobArgs,
    /// Output file; must not exist
    #[arg(short = 'o', long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    interval: IntervalArgs,
    /// Units of a numeric predictor in the result's rows: age=10, or "age=10 years"; repeatable. The JSON object is unchanged
    #[arg(long, value_name = "COLUMN=NUMBER")]
    per: Vec<Per>,
}

pub(crate) async fn run(args: ReportArgs) -> Result<ExitCode, Fault> {
    if args.out.exists() {
        return Err(input(format!("{} already exists", args.out.display())).with_remedy("choose another path"));
    }
    let args = ReportArgs { from: args.from.with_whole_id().await?, ..args };
    let mut client = args.from.connection.open().await?;
    let partial = partial_name(&args.out);
    let source = Source {
        coordinator: &args.from.connection.coordinator,
        options: &args.from.connection.options(),
        job: &args.from.job,
        partial: &partial,
    };
    let page = html(&mut client, &source, args.interval.other(), &args.per).await?;
    written(&args, &page)
}

/// The job that a report is made of, and where its draws are kept meanwhile.
pub(crate) struct Source<'a> {
    /// The coordinator's address.
    pub(crate) coordinator: &'a str,
    /// Connection options of suggested commands.
    pub(crate) options: &'a str,
    /// The job's whole id.
    pub(crate) job: &'a str,
    /// The folder that the draws are fetched to, and which is removed at the end; must not exist.
    pub(crate) partial: &'a Path,
}

/// Returns a job's report as one HTML page.
///
/// # Errors
/// Those of the coordinator; a job that has not ended; a unit that is none of the job's.
pub(crate) async fn html(
    client: &mut JobsClient<Channel>,
    from: &Source<'_>,
    level: Option<Level>,
    per: &[Per],
) -> Result<String, Fault> {
    let Source { coordinator, job, partial, .. } = *from;
    let status = client.get(JobRequest { job: job.to_owned() }).await.map_err(refused)?.into_inner();
    if ended_without_result(&status) {
        let (source, spec) = fetch_spec(client, job).await?;
        let log = log_digest(client, &spec, job).await;
        return Ok(failed::page(&status, &source, &spec, log.as_deref(), coordinator));
    }
    let mut result = result_of(&status, from.options)?;
    let (source, spec) = fetch_spec(client, job).await?;
    let units = Units::new(per, &spec)?;
    if partial.exists() {
        return Err(input(format!("{} already exists, and the report's draws would be fetched there", partial.display()))
            .with_remedy("move it away"));
    }
    let fetched = fetch(client, job, partial).await;
    let draws = read(partial, fetched)?;
    if let Some(level) = level {
        let gone = || without_draws(Fault::new(ErrorCode::NotFound, ""), job);
        of_draws(&mut result, &spec, draws.as_ref().ok_or_else(gone)?, level);
    }
    let log = log_digest(client, &spec, job).await;
    Ok(page(&Material {
        status: &status,
        source: &source,
        spec: &spec,
        result: &result,
        draws: draws.as_ref(),
        units: &units,
        log: log.as_deref(),
        coordinator,
    }))
}

/// Returns true for a job that failed, or was cancelled, before its first draw.
fn ended_without_result(status: &JobStatus) -> bool {
    status.result_json.is_empty() && matches!(status.state.as_str(), "failed" | "cancelled")
}

/// Returns the digest of the job's log. A log that the coordinator does not send whole has none: the report says so.
async fn log_digest(client: &JobsClient<Channel>, spec: &JobSpec, job: &str) -> Option<String> {
    signed_job::log_digest(client, spec, job).await.ok()
}

/// Writes the page, and prints its path.
fn written(args: &ReportArgs, page: &str) -> Result<ExitCode, Fault> {
    files::write_new(&args.out, page)?;
    let out = args.out.display().to_string();
    let object = json!({ "job": args.from.job, "report": out, "bytes": page.len() });
    show(args.from.json, &object, &format_args!("{out}: {} bytes", thousands(page.len() as u64)));
    Ok(ExitCode::SUCCESS)
}

/// Reads the fetched draws, and always removes the folder that holds them.
fn read(folder: &Path, fetched: Result<(u64, u64), Fault>) -> Result<Option<Draws>, Fault> {
    let draws = match fetched {
        Ok(_) => Draws::read(folder).map(Some),
        // A report without draws is possible: the coordinator may have removed them.
        Err(fault) if fault.code == ErrorCode::NotFound => Ok(None),
        Err(fault) => Err(fault),
    };
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| Fault::of_file(folder, "be removed", &e))?;
    }
    draws
}
