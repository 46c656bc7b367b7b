//! `conclave-party budget`.

use std::fmt::Write;

use clap::Args;

use super::common::{Common, load, print, print_json};
use crate::error::StartError;
use crate::ledger_views::{Report, report_kept};
use crate::owner::figure;
use conclave_vault::ledger::{Ledger, LedgerError, LedgerSettings, reserve, reserve_units, written};

const BAR: usize = 40;

#[derive(Debug, Args)]
pub(super) struct BudgetArgs {
    #[command(flatten)]
    common: Common,
    /// Increase the promised delta by this amount, for subsampled releases only. The act is recorded with its reason and can't be
    /// undone. For a ledger made with [budget] delta_reserve, it increases that reserve. Stop the party first
    #[arg(long, value_name = "DELTA", requires = "reason")]
    add_reserve: Option<f64>,
    /// Reason in your own words, recorded in the ledger permanently
    #[arg(long, value_name = "TEXT", requires = "add_reserve")]
    reason: Option<String>,
}

pub(super) fn budget(args: &BudgetArgs) -> Result<(), StartError> {
    let common = &args.common;
    let config = load(common)?;
    if let Some((added, reason)) = args.add_reserve.zip(args.reason.as_deref()) {
        return add_reserve(&config.ledger_settings(), added, reason, common.json);
    }
    let report = report_kept(&config.ledger_settings())?;
    if common.json { print_json(&report) } else { print(text(&report).trim_end()) }
}

/// Records the owner's act that raises the promised delta.
fn add_reserve(settings: &LedgerSettings, added: f64, reason: &str, json: bool) -> Result<(), StartError> {
    if reason.trim().is_empty() {
        return Err(LedgerError::NoReason.into());
    }
    let units = reserve_units(added).ok_or_else(|| {
        StartError::Input(format!("--add-reserve is {added}: it must be a part of delta, above 0 and well below 1, such as 1e-7"))
    })?;
    let after = Ledger::add_reserve(settings, units, reason)?;
    let (epsilon, delta, reserved) = (after.epsilon, written(after.promised_delta()), reserve(after.reserve_units));
    if json {
        return print_json(&serde_json::json!({ "epsilon": epsilon, "delta_promised": delta, "delta_reserve": reserved }));
    }
    print(&format!(
        "{}: the promise is now epsilon = {epsilon}, delta = {delta}, for all past and future releases; {reserved} of delta is \
         reserved for subsampled releases. Next: write delta = {delta} and delta_reserve = {reserved} under [budget], and start \
         the party",
        settings.ledger.display()
    ))
}

fn text(r: &Report) -> String {
    let full = ((r.share_spent * BAR as f64).ceil() as usize).min(BAR);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
    let mut text = format!(
        "{} [{bar}] {:.2}% of the budget spent\n\
         epsilon   {:>12.6} spent of {} at delta = {} (by zCDP {:.6})\n\
         mu^2      {:>12.6} spent of {:.6}, {:.6} remaining\n\
         a new job {:>12.6} is the largest epsilon it could still get; epsilons do not add, mu^2 does\n\
         numbers   {:>12} released or charged, in {} jobs, since {}\n\
         noise     {:>12} draws spent, {} remaining, and {:.4}% of the allowance for discrete noise; the budget runs out first\n",
        r.party,
        100.0 * r.share_spent,
        r.epsilon_spent,
        r.epsilon_budget,
        r.delta,
        r.epsilon_zcdp,
        r.mu_squared_spent,
        r.mu_squared_budget,
        r.mu_squared_remaining,
        r.epsilon_new_job,
        r.queries,
        r.jobs,
        r.created,
        r.draws_spent,
        r.draws_remaining,
        100.0 * r.slack_share_spent
    );
    // Writing to a String can't fail.
    if r.mu_squared_reserved > 0.0 {
        let _ = writeln!(text, "reserved  {:>12.6} of the mu^2 spent is reserved for running jobs", r.mu_squared_reserved);
    }
    if r.delta_reserve > 0.0 {
        let _ = writeln!(
            text,
            "samples   {:>12} of delta spent by blocks of subsampled releases, of {} reserved for them, {} remaining\n\
             promise   epsilon = {} at delta = {}: that of mu^2 plus the reserve",
            figure(r.delta_reserve_spent),
            figure(r.delta_reserve),
            figure(r.delta_reserve_remaining),
            r.epsilon_budget,
            figure(r.delta_promised)
        );
    }
    if let Some(collude) = &r.if_all_collude {
        let limit = collude.epsilon_limit.map_or_else(|| "without a limit".to_owned(), |limit| format!("of at most {limit}"));
        let _ = writeln!(
            text,
            "collusion {:>12.6} epsilon is spent {limit}, if all other parties of masked jobs collude with the coordinator",
            collude.epsilon_spent
        );
    }
    let _ = writeln!(text, "protects one {}{}", r.unit, if r.unit.starts_with("row") { ROWS } else { "" });
    for job in &r.open_jobs {
        let left = match job.iterations_left {
            Some(n) => format!("about {n} iterations remaining at its current step"),
            None => "not started".to_owned(),
        };
        let (spent, cap) = (job.mu_squared_spent, job.mu_squared_cap);
        let _ = writeln!(text, "open      {} of {}: mu^2 {spent:.6} of its {cap:.6}, {left}", job.job, job.analyst);
    }
    for a in &r.analysts {
        let cap = a.mu_squared_cap.map(|cap| format!(" of {cap:.6}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "analyst   {}: mu^2 {:.6}{cap} (epsilon {:.6}), {} numbers in {} jobs",
            a.analyst, a.mu_squared_spent, a.epsilon_spent, a.queries, a.jobs
        );
    }
    text
}

const ROWS: &str = ": where a person has several rows, the guarantee is weaker for that person";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger_views::IfAllCollude;
    use crate::ledger_views::report::{AnalystReport, JobReport};

    #[test]
    fn the_bar_is_full_only_at_the_end() {
        let mut report = Report {
            party: "a".into(),
            unit: "row, replace".into(),
            epsilon_budget: 8.0,
            delta: 1e-6,
            delta_reserve: 0.0,
            delta_reserve_spent: 0.0,
            delta_reserve_remaining: 0.0,
            delta_promised: 1e-6,
            epsilon_spent: 1.5,
            epsilon_new_job: 7.25,
            epsilon_zcdp: 1.6,
            mu_squared_budget: 2.0,
            mu_squared_spent: 0.5,
            mu_squared_reserved: 0.0,
            mu_squared_remaining: 1.5,
            share_spent: 0.25,
            queries: 17,
            draws_spent: 17,
            draws_remaining: 1 << 24,
            slack_share_spent: 0.0,
            jobs: 2,
            created: "2026-01-01T00:00:00.000Z".into(),
            open_jobs: vec![JobReport {
                job: "j".into(),
                analyst: "alice".into(),
                queries: 17,
                mu_squared_spent: 0.5,
                mu_squared_cap: 1.0,
                mu_squared_per_iteration: 0.01,
                iterations_left: Some(50),
            }],
            if_all_collude: None,
            masked_jobs: Vec::new(),
            analysts: vec![AnalystReport {
                analyst: "alice".into(),
                jobs: 2,
                queries: 17,
                mu_squared_spent: 0.5,
                epsilon_spent: 1.5,
                mu_squared_cap: None,
            }],
        };
        let shown = text(&report);
        assert!(shown.contains("[##########..............................] 25.00%"), "{shown}");
        assert!(shown.contains("7.250000 is the largest epsilon") && shown.contains("about 50 iterations remaining"), "{shown}");
        // The line is shown only if there is a figure.
        assert!(!shown.contains("if all other parties"), "{shown}");
        report.if_all_collude = Some(IfAllCollude {
            epsilon_spent: 4.5,
            mu_squared_spent: 1.5,
            epsilon_limit: Some(12.0),
            mu_squared_limit: Some(4.0),
        });
        assert!(text(&report).contains("4.500000 epsilon is spent of at most 12, if all other parties"), "{}", text(&report));
        assert!(!shown.contains("samples") && !shown.contains("promise"), "{shown}");
        (report.delta_reserve, report.delta_reserve_spent, report.delta_promised) = (1e-7, 2e-8, 1.1e-6);
        let shown = text(&report);
        assert!(
            shown.contains("2e-8 of delta spent by blocks") && shown.contains("promise   epsilon = 8 at delta = 1.1e-6"),
            "{shown}"
        );
        report.share_spent = 1.0;
        assert!(text(&report).contains(&format!("[{}]", "#".repeat(BAR))));
    }
}
