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
use conclave_proto::v1::jobs_client::JobsClient;
use serde_json::json;
use tonic::transport::Channel;

use super::fetch::{fetch, partial_name};
use crate::faults::input;
use crate::files;
use crate::jobs::JobArgs;
use crate::output::{note, show};

/// Fetch a job's draws
///
/// zarr: a Zarr v3 store in ArviZ's layout, for xarray.open_datatree: a folder, or one file if --out ends in .zip. csv: a folder
/// of CmdStan files, one per chain, for cmdstanpy.from_csv and arviz.from_cmdstan. parquet: one table with a row per chain and
/// draw. All are on the scale of the priors, the kept draws also in the data's units, with the warm-up in a separate group. A
/// running job yields the draws made so far.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  conclave draws JOB --format zarr --out draws.zarr\n  conclave draws JOB --format csv --out \
    draws/\n  conclave draws JOB --format parquet --out draws.parquet"
)]
pub(crate) struct DrawsArgs {
    #[command(flatten)]
    from: JobArgs,
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
    let args = DrawsArgs { from: args.from.with_whole_id().await?, ..args };
    let one_file = args.format == Format::Zarr && args.out.extension().is_some_and(|extension| extension == "zip");
    let exists = match args.format {
        Format::Parquet => args.out.exists(),
        Format::Zarr if one_file => args.out.exists(),
        Format::Zarr | Format::Csv => !files::is_vacant(&args.out)?,
    };
    if exists {
        return Err(input(format!("{} already exists: choose another path", args.out.display())));
    }
    let mut client = args.from.connection.open().await?;
    // Written under another name first, so that an incomplete store is never mistaken for a complete one.
    let partial = partial_name(&args.out);
    let fetched = fetch(&mut client, &args.from.job, &partial).await?;
    let (count, bytes) = match args.format {
        Format::Zarr if one_file => {
            pack_folder(&partial, &args.out).map_err(|e| Fault::of_file(&args.out, "be written", &e))?;
            std::fs::remove_dir_all(&partial).map_err(|e| Fault::of_file(&partial, "be removed", &e))?;
            let bytes = args.out.metadata().map_err(|e| Fault::of_file(&args.out, "be read", &e))?.len();
            (1, bytes)
        }
        Format::Zarr => {
            std::fs::rename(&partial, &args.out).map(|()| fetched).map_err(|e| Fault::of_file(&args.out, "be written", &e))?
        }
        Format::Csv => converted(&partial, |draws| export::write_cmdstan(draws, &args.out))?,
        Format::Parquet => converted(&partial, |draws| export::write_parquet(draws, &args.out))?,
    };
    let out = args.out.display().to_string();
    let verdict = verdict(&mut client, &args.from.job).await;
    if let Some(grade) = verdict.filter(|grade| *grade <= Grade::NotUsable) {
        note!("warning: the verdict on this job is {}: no figure of these draws can be reported", grade.words());
    }
    let verdict = verdict.map(Grade::words);
    let object = json!({ "job": args.from.job, "draws": out, "files": count, "bytes": bytes, "verdict": verdict });
    show(args.from.json, &object, &format_args!("{out}: {count} files, {} bytes", thousands(bytes)));
    Ok(ExitCode::SUCCESS)
}

/// Fetches the grade of a job's answer; `None` for a job without a result.
async fn verdict(client: &mut JobsClient<Channel>, job: &str) -> Option<Grade> {
    let status = client.get(JobRequest { job: job.to_owned() }).await.ok()?.into_inner();
    Grade::parse(&status.verdict)
}

/// Writes a fetched store in another format and removes the store.
fn converted(store: &Path, write: impl Fn(&Draws) -> Result<(u64, u64), Fault>) -> Result<(u64, u64), Fault> {
    let written = Draws::read(store).and_then(|draws| write(&draws));
    std::fs::remove_dir_all(store).map_err(|e| Fault::of_file(store, "be removed", &e))?;
    written
}
