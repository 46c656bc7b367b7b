//! `conclave-party backup`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::common::{Common, load};
use crate::error::StartError;
use crate::ledger_views::backup as copy;

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    #[command(flatten)]
    common: Common,
    /// The copy's file, which must not exist; the decisions are written beside it.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

pub(super) fn backup(args: &BackupArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let done = copy(&config.ledger_settings(), &args.to)?;
    let object = json!({ "file": args.to, "decisions": done.decisions, "entries": done.entries, "head": done.head });
    let text = format!(
        "{}: {} entries, each verified, up to {}\nStore it on another machine. Charges made after it still count: a restored \
         copy is locked until you unlock it with a reason. The copy does not include the key folder {}.",
        args.to.display(),
        done.entries,
        done.head,
        config.identity.display()
    );
    args.common.print(&object, &text)
}
