//! `conclave-party statement`.

use clap::Args;
use conclave_pages::document;

use super::common::{JobArgs, load};
use crate::error::StartError;
use crate::ledger_views::report_kept;
use crate::owner::{Facts, analyst_remaining, find, releases, statement as written, worst_case};

#[derive(Debug, Args)]
pub(super) struct StatementArgs {
    #[command(flatten)]
    of: JobArgs,
    /// Write one HTML file instead of Markdown.
    #[arg(long)]
    html: bool,
}

pub(super) fn statement(args: &StatementArgs) -> Result<(), StartError> {
    let config = load(&args.of.common)?;
    let job = find(&config.ledger, &args.of.job)?;
    let settings = config.ledger_settings();
    let report = report_kept(&settings)?;
    let remaining = analyst_remaining(&settings, &report, &job.request.analyst).ok().flatten();
    let worst = job.spec.as_ref().and_then(|spec| worst_case(spec, job.spent().units, &report, remaining).ok());
    let releases = releases(&config.ledger, &job.request.job)?;
    let facts = Facts { report: &report, worst: worst.as_ref(), releases: releases.as_ref() };
    let blocks = written(&config, &job, &facts, &conclave_vault::clock::now());
    let text = if args.html { document::file(&blocks) } else { document::markdown(&blocks) };
    let format = if args.html { "html" } else { "markdown" };
    args.of.common.print(&serde_json::json!({ "job": job.request.job, "format": format, "statement": text }), &text)
}
