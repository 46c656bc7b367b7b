//! The ledger: its entries, head and budget, and forecasts for disk and budget.

use conclave_common::epsilon;
use conclave_ops::disk::{database_bytes, format_bytes, free_bytes};
use conclave_ops::doctor::{Finding, long_log};
use conclave_ops::files::parent_folder;
use conclave_pages::moment::stored;

use crate::config::PartyConfig;
use crate::ledger_views::inspect::Inspection;
use crate::ledger_views::{IfAllCollude, RECENTLY, Report, inspect, report_kept};
use crate::owner::masked;
use crate::presence::running;
use conclave_vault::ledger::{LONG_LOG, LedgerError};

/// Spent share of the budget from which a warning is shown.
const NEARLY_SPENT: f64 = 0.9;
/// Bytes per release (charge and answer), assumed until enough releases exist to measure it.
const TYPICAL: f64 = 200.0;
/// Number of releases from which the size is measured.
const MEASURED: u64 = 10_000;
/// Remaining days of disk space, at the current rate, below which a warning is shown.
const FEW_DAYS: f64 = 90.0;

pub(super) fn check(config: &PartyConfig) -> Vec<Finding> {
    let settings = config.ledger_settings();
    let mut findings = vec![daemon(config)];
    let pid = running(&config.ledger).flatten().map(|seen| seen.pid);
    findings.extend(long_log(&config.ledger, LONG_LOG, pid, "a running party empties the log within a minute"));
    let inspection = inspect(&settings, config.policy.min_noise_sd.max(f64::MIN_POSITIVE));
    findings.push(match &inspection {
        Ok(found) => entries(found),
        Err(e @ LedgerError::Former(_)) => {
            Finding::warn("ledger", e.to_string(), "start the party: docs/how-to/operator/upgrade.md")
        }
        Err(e) => Finding::fail("ledger", e.to_string(), remedy(e)),
    });
    let Ok(inspection) = inspection else {
        findings.extend(["budget", "growth"].map(|code| Finding::skipped(code, "the ledger can't be read")));
        return findings;
    };
    findings.push(head(config, &inspection));
    match report_kept(&settings) {
        Ok(report) => {
            findings.push(budget(&report));
            findings.extend(report.if_all_collude.as_ref().map(all_collude));
            findings.extend(idle_keys(config, &report));
            findings.push(growth(config, &inspection, &report));
        }
        Err(e) => findings.push(Finding::fail("budget", e.to_string(), remedy(&e))),
    }
    findings
}

fn daemon(config: &PartyConfig) -> Finding {
    const CODE: &str = "daemon";
    match running(&config.ledger) {
        None => Finding::skipped(CODE, "the party does not run"),
        Some(Some(seen)) => match (&seen.ledger, seen.attached) {
            (Some(problem), _) if seen.must_not_stop => Finding::fail(
                CODE,
                format!("the running party answers nothing: {problem}"),
                "do not stop it: first copy what it has written (docs/how-to/operator/back-up-and-restore.md, Recover a deleted ledger)",
            ),
            (Some(problem), _) => Finding::fail(
                CODE,
                format!("the running party answers nothing: {problem}"),
                "see its log; stop it, remove the cause, start it",
            ),
            (None, true) => {
                Finding::ok(CODE, format!("runs since {}, attached since {}", stored(&seen.started), stored(&seen.since)))
            }
            (None, false) => Finding::warn(
                CODE,
                format!("runs, but not attached since {}", stored(&seen.since)),
                "see the network checks above, and its log",
            ),
        },
        Some(None) => Finding::ok(CODE, "runs"),
    }
}

fn remedy(error: &LedgerError) -> &'static str {
    match error {
        LedgerError::Missing(_) => "for new data: conclave-party init; otherwise restore the ledger",
        LedgerError::Party { .. } | LedgerError::Budget { .. } | LedgerError::Unit { .. } => {
            "restore the configuration with which the ledger was made"
        }
        LedgerError::Secret { .. } => "restore ledger-secret.key from your backup of keys",
        LedgerError::Corrupt { .. } => {
            "stop the party, and restore the newest backup: docs/how-to/operator/back-up-and-restore.md"
        }
        _ => "check the path `ledger`, and that this user can read it",
    }
}

fn entries(found: &Inspection) -> Finding {
    let found_text = format!("{} entries, {} releases; every entry follows from those before it", found.entries, found.releases);
    match found.behind {
        None => Finding::ok("ledger", found_text),
        Some((lost, last)) => Finding::fail(
            "ledger",
            format!("it ends at entry {last}, but the head file names entry {lost}: it is an older copy and answers no query"),
            "stop the party and restore the newest ledger; only if that is lost: conclave-party unlock --reason \"...\"",
        ),
    }
}

fn head(config: &PartyConfig, found: &Inspection) -> Finding {
    const CODE: &str = "head";
    let path = &config.head_file;
    if found.heads == 0 {
        let state =
            if found.entries > 1 { "contains no head of this ledger" } else { "does not exist yet; the first start creates it" };
        let found_text = format!("{} {state}", path.display());
        return match found.entries {
            0 | 1 => Finding::ok(CODE, found_text),
            _ => Finding::warn(
                CODE,
                found_text,
                "start the party once, which writes it again. Keep it on another disk than the ledger",
            ),
        };
    }
    if config.is_head_beside_ledger() {
        return Finding::warn(
            CODE,
            format!("{} is in the ledger's folder: one backup contains both", path.display()),
            "set `head_file` to a path that is not backed up with the ledger",
        );
    }
    Finding::ok(CODE, format!("{} contains a head of this ledger", path.display()))
}

fn budget(report: &Report) -> Finding {
    let found = format!(
        "epsilon {} of {} at delta {} is spent, {:.2}% of the budget",
        epsilon::spent(report.epsilon_spent),
        report.epsilon_budget,
        report.delta_promised,
        100.0 * report.share_spent
    );
    if report.share_spent >= NEARLY_SPENT {
        return Finding::warn("budget", found, "the budget is never refilled: approve the most important jobs");
    }
    Finding::ok("budget", found)
}

fn all_collude(collude: &IfAllCollude) -> Finding {
    const CODE: &str = "all-collude";
    let found = masked::total_if_all_collude(collude);
    match collude.mu_squared_limit {
        Some(limit) if collude.mu_squared_spent >= NEARLY_SPENT * limit => Finding::warn(
            CODE,
            found,
            "no masked job can exceed it; raise secure.max_epsilon_if_all_collude only if you trust the other parties that far",
        ),
        _ => Finding::ok(CODE, found),
    }
}

/// Checks for mask keys of open jobs that exceed the owner's limit for idle keys.
fn idle_keys(config: &PartyConfig, report: &Report) -> Option<Finding> {
    const CODE: &str = "mask-keys";
    let ages: Vec<u64> = report.masked_jobs.iter().filter_map(|job| job.key_age_days).collect();
    let oldest = ages.iter().max()?;
    let found = format!("{} mask keys of open jobs exist, the oldest {oldest} days old", ages.len());
    Some(if *oldest > u64::from(config.secure.keep_key_days) {
        Finding::warn(
            CODE,
            found,
            "ask the coordinator's operator whether the job still runs; `conclave-party revoke` ends it and deletes its key",
        )
    } else {
        Finding::ok(CODE, found)
    })
}

/// Forecasts the ledger's size at the end of the budget, and the remaining lifetime of the disk.
fn growth(config: &PartyConfig, found: &Inspection, report: &Report) -> Finding {
    const CODE: &str = "growth";
    let bytes = database_bytes(&config.ledger);
    if found.releases == 0 || found.price <= 0.0 {
        return Finding::ok(CODE, format!("{} so far; a forecast needs a first job", format_bytes(bytes)));
    }
    // With few releases the empty tables dominate the file.
    let each = if found.releases < MEASURED { TYPICAL } else { bytes as f64 / found.releases as f64 };
    let remaining =
        |price: f64| if price > 0.0 { (report.mu_squared_remaining / price).min(report.draws_remaining as f64) } else { 0.0 };
    let (likely, floor): (f64, f64) = (remaining(found.price), remaining(found.price_at_floor));
    let mut text = format!(
        "{} so far, {each:.0} bytes per release; the budget admits about {likely:.2e} more at the latest price ({floor:.2e} at \
         the policy's noise floor)",
        format_bytes(bytes),
    );
    let Some(free) = free_bytes(parent_folder(&config.ledger)) else { return Finding::ok(CODE, text) };
    if each * likely < free as f64 {
        text.push_str(&format!(", {} in the end", format_bytes(bytes.saturating_add((each * likely) as u64))));
    }
    if found.recent == 0 {
        return Finding::ok(CODE, text);
    }
    let days = free as f64 / (each * found.recent as f64) * RECENTLY.as_secs_f64() / 86_400.0;
    let text = format!("{text}; at the rate of the last 7 days the free space lasts {days:.0} days");
    if days < FEW_DAYS && each * likely > free as f64 {
        return Finding::warn(CODE, text, "enlarge the ledger's disk");
    }
    Finding::ok(CODE, text)
}
