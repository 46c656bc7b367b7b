//! `conclave-party budget`.

use super::{Common, load, print, print_json};
use crate::daemon::StartError;
use crate::ledger::{Report, report};

const BAR: usize = 40;

pub(super) fn budget(common: &Common) -> Result<(), StartError> {
    let config = load(common)?;
    let report = report(&config.ledger, &config.name, &config.budget)?;
    if common.json { print_json(&report) } else { print(&text(&report)) }
}

fn text(r: &Report) -> String {
    let full = ((r.share_spent * BAR as f64).ceil() as usize).min(BAR);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
    format!(
        "{} [{bar}] {:.2}% of the budget spent\n\
         epsilon   {:>12.6} spent, {:.6} left of {} at delta = {}\n\
         mu^2      {:>12.6} spent, {:.6} left of {:.6}\n\
         by zCDP   {:>12.6} epsilon spent\n\
         numbers   {:>12} released or charged, in {} jobs, since {}\n\
         protects one row, not one person: where a person has several rows, the guarantee is weaker for that person",
        r.party,
        100.0 * r.share_spent,
        r.epsilon_spent,
        r.epsilon_remaining,
        r.epsilon_budget,
        r.delta,
        r.mu_squared_spent,
        r.mu_squared_remaining,
        r.mu_squared_budget,
        r.epsilon_zcdp,
        r.queries,
        r.jobs,
        r.created
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_only_at_the_end() {
        let mut report = Report {
            party: "a".into(),
            epsilon_budget: 8.0,
            delta: 1e-6,
            epsilon_spent: 1.5,
            epsilon_remaining: 6.5,
            epsilon_zcdp: 1.6,
            mu_squared_budget: 2.0,
            mu_squared_spent: 0.5,
            mu_squared_remaining: 1.5,
            share_spent: 0.25,
            queries: 17,
            jobs: 2,
            created: "2026-01-01T00:00:00.000Z".into(),
        };
        let shown = text(&report);
        assert!(shown.contains("[##########..............................] 25.00%"), "{shown}");
        assert!(shown.contains("1.500000 spent, 6.500000 left of 8 at delta = 0.000001"), "{shown}");
        report.share_spent = 1.0;
        assert!(text(&report).contains(&format!("[{}]", "#".repeat(BAR))));
    }
}
