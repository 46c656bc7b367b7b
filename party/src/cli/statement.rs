//! `conclave-party statement`.

use clap::Args;
use conclave_pages::document;
use conclave_pages::page::Footer;

use super::common::{JobArgs, load};
use crate::error::StartError;
use crate::owner::{find, statement};

#[derive(Debug, Args)]
pub(super) struct StatementArgs {
    #[command(flatten)]
    of: JobArgs,
    /// Write one HTML file instead of Markdown; printed, it has the job's id and the page's number on every page.
    #[arg(long)]
    html: bool,
}

pub(super) fn statement(args: &StatementArgs) -> Result<(), StartError> {
    let config = load(&args.of.common)?;
    let job = find(&config.ledger, &args.of.job)?;
    let blocks = statement::statement_now(&config, &job)?;
    let footer = statement::footer(&config, &job);
    let text = match args.html {
        true => document::printed_file(&blocks, &Footer { text: &footer, at: "" }),
        false => document::markdown(&blocks),
    };
    let format = if args.html { "html" } else { "markdown" };
    args.of.common.print(&serde_json::json!({
        "job": job.request.job, "format": format, "statement": text, "analyst_key": job.terms.signer().map(|key| key.to_string()),
    }), &text)
}
