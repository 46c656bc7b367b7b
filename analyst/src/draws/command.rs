//! `conclave draws`: its options, and the output formats.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use conclave_draws::zarr::pack_folder;
use conclave_draws::{Draws, export};
use conclave_pages::text::thousands;
use conclave_pages::verdict::Grade;
use conclave_proto::error::Fault;
use conclave_proto::v1::JobRequest;
use serde_json::json;

use super::fetch::{fetch, partial_name};
use crate::client::OptionalConnection;
use crate::faults::input;
use crate::files;
use crate::jobs::JobArgs;
use crate::output::{note, show};

/// Fetch a job's draws
///
/// zarr: a Zarr v3 store in ArviZ's layout, for xarray.open_datatree: a folder, or one file if --out ends in .zip. csv: a folder
/// of CmdStan files, one per chain, for cmdstanpy.from_csv and arviz.from_cmdstan. parquet: one table with a row per chain and
/// draw. All are on the scale of the priors, the kept draws also in the data's units, with the warm-up in a separate group. A
/// running job yields the draws made so far. With --from, a store on this machine is exported, such as that of `conclave rehearse
/// --out`, and no coordinator is asked.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  conclave draws JOB --format zarr --out draws.zarr\n  conclave draws JOB --format csv --out \
    draws/\n  conclave draws JOB --format parquet --out draws.parquet\n  conclave draws --from rehearsal.zarr --format csv --out draws/"
)]
pub(crate) struct DrawsArgs {
    /// The job's id, or its first characters, as `conclave jobs` shows it
    #[arg(value_name = "JOB", required_unless_present = "from")]
    job: Option<String>,
    /// Export this store of draws, made by --out of `conclave rehearse` or `refit` or by --format zarr, in place of a job's
    #[arg(long, value_name = "STORE", conflicts_with = "job")]
    from: Option<PathBuf>,
    #[command(flatten)]
    connection: OptionalConnection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Output format
    #[arg(long, value_enum)]
    format: Format,
    /// Output path; must not exist
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Zarr,
    Csv,
    Parquet,
}

pub(crate) async fn run(args: DrawsArgs) -> Result<ExitCode, Fault> {
    let one_file = args.format == Format::Zarr && args.out.extension().is_some_and(|extension| extension == "zip");
    let exists = match args.format {
        Format::Parquet => args.out.exists(),
        Format::Zarr if one_file => args.out.exists(),
        Format::Zarr | Format::Csv => !files::is_vacant(&args.out)?,
    };
    if exists {
        return Err(input(format!("{} already exists", args.out.display())).with_remedy("choose another path"));
    }
    let DrawsArgs { job, from, connection, json, format, out } = args;
    let (source, (count, bytes)) = match (from, job, connection.given()) {
        (Some(_), ..) if format == Format::Zarr && !one_file => {
            return Err(input("--from names a Zarr store: choose --format csv or parquet, or let --out end in .zip"));
        }
        (Some(store), ..) => {
            let written = exported(&store, format, &out)?;
            (Source::Store(store), written)
        }
        (None, Some(job), Some(connection)) => {
            let job = JobArgs { job, connection, json }.with_whole_id().await?;
            let written = fetched(&job, format, one_file, &out).await?;
            (Source::Job(job), written)
        }
        // The parser requires these options.
        _ => return Err(input("give a job and its coordinator, or --from STORE")),
    };
    let verdict = match &source {
        Source::Job(job) => verdict(job).await,
        Source::Store(_) => None,
    };
    if let Some(grade) = verdict.filter(|grade| *grade <= Grade::NotUsable) {
        note!("warning: the verdict on this job is {}: no figure of these draws can be reported", grade.words());
    }
    let out = out.display().to_string();
    let mut object = json!({ "draws": out, "files": count, "bytes": bytes });
    match &source {
        Source::Job(job) => {
            object["job"] = json!(job.job);
            object["verdict"] = json!(verdict.map(Grade::words));
        }
        Source::Store(store) => object["from"] = json!(store.display().to_string()),
    }
    show(json, &object, &format_args!("{out}: {count} files, {} bytes", thousands(bytes)));
    Ok(ExitCode::SUCCESS)
}

/// The origin of exported draws.
enum Source {
    Job(JobArgs),
    Store(PathBuf),
}

/// Fetches the grade of a job's answer; `None` for a job without a result.
async fn verdict(job: &JobArgs) -> Option<Grade> {
    let mut client = job.connection.open().await.ok()?;
    let status = client.get(JobRequest { job: job.job.clone() }).await.ok()?.into_inner();
    Grade::parse(&status.verdict)
}

/// Fetches a job's draws and writes them; returns the number of files and of bytes.
async fn fetched(job: &JobArgs, format: Format, one_file: bool, out: &Path) -> Result<(u64, u64), Fault> {
    let mut client = job.connection.open().await?;
    // Written under another name first, so that an incomplete store is never mistaken for a complete one.
    let partial = partial_name(out);
    let fetched = fetch(&mut client, &job.job, &partial).await?;
    if format == Format::Zarr && !one_file {
        return std::fs::rename(&partial, out).map(|()| fetched).map_err(|e| Fault::of_file(out, "be written", &e));
    }
    let written = exported(&partial, format, out);
    std::fs::remove_dir_all(&partial).map_err(|e| Fault::of_file(&partial, "be removed", &e))?;
    written
}

/// Writes a store in another format; returns the number of files and of bytes.
fn exported(store: &Path, format: Format, out: &Path) -> Result<(u64, u64), Fault> {
    match format {
        Format::Zarr => {
            pack_folder(store, out).map_err(|e| Fault::of_file(out, "be written", &e))?;
            let bytes = out.metadata().map_err(|e| Fault::of_file(out, "be read", &e))?.len();
            Ok((1, bytes))
        }
        Format::Csv => Draws::read(store).and_then(|draws| export::write_cmdstan(&draws, out)),
        Format::Parquet => Draws::read(store).and_then(|draws| export::write_parquet(&draws, out)),
    }
}
