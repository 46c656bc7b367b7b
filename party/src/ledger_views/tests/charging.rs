//! The report on the budget: while a party runs, after its end, and of the cheapest queries.

use conclave_privacy::accounting::Budget;
use conclave_vault::ledger::*;
use conclave_vault::testing::{budget, entry, key};

use super::super::report;
use super::Fixture;

#[test]
fn readers_are_welcome_while_a_process_holds_the_ledger() {
    let fixture = Fixture::new();
    let ledger = fixture.open();
    assert!(matches!(Ledger::open_kept(&fixture.settings), Err(LedgerError::Locked(_))));
    assert_eq!(report(&fixture.path(), "hospital-a", &budget()).unwrap().queries, 0);
    drop(ledger);
    fixture.open();
}

/// The attack: messages of 256 queries at K_t = 1, next to free. Draws and slack are used no further than the budget is.
#[test]
fn the_cheapest_queries_use_up_no_more_draws_and_slack_than_budget() {
    let fixture = Fixture::new();
    let mut ledger = fixture.open();
    const SMALL: &str = "job-small";
    ledger.open_job(&entry(SMALL, Budget::new(0.02, 1e-6).unwrap())).unwrap();
    let message: Vec<QueryKey> = (0..256).map(|chain| key(chain, 1, 1)).collect();
    let refusal = (0..100).find_map(|round| match ledger.charge(SMALL, round, &message).unwrap() {
        ChargeOutcome::Granted(_) => None,
        ChargeOutcome::Refused(refusal) => Some(refusal),
    });
    assert!(matches!(refusal, Some(Refusal::JobBudget(_))), "{refusal:?}");
    let report = report(&fixture.path(), "hospital-a", &budget()).unwrap();
    let draws = report.draws_spent as f64 / (report.draws_spent + report.draws_remaining) as f64;
    assert!(
        report.draws_spent > 0 && draws <= report.share_spent && report.slack_share_spent <= report.share_spent,
        "{report:?}"
    );
}

#[test]
fn the_report_counts_what_has_left_while_the_party_runs_and_after_its_end() {
    let mut fixture = Fixture::new();
    let mut ledger = fixture.open();
    fixture.answer(&mut ledger, 3, &[key(0, 1, 1 << 29), key(1, 2, 1 << 30)]);
    let read = || report(&fixture.path(), "hospital-a", &budget()).unwrap();
    let report = read();
    assert_eq!((report.queries, report.jobs), (2, 1));
    assert!(report.epsilon_spent > 0.0 && report.epsilon_spent < report.epsilon_zcdp);
    drop(ledger);
    // After a clean end no log lies beside it, and it reads all the same.
    assert_eq!(read(), report);
}
