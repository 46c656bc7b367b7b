//! `conclave report`: its options, and the file that it writes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_draws::Draws;
use conclave_pages::text::thousands;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::{JobRequest, JobStatus};
use serde_json::{Value, json};

use super::material::Material;
use super::page::page;
use crate::draws::{fetch, partial_name};
use crate::faults::{input, internal, refused};
use crate::files;
use crate::jobs::JobArgs;
use crate::output::show;
use crate::result::read as read_result;
use crate::signed_job;
use crate::submit::failure;

/// Write a job's result as one HTML file
///
/// The report states the model, its priors and public bounds; shows the posterior on both scales, traces, densities, pairs and
/// diagnostics; lists the budget spent at each party and its guarantee; and includes everything needed to repeat the run, the job
/// file included. The file needs no network and has no external references: mail it, archive it, print it. The same job yields
/// the same file.
///
/// Works for every job that has ended with draws: finished, ended by a budget, cancelled. Its numbers are those of
/// `conclave summary JOB --json`, rounded. Programs find every digit in <data value="..."> elements, and the full object at the
/// end.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  conclave report JOB -o report.html\n  conclave report JOB -o report.html && xdg-open report.html"
)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    from: JobArgs,
    /// Output file; must not exist
    #[arg(short = 'o', long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) async fn run(args: ReportArgs) -> Result<ExitCode, Fault> {
    if args.out.exists() {
        return Err(input(format!("{} already exists: choose another path", args.out.display())));
    }
    let mut client = args.from.connection.open().await?;
    let request = JobRequest { job: args.from.job.clone() };
    let status = client.get(request).await.map_err(refused)?.into_inner();
    let result = result_of(&status, &args.from.connection.options())?;
    let source = signed_job::text(&client, &args.from.job).await?;
    let spec = JobSpec::parse(&source)
        .map_err(|e| internal(format!("this version cannot read the job file ({e}): use the version that ran the job")))?;
    let partial = partial_name(&args.out);
    if partial.exists() {
        return Err(input(format!(
            "{} already exists, and the report's draws would be fetched there: move it away",
            partial.display()
        )));
    }
    let fetched = fetch(&mut client, &args.from.job, &partial).await;
    let draws = read(&partial, fetched)?;
    let page = page(&Material {
        status: &status,
        source: &source,
        spec: &spec,
        result: &result,
        draws: draws.as_ref(),
        coordinator: &args.from.connection.coordinator,
    });
    files::write_new(&args.out, &page)?;
    let out = args.out.display().to_string();
    let object = json!({ "job": args.from.job, "report": out, "bytes": page.len() });
    show(args.from.json, &object, &format_args!("{out}: {} bytes", thousands(page.len() as u64)));
    Ok(ExitCode::SUCCESS)
}

/// Returns the run's object; without one, fails with the reason and the next step.
pub(super) fn result_of(status: &JobStatus, options: &str) -> Result<Value, Fault> {
    if !status.result_json.is_empty() {
        return read_result(&status.result_json);
    }
    let job = &status.job;
    Err(match status.state.as_str() {
        "failed" => failure(status),
        "cancelled" => Fault::new(
            ErrorCode::NotFound,
            format!("job {job} was cancelled before its first draw, so there is nothing to report: submit it again"),
        ),
        state => Fault::new(
            ErrorCode::NotFound,
            format!(
                "job {job} is {state} and has no result yet: follow it to its end with `conclave watch {job}{options}`, then try \
                 again"
            ),
        ),
    })
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
