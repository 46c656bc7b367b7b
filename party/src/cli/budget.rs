//! `conclave-party budget`.

use clap::Args;
use conclave_pages::document;

use super::common::{Common, load};
use crate::error::StartError;
use crate::ledger_views::{Report, report_kept};
use crate::owner::Scale;
use crate::owner::budget::blocks;
use conclave_vault::ledger::{Ledger, LedgerError, LedgerSettings, reserve, reserve_units, written};

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
        return add_reserve(&config.ledger_settings(), added, reason, common);
    }
    let report = report_kept(&config.ledger_settings())?;
    let scale = Scale::new(&report, &config);
    let mut object = serde_json::to_value(&report).map_err(|e| StartError::System(e.to_string()))?;
    object["scale"] = scale.value();
    common.print(&object, &text(&report, &scale))
}

/// Records the owner's act that raises the promised delta.
fn add_reserve(settings: &LedgerSettings, added: f64, reason: &str, common: &Common) -> Result<(), StartError> {
    if reason.trim().is_empty() {
        return Err(LedgerError::NoReason.into());
    }
    let units = reserve_units(added).ok_or_else(|| {
        StartError::Input(format!("--add-reserve is {added}: it must be a part of delta, above 0 and well below 1, such as 1e-7"))
    })?;
    let after = Ledger::add_reserve(settings, units, reason)?;
    let (epsilon, delta, reserved) = (after.epsilon, written(after.promised_delta()), reserve(after.reserve_units));
    let text = format!(
        "{}: the promise is now epsilon = {epsilon}, delta = {delta}, for all past and future releases; {reserved} of delta is \
         reserved for subsampled releases. Next: write delta = {delta} and delta_reserve = {reserved} under [budget], and start \
         the party",
        settings.ledger.display()
    );
    common.print(&serde_json::json!({ "epsilon": epsilon, "delta_promised": delta, "delta_reserve": reserved }), &text)
}

fn text(report: &Report, scale: &Scale) -> String {
    format!("{}, the data's budget over all jobs:\n{}", report.party, document::text(&blocks(report, scale, "budget")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PartyConfig;
    use crate::ledger_views::IfAllCollude;
    use crate::ledger_views::Units;
    use crate::ledger_views::report::{AnalystReport, JobReport};

    const CONFIG: &str = "name = \"a\"\ncoordinator = \"https://c\"\nidentity = \"i\"\nledger = \"l\"\n[data]\npath = \"a.csv\"\n\
                          [budget]\nepsilon = 8.0\ndelta = 1e-6\n";

    #[test]
    fn the_scale_stands_first_and_every_figure_below() {
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
            mu_squared_promised: 0.5,
            epsilon_room: 5.5,
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
            units: Units { whole: 8 << 48, remaining: 6 << 48, promised: 2 << 48 },
            analysts: vec![AnalystReport {
                analyst: "alice".into(),
                jobs: 2,
                queries: 17,
                mu_squared_spent: 0.5,
                epsilon_spent: 1.5,
                mu_squared_cap: None,
            }],
        };
        let config = PartyConfig::parse(CONFIG, std::path::Path::new("/etc")).expect("a configuration");
        let text = |report: &Report| super::text(report, &Scale::new(report, &config));
        let shown = text(&report);
        assert!(
            shown.contains(
                "[##########//////////....................]  # spent 25.0%   / held by 1 open job 25.0%   . left 50.0%"
            ),
            "{shown}"
        );
        assert!(shown.contains("\n  Room for one more job of ε "), "{shown}");
        assert!(shown.contains("may still spend mu^2 0.500000: epsilon 5.50 is the room for one more job"), "{shown}");
        assert!(shown.contains("7.25 is the largest epsilon") && shown.contains("about 50 iterations remaining"), "{shown}");
        // The line is shown only if there is a figure.
        assert!(!shown.contains("if all other parties"), "{shown}");
        report.if_all_collude = Some(IfAllCollude {
            epsilon_spent: 4.5,
            mu_squared_spent: 1.5,
            epsilon_limit: Some(12.0),
            mu_squared_limit: Some(4.0),
        });
        assert!(text(&report).contains("4.50 epsilon is spent of at most 12, if all other parties"), "{}", text(&report));
        assert!(!shown.contains("samples") && !shown.contains("promise"), "{shown}");
        (report.delta_reserve, report.delta_reserve_spent, report.delta_promised) = (1e-7, 2e-8, 1.1e-6);
        let shown = text(&report);
        assert!(
            shown.contains("2e-8 of delta spent by blocks") && shown.contains("promise   epsilon = 8 at delta = 1.1e-6"),
            "{shown}"
        );
        report.units.remaining = 0;
        assert!(text(&report).contains(&format!("[{}]", "#".repeat(40))) && text(&report).contains("No room for one more job"));
    }
}
