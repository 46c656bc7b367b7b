//! `conclave-party approve`, `reject` and `revoke`.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use serde_json::json;

use super::{Common, load, print, print_json};
use crate::config::PartyConfig;
use crate::consent::{ConsentStore, Decider, Standing};
use crate::daemon::StartError;
use crate::ledger::report_kept;
use crate::owner::{JobView, WorstCase, analyst_left, describe, figure, find, unit_of_privacy, worst_case};

#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// The job's id, or the beginning of it.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    common: Common,
    /// Approve without being asked.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct RefuseArgs {
    /// The job's id, or the beginning of it.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    common: Common,
    /// Why; the analyst is told.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn approve(args: &ApproveArgs) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let job = find(&config.ledger, &args.job)?;
    let worst = worst(&config, &job)?;
    if !args.common.json {
        print(&shown(&config, &job, &worst))?;
        for warning in super::status::bounds(&config, std::slice::from_ref(&job)) {
            print(&format!("warning: {warning}"))?;
        }
    }
    if job.request.standing() == Standing::Awaiting && !args.yes && !agreed(&job)? {
        return print("left as it is: the job goes on waiting");
    }
    decide(&config, &args.common, &job, Standing::Approved, "", Some(&worst))
}

pub(super) fn reject(args: &RefuseArgs) -> Result<(), StartError> {
    refuse(args, Standing::Rejected)
}

pub(super) fn revoke(args: &RefuseArgs) -> Result<(), StartError> {
    refuse(args, Standing::Revoked)
}

fn refuse(args: &RefuseArgs, decision: Standing) -> Result<(), StartError> {
    let config = load(&args.common)?;
    let job = find(&config.ledger, &args.job)?;
    decide(&config, &args.common, &job, decision, args.reason.trim(), None)
}

fn decide(
    config: &PartyConfig,
    common: &Common,
    job: &JobView,
    decision: Standing,
    reason: &str,
    worst: Option<&WorstCase>,
) -> Result<(), StartError> {
    let id = &job.request.job;
    ConsentStore::open(&config.ledger)?.decide(id, decision, Decider::Owner, reason)?;
    if common.json {
        return print_json(&json!({
            "job": id, "decision": decision.as_str(), "digest": job.request.digest_hex(), "worst_case": worst,
        }));
    }
    let running = crate::presence::running(&config.ledger).is_some();
    let effect = match (decision, running) {
        (Standing::Approved, true) => "the running party opens it within a second",
        (Standing::Approved, false) => "it opens once the party runs",
        (Standing::Revoked, true) => "the running party answers no more of it within a second; what it has spent stays spent",
        (Standing::Revoked, false) => "no more of it will be answered; what it has spent stays spent",
        _ => "its analyst is told",
    };
    print(&format!("{id} {}: {effect}", decision.as_str()))
}

fn worst(config: &PartyConfig, job: &JobView) -> Result<WorstCase, StartError> {
    let unreadable =
        || StartError::Input(format!("this version can't read job {}; what can't be read can't be approved", job.request.job));
    let spec = job.spec.as_ref().ok_or_else(unreadable)?;
    let keeping = config.keeping();
    let report = report_kept(&keeping)?;
    analyst_left(&keeping, &report, &job.request.analyst)
        .and_then(|left| worst_case(spec, job.spent().units, &report, left))
        .map_err(|e| StartError::Input(format!("[privacy]: {e}")))
}

/// What the owner sees before saying yes.
fn shown(config: &PartyConfig, job: &JobView, worst: &WorstCase) -> String {
    let request = &job.request;
    let mut lines = vec![
        format!("job {} {:?}", request.job, job.name()),
        format!("  {:<9} analyst {}, on {}", "asked by", request.analyst, request.asked),
    ];
    lines.extend(job.spec.iter().flat_map(describe).map(|(name, words)| format!("  {name:<9} {words}")));
    lines.push(format!("  {:<9} SHA-256 {}", "digest", request.digest_hex()));
    let end = if worst.ended_early { ", where the data's budget or the analyst's cap ends it" } else { "" };
    lines.push(format!(
        "worst case, should it use all that it may:\n  this job  epsilon {} at delta {}{end}; by zCDP {}\n  the data  epsilon \
         {} now, {} after it, of {} at delta {}: {:.1}% of the budget",
        figure(worst.job_epsilon),
        figure(worst.job_delta),
        figure(worst.job_epsilon_zcdp),
        figure(worst.data_epsilon_now),
        figure(worst.data_epsilon_after),
        figure(worst.data_epsilon_budget),
        figure(worst.data_delta),
        100.0 * worst.share_after
    ));
    lines.push(format!("this {}", unit_of_privacy(config.budget.unit)));
    lines.join("\n")
}

fn agreed(job: &JobView) -> Result<bool, StartError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(StartError::Input(format!(
            "not approved: there is no terminal to ask on; add --yes to approve {}",
            job.request.job
        )));
    }
    let system = |e: std::io::Error| StartError::System(e.to_string());
    let mut out = std::io::stderr();
    write!(out, "Approve? [y/N] ").and_then(|()| out.flush()).map_err(system)?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(system)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
