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
    let told = report(&fixture.path(), "hospital-a", &budget()).unwrap();
    let draws = told.draws_spent as f64 / (told.draws_spent + told.draws_remaining) as f64;
    assert!(told.draws_spent > 0 && draws <= told.share_spent && told.slack_share_spent <= told.share_spent, "{told:?}");
}

#[test]
fn the_report_counts_what_has_left_while_the_party_runs_and_after_its_end() {
    let mut fixture = Fixture::new();
    let mut ledger = fixture.open();
    fixture.answer(&mut ledger, 3, &[key(0, 1, 1 << 29), key(1, 2, 1 << 30)]);
    let read = || report(&fixture.path(), "hospital-a", &budget()).unwrap();
    let told = read();
    assert_eq!((told.queries, told.jobs), (2, 1));
    assert!(told.epsilon_spent > 0.0 && told.epsilon_spent < told.epsilon_zcdp);
    drop(ledger);
    // After a clean end no log lies beside it, and it reads all the same.
    assert_eq!(read(), told);
}
