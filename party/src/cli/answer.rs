//! `conclave-party answer`.

use std::path::PathBuf;

use clap::Args;

use super::common::{JobArgs, load};
use crate::answer::{WARNING, Written, answer as answered};
use crate::error::StartError;

/// The job, and the file for its answer.
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
