//! `conclave-party statement`.

use clap::Args;

use super::common::{Common, load, print, print_json};
use crate::error::StartError;
use crate::ledger_views::report_kept;
use crate::owner::{Facts, analyst_remaining, find, markdown, page, releases, statement as written, worst_case};

#[derive(Debug, Args)]
pub(super) struct StatementArgs {
    /// The job's id, or the beginning of it.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    common: Common,
    /// Write one HTML file instead of Markdown.
    #[arg(long)]
    html: bool,
}

pub(super) fn statement(args: &StatementArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let job = find(&config.ledger, &args.job)?;
    let settings = config.ledger_settings();
    let report = report_kept(&settings)?;
    let remaining = analyst_remaining(&settings, &report, &job.request.analyst).ok().flatten();
    let worst = job.spec.as_ref().and_then(|spec| worst_case(spec, job.spent().units, &report, remaining).ok());
    let releases = releases(&config.ledger, &job.request.job)?;
    let facts = Facts { report: &report, worst: worst.as_ref(), releases: releases.as_ref() };
    let blocks = written(&config, &job, &facts, &conclave_vault::clock::now());
    let text = if args.html { page(&blocks) } else { markdown(&blocks) };
    if args.common.json {
        let format = if args.html { "html" } else { "markdown" };
        return print_json(&serde_json::json!({ "job": job.request.job, "format": format, "statement": text }));
    }
    print(&text)
}
