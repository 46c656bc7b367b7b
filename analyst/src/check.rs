//! `conclave check`: looks for mistakes in records before a job uses them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_pages::text::thousands;
use conclave_party::screening::Concern;
use conclave_proto::error::{ErrorCode, Fault};
use serde_json::{Value, json};

use crate::faults::input;
use crate::output::{say, say_json};
use crate::records;
use crate::rehearse::screen;
use crate::submit::read_job;

/// Check records for mistakes before a job uses them
///
/// Looks for values outside the declared bounds, unknown levels, codes that stand for "unknown", and designs that no model can
/// separate. What it prints depends on the records and has no noise: it is for their owner alone. Exit code 2 if a job can't use
/// the records as they are.
#[derive(Args)]
#[command(after_help = "Example:\n  conclave check job.toml --data a.csv --data b.parquet")]
pub(crate) struct CheckArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Records: a .csv or .parquet file, or a folder of raw columns; may be given several times
    #[arg(long, required = true, value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Treat rows with a missing, non-numeric or non-finite value as inert, as a party's bad_rows = "drop" does
    #[arg(long)]
    drop_bad_rows: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The records of one path, and what was found in them.
struct Checked<'a> {
    path: &'a Path,
    rows: u64,
    /// Rows with a missing, non-numeric or non-finite value.
    unusable: u64,
    concerns: Vec<Concern>,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Fault> {
    let spec = JobSpec::parse(&read_job(&args.job)?).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    let checked = args.data.iter().map(|path| check(path, &spec, args.drop_bad_rows)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        say_json(&json!({ "records": checked.iter().map(as_json).collect::<Vec<_>>() }));
    } else {
        checked.iter().for_each(print);
    }
    let grave = checked.iter().flat_map(|of| &of.concerns).any(|concern| concern.grave);
    Ok(if grave { ExitCode::from(ErrorCode::InvalidInput.exit_code()) } else { ExitCode::SUCCESS })
}

fn check<'a>(path: &'a Path, spec: &JobSpec, drop: bool) -> Result<Checked<'a>, Fault> {
    let shard = records::load(path, spec, drop)?;
    let concerns = screen(shard.as_ref(), spec)?;
    Ok(Checked { path, rows: shard.file_rows(), unusable: shard.inert(), concerns })
}

fn as_json(of: &Checked<'_>) -> Value {
    let concern = |c: &Concern| json!({ "grave": c.grave, "found": c.found, "remedy": c.remedy });
    let concerns: Vec<Value> = of.concerns.iter().map(concern).collect();
    json!({ "data": of.path.display().to_string(), "rows": of.rows, "unusable": of.unusable, "concerns": concerns })
}

fn print(of: &Checked<'_>) {
    let unusable = if of.unusable > 0 { format!(", {} of them unusable", thousands(of.unusable)) } else { String::new() };
    say!("{}: {} rows{unusable}", of.path.display(), thousands(of.rows));
    for concern in &of.concerns {
        say!("  {}: {concern}", if concern.grave { "error" } else { "warning" });
    }
    if of.concerns.is_empty() {
        say!("  nothing found");
    }
}
