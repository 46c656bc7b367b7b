//! `conclave rehearse`: its options and output.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_ops::terminal;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;
use conclave_proto::error::Fault;
use conclave_vault::data::bind;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::bound::screened;
use super::progress::Progress;
use super::run::rehearse;
use crate::faults::{input, internal};
use crate::files;
use crate::interval::IntervalArgs;
use crate::output::{say, say_json};
use crate::progress::ProgressArgs;
use crate::records;
use crate::result::RunResult as ShownResult;
use crate::submit::read_job;

/// Run a job in this process on your own files: no network, no real budget
///
/// The sampler, the models, the noise and the accounting are those of a real run; only the owners' ledgers are missing,
/// so no budget is spent and nothing here is private. Use it to examine a job before submission, on the
/// analyst's own or on simulated records. Ctrl-C ends the run and keeps the draws made so far.
#[derive(Args)]
#[command(after_help = "Examples:\n  conclave rehearse job.toml --data a.csv --data b.csv --data c.csv\n  \
    conclave rehearse job.toml --data a.csv --data b.csv --data c.csv --json > rehearsal.json\n  \
    conclave plan job.toml --rehearsal rehearsal.json")]
pub(crate) struct RehearseArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// A party's records: a .csv or .parquet file, or a folder of raw columns; one for each party, in the job's order
    #[arg(long, required = true, value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Treat rows with a missing, non-numeric or non-finite value as inert (counted, contributing zero), as a party's bad_rows =
    /// "drop" does, instead of stopping at the first; the job must set incomplete_rows = true
    #[arg(long)]
    drop_bad_rows: bool,
    /// Run the job although no usable posterior can be expected at its budget
    #[arg(long)]
    anyway: bool,
    /// Write the draws to this path, a Zarr v3 store; must not exist
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Seed of the noise, for a repeatable run [default: the system's random generator]
    #[arg(long, value_name = "N")]
    noise_seed: Option<u64>,
    #[command(flatten)]
    interval: IntervalArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RehearseArgs) -> Result<ExitCode, Fault> {
    let text = read_job(&args.job)?;
    let mut spec = JobSpec::parse(&text).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    spec.sampler.force |= args.anyway;
    if args.data.len() != spec.parties.len() {
        let (got, parties) = (args.data.len(), spec.parties.join(", "));
        return Err(input(format!("{got} --data options for {} parties ({parties})", spec.parties.len()))
            .with_remedy("give one file for each"));
    }
    let shards = args.data.iter().map(|path| shard(path, &spec, args.drop_bad_rows)).collect::<Result<Vec<_>, _>>()?;
    let rng = match args.noise_seed {
        Some(seed) => ChaCha20Rng::seed_from_u64(seed),
        None => ChaCha20Rng::from_rng(&mut rand::rng()),
    };
    if let Some(out) = &args.out
        && !files::is_vacant(out)?
    {
        return Err(input(format!("{} is not empty", out.display())).with_remedy("choose a new folder"));
    }
    let mut progress = Progress::new(spec.draws_asked(), args.progress.format);
    let rehearsed = rehearse(&spec, shards, rng, args.out.as_deref(), &*stop_on_ctrl_c()?, &mut |state| progress.show(state));
    progress.finish();
    let json = rehearsed?.json(&spec, args.interval.other())?;
    if args.json {
        say_json(&json);
    } else {
        say!("{}", ShownResult::parse(&json)?.report(None).trim_end());
        say!("\nA rehearsal: no ledger was charged. The table above shows what the parties would have spent.");
        if let Some(out) = &args.out {
            say!("Draws: {}", out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads a party's records as the party itself would.
fn shard(path: &Path, spec: &JobSpec, drop: bool) -> Result<(ModelData, PrivacyUnit), Fault> {
    let shard = records::load(path, spec, drop)?;
    // Printed on standard error, outside the rehearsal's object: the object is passed on, and warnings concern single files.
    screened(shard.as_ref(), spec, &mut |concern| terminal::print_error(&format_args!("warning: {}: {concern}", path.display())))
        .map_err(|fault| input(format!("{}: {fault}", path.display())))?;
    let data = bind(&shard, spec).map_err(|e| input(format!("{}: {e}", path.display())))?;
    Ok((data, PrivacyUnit::default()))
}

/// Returns a flag that Ctrl-C sets.
fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>, Fault> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| internal(format!("could not start the runtime: {e}")))?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            raised.store(true, Ordering::Relaxed);
        }
    });
    Ok(flag)
}
