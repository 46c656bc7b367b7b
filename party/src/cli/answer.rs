//! `conclave-party answer`.

use std::path::PathBuf;

use clap::Args;

use super::common::{JobArgs, load};
use crate::answer::{WARNING, Written, answer as answered};
use crate::error::StartError;

/// Computes the posterior of a job from this owner's records without noise and the other owners' releases as they are.
///
/// WARNING: the answer is a function of these records without any protection. Passing it on is a release of these records without
/// protection; it is for use inside this organisation.
///
/// The command fetches the job's public log from the coordinator and checks it, as `verify` does. It reads the records from `data.path`,
/// computes the answer on this machine, charges nothing and sends nothing. The answer goes to a new file that this user alone may read;
/// a table of it is printed.
///
/// It takes finished jobs of algorithm = "noisy-statistics" whose releases are plain score stages: logistic, poisson, negative_binomial,
/// student_t and weibull. Exit codes are those of `verify`: 3 if the log fails a check, 2 if the job has no own answer, with the reason.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The file to write, which must not exist; by default answer-JOB.json in the current folder.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Certificate of a CA that has been replaced since this party opened the job, as for `verify`; may be repeated.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
}

pub(super) fn answer(args: &AnswerArgs) -> Result<(), StartError> {
    let AnswerArgs { job: args, output, ca } = args;
    if let Some(missing) = ca.iter().find(|ca| !ca.is_file()) {
        return Err(StartError::Input(format!("--ca {}: there is no such file", missing.display())));
    }
    let config = load(&args.common)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| StartError::System(format!("no runtime: {e}")))?;
    let written = runtime.block_on(answered(&config, &args.job, output.as_deref(), ca));
    runtime.shutdown_background();
    let Written { report, file } = written?;
    let text = format!("{WARNING}\n{}\nwritten to {}", report.table(), file.display());
    args.common.print(&report, &text)
}
