//! `conclave-party verify`.

use std::path::PathBuf;

use clap::Args;

use super::common::{JobArgs, load};
use crate::error::StartError;
use crate::verify::{Report, verify as checked};
use conclave_vault::text::clip;

/// Maximum length of a shown sentence; some contain the coordinator's text.
const LONGEST: usize = 1000;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Certificate of a CA that has been replaced since this party opened the job, beside those in the identity folder's
    /// retired-ca/; may be repeated.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
}

pub(super) fn verify(args: &VerifyArgs) -> Result<(), StartError> {
    let VerifyArgs { job: args, ca } = args;
    if let Some(missing) = ca.iter().find(|ca| !ca.is_file()) {
        return Err(StartError::Input(format!("--ca {}: there is no such file", missing.display())));
    }
    let config = load(&args.common)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| StartError::System(format!("no runtime: {e}")))?;
    let report = runtime.block_on(checked(&config, &args.job, ca));
    runtime.shutdown_background();
    let report = report?;
    args.common.print(&report, &table(&report))?;
    match report.failed().as_slice() {
        [] => Ok(()),
        failed => Err(StartError::NotVerified { job: report.job.clone(), failed: failed.join(", ") }),
    }
}

fn table(report: &Report) -> String {
    let mut lines = vec![
        format!("job {}: {} rounds replayed, {} draws per chain", report.job, report.rounds, report.draws),
        format!("{:<10} | Result", "Check"),
    ];
    for check in &report.checks {
        let detail = clip(&check.detail, LONGEST);
        lines.extend([format!("{:<10} | {}", check.name, check.result.as_str()), format!("{:<10} |   {detail}", "")]);
    }
    if let Some(digest) = &report.log_digest {
        lines.push(format!(
            "log SHA-256 {digest}: it must be equal at every party of the job; otherwise they were shown different logs"
        ));
    }
    lines.join("\n")
}
