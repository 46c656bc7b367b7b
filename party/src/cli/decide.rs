//! `conclave-party approve`, `reject` and `revoke`.

use clap::Args;
use conclave_pages::document::{self, Block};
use serde_json::json;

use super::common::{Common, JobArgs, confirm, load, print};
use crate::config::PartyConfig;
use crate::error::StartError;
use crate::ledger_views::report_kept;
use crate::owner::permit::Permit;
use crate::owner::{JobView, Summary, WorstCase, find, masked, pending_job};
use conclave_vault::consent::Standing;

#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    #[command(flatten)]
    of: JobArgs,
    /// Approve without confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    terms: Terms,
}

/// The owner's terms of an approval, kept with the decision and in the ledger.
#[derive(Debug, Args)]
struct Terms {
    /// Purpose for which the records may be used.
    #[arg(long, value_name = "TEXT")]
    purpose: Option<String>,
    /// Number of the ethics vote or of the permit.
    #[arg(long, value_name = "TEXT")]
    reference: Option<String>,
    /// Last day on which the job is answered, UTC, such as 2027-03-31. After it, the job is neither opened nor answered.
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
}

impl Terms {
    fn permit(&self) -> Result<Permit, StartError> {
        let [purpose, reference, until] = [&self.purpose, &self.reference, &self.until].map(|text| text.as_deref().unwrap_or(""));
        Permit::new(purpose, reference, until, conclave_vault::clock::now_ms()).map_err(|e| StartError::Input(e.to_string()))
    }
}

#[derive(Debug, Args)]
pub(super) struct RefuseArgs {
    #[command(flatten)]
    of: JobArgs,
    /// Reason, shown to the analyst.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn approve(args: &ApproveArgs) -> Result<(), StartError> {
    let config = load(&args.of.common)?;
    let permit = args.terms.permit()?;
    let job = find(&config.ledger, &args.of.job)?;
    let worst = pending_job::worst_case_of(&config, &job)?;
    let summary = Summary::new(&config, &report_kept(&config.ledger_settings())?, &job, &worst);
    // Warnings about the records are shown but never decide: an automatic refusal would reveal them to the analyst.
    let warnings = pending_job::warnings(&config, std::slice::from_ref(&job));
    if !args.of.common.json {
        let mut blocks = summary.as_ref().map(Summary::blocks).unwrap_or_default();
        blocks.extend(pending_job::document(&config, &job, &worst));
        blocks.extend((!permit.is_empty()).then(|| Block::Text(format!("Your terms: {}.", permit.words()))));
        blocks.extend(warnings.iter().cloned().map(Block::Warning));
        print(&document::text(&blocks))?;
    }
    if job.request.standing() == Standing::Awaiting && !args.yes && !confirm("Approve? [y/N] ", || no_terminal(&job))? {
        return print("not approved: the job still waits for your decision");
    }
    let shown = Shown { worst, warnings, summary, permit };
    decide(&config, &args.of.common, &job, Standing::Approved, "", Some(&shown))
}

pub(super) fn reject(args: &RefuseArgs) -> Result<(), StartError> {
    refuse(args, Standing::Rejected)
}

pub(super) fn revoke(args: &RefuseArgs) -> Result<(), StartError> {
    refuse(args, Standing::Revoked)
}

fn refuse(args: &RefuseArgs, decision: Standing) -> Result<(), StartError> {
    let config = load(&args.of.common)?;
    let job = find(&config.ledger, &args.of.job)?;
    decide(&config, &args.of.common, &job, decision, args.reason.trim(), None)
}

/// The figures shown before an approval, and its terms.
struct Shown {
    worst: WorstCase,
    warnings: Vec<String>,
    summary: Option<Summary>,
    permit: Permit,
}

fn decide(
    config: &PartyConfig,
    common: &Common,
    job: &JobView,
    decision: Standing,
    reason: &str,
    shown: Option<&Shown>,
) -> Result<(), StartError> {
    let id = &job.request.job;
    pending_job::decide(config, id, decision, reason, shown.map(|shown| &shown.permit))?;
    let running = crate::presence::running(&config.ledger).is_some();
    let effect = match (decision, running) {
        (Standing::Approved, true) => "the running party opens it within a second",
        (Standing::Approved, false) => "it opens once the party runs",
        (Standing::Revoked, true) => "the running party stops answering it within a second; its charges remain",
        (Standing::Revoked, false) => "it will not be answered any more; its charges remain",
        _ => "its analyst will be notified",
    };
    let masked = decision != Standing::Approved && job.is_masked();
    let warning = if masked { format!("; {}", masked::NEVER_REOPENED) } else { String::new() };
    let object = json!({
        "job": id, "decision": decision.as_str(), "digest": job.request.digest_hex(), "worst_case": shown.map(|shown| &shown.worst),
        "warnings": shown.map(|shown| &shown.warnings), "releases": job.spec.as_ref().map(|spec| spec.releases()),
        "permit": shown.map(|shown| &shown.permit), "analyst_key": job.terms.signer().map(|key| key.to_string()), "asked": job.request.asked,
        "study": job.spec.as_ref().map(|spec| json!({ "purpose": spec.study.purpose, "contact": spec.study.contact })),
        "scale": shown.and_then(|shown| shown.summary.as_ref()).map(|summary| summary.scale.value()),
        "right_guesses_of_100": shown.and_then(|shown| shown.summary.as_ref()).map(|summary| &summary.odds),
    });
    common.print(&object, &format!("{id} {}: {effect}{warning}", decision.as_str()))
}

fn no_terminal(job: &JobView) -> String {
    format!("not approved: there is no terminal for confirmation; add --yes to approve {}", job.request.job)
}
