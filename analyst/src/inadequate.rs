//! The exit code of a run whose answer is not adequate.

use std::process::ExitCode;

use clap::Args;
use conclave_pages::verdict::Grade;

use crate::output::note;

/// The exit code that a script gets for an answer that is not adequate.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct AdequacyArgs {
    /// Exit with 0, not 3, if the run has finished without an adequate answer
    #[arg(long)]
    allow_inadequate: bool,
}

impl AdequacyArgs {
    /// Returns the exit code of a finished run with this grade: 3 without an adequate answer.
    pub(crate) fn exit_code(self, grade: Grade) -> ExitCode {
        if grade != Grade::NoAnswer || self.allow_inadequate {
            return ExitCode::SUCCESS;
        }
        note!("conclave: the run has no adequate answer, so this command exits with 3 (with --allow-inadequate: 0)");
        ExitCode::from(3)
    }
}
