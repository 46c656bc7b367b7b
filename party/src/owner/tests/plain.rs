#![allow(clippy::unwrap_used)]
use std::path::Path;

use conclave_common::job::budget_words::askable;
use conclave_pages::document;
use conclave_privacy::accounting::{Budget, Honest, gaussian_dp};
use conclave_vault::consent::{Decided, Request, Standing};
use conclave_vault::ledger::Ledger;
use conclave_vault::testing::{JOB, MEAN_TOML, budget, entry, key, masked_toml};

use super::*;
use crate::ledger_views::report_kept;
use crate::owner::odds::{of_100, right_guess};
use crate::owner::worst_case::worst_case;

fn config(folder: &Path, data: &str) -> PartyConfig {
    let text = format!(
        "name = \"hospital-a\"\ncoordinator = \"https://c\"\nidentity = \"i\"\nledger = \"l.sqlite\"\n[data]\npath = \"a.csv\"\n{data}\
         [budget]\nepsilon = 8.0\ndelta = 1e-6\n[policy]\nreply_delay_ms = 5\n"
    );
    PartyConfig::parse(&text, folder).unwrap()
}

/// Summarises a waiting job at an owner whose `before` acts on the ledger.
fn summary(toml: &str, data: &str, before: impl FnOnce(&mut Ledger)) -> (Summary, String) {
    decided(None, toml, data, before)
}

/// Summarises a job with this decision.
fn decided(standing: Option<Standing>, toml: &str, data: &str, before: impl FnOnce(&mut Ledger)) -> (Summary, String) {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), data);
    config.ledger_settings().init().unwrap();
    let mut ledger = Ledger::open_kept(&config.ledger_settings()).unwrap();
    before(&mut ledger);
    ledger.close().unwrap();
    let (analyst, asked) = ("alice".to_owned(), "2026-03-01".to_owned());
    let decision = |standing| Decided { standing, time: asked.clone(), decider: "owner".into(), reason: "no".into() };
    let decided = standing.map(decision);
    let (job, digest, spec_toml) = (JOB.into(), [7; 32], toml.into());
    let request = Request { job, analyst, digest, spec_toml, asked, decided, permit: None, signer: Some([9; 32]) };
    let job = JobView::of(request, &[]);
    let report = report_kept(&config.ledger_settings()).unwrap();
    let worst = worst_case(job.spec.as_ref().unwrap(), 0, &report, None).unwrap();
    let summary = Summary::new(&config, &report, &job, &worst).unwrap();
    let text = document::text(&summary.blocks());
    (summary, text)
}

fn logistic(parties: &str, predictors: &str) -> String {
    format!(
        "name = \"s\"\nparties = [{parties}]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"sick\"\n\
         predictors = [{predictors}]\n[columns]\nsick = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\nbmi = {{ min = 15, max = 60 }}\n\
         [privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    )
}

#[test]
fn a_job_is_summarised_in_plain_words() {
    let alone = summary(MEAN_TOML, "", |_| {}).1;
    for part in
        ["alice asks to study height", "alice wants to know the mean of height", "over your records alone", "answer by answer"]
    {
        assert!(alone.contains(part), "{part} is not in {alone}");
    }
    assert!(!alone.contains("at all"), "{alone}");
    let three = summary(&logistic("\"hospital-a\", \"b\", \"c\"", "\"age\", \"bmi\""), "", |_| {}).1;
    for part in [
        "alice wants to know how age and bmi go with sick, over your records and those of b and c together",
        "No record leaves. Sums over all your rows leave with random noise added, in at most 11 answers.",
        "a patient with several rows is protected less",
        "For a patient with one row at each of 3 owners, all of whom spend as much: at most",
    ] {
        assert!(three.contains(part), "{part} is not in {three}");
    }
    let two = summary(&logistic("\"hospital-a\", \"b\"", "\"age\""), "", |_| {}).1;
    assert!(two.contains("how age goes with sick, over your records and those of b together"), "{two}");
}

/// The odds are those of Φ(mu/2) at the mu of the job, of all jobs and of the budget.
#[test]
fn odds_follow_from_mu() {
    let (fresh, _) = summary(MEAN_TOML, "", |_| {});
    let at = |epsilon: f64| of_100(right_guess(gaussian_dp::mu(epsilon, 1e-6)));
    assert_eq!((fresh.odds.this_job, fresh.odds.with_earlier, fresh.odds.whole_budget), (at(3.0), at(3.0), at(8.0)));
    assert_eq!((fresh.odds.at_all_owners, fresh.odds.if_all_collude), (None, None));
    let mu = gaussian_dp::mu(3.0, 1e-6);
    let (several, _) = summary(&logistic("\"hospital-a\", \"b\", \"c\", \"d\"", "\"age\""), "", |_| {});
    assert_eq!(several.odds.at_all_owners, Some(of_100(right_guess(2.0 * mu))));
    let masked = masked_toml(5, 1).replace("\"h-0\"", "\"hospital-a\"");
    let (masked, text) = summary(&masked, "", |_| {});
    // One opened sum: mu itself grows with the number of owners.
    assert_eq!(masked.odds.at_all_owners, Some(of_100(right_guess(5.0 * mu))));
    assert_eq!(masked.odds.if_all_collude, Some(of_100(right_guess(2.0 * mu))));
    assert!(
        text.contains("masked so that only the total over all owners is seen")
            && text.contains("Should all other owners collude")
    );
}

/// A job that was rejected spends nothing: the bar has no part for it, and a guess is right 50 times of 100.
#[test]
fn a_rejected_job_is_not_said_to_cost_anything() {
    let (waiting, text) = summary(MEAN_TOML, "", |_| {});
    assert!(waiting.scale.job_percent().is_some() && text.contains("this job, at most"), "{text}");
    let (rejected, text) = decided(Some(Standing::Rejected), MEAN_TOML, "", |_| {});
    assert_eq!((rejected.scale.job_percent(), rejected.odds.this_job), (None, 50), "{text}");
}

#[test]
fn persons_are_named_where_persons_are_protected() {
    let data = "person = \"id\"\nmax_records_per_person = 2\nadjacency = \"add-remove\"\n";
    let (summary, text) = summary(MEAN_TOML, data, |_| {});
    assert!(summary.scope.contains("whether a given person is in your data"), "{}", summary.scope);
    assert!(text.contains("Holds for one person with all rows that are used."), "{text}");
}

#[test]
fn a_job_that_does_not_fit_is_said_to_wait() {
    let (waits, text) = summary(MEAN_TOML, "", |ledger| ledger.open_job(&entry("other", budget())).unwrap());
    assert!(waits.waits.is_some() && text.contains("it waits until others have ended"), "{text}");
    assert!(summary(MEAN_TOML, "", |_| {}).0.waits.is_none());
}

/// The room is the one by which the party admits the analyst's next job: the owner's limit on an analyst, less what the analyst's jobs have
/// spent and hold.
#[test]
fn the_room_is_what_the_owners_limit_leaves_the_analyst() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), "");
    config.policy.max_epsilon_per_analyst = Some(4.0);
    config.ledger_settings().init().unwrap();
    let mut ledger = Ledger::open_kept(&config.ledger_settings()).unwrap();
    ledger.open_job(&entry("spent", Budget::new(1.5, 1e-6).unwrap())).unwrap();
    for round in 0..3 {
        ledger.charge("spent", round, &[key(0, 1, 1 << 22)]).unwrap();
    }
    ledger.close_job("spent", "done").unwrap();
    ledger.open_job(&entry("held", Budget::new(2.0, 1e-6).unwrap())).unwrap();
    let admitted = |analyst: &str| {
        let room = ledger.room("new", analyst, Honest::ALONE).unwrap().free.units;
        askable(room, &Budget { reserve_units: 0, ..config.budget })
    };
    let report = report_kept(&config.ledger_settings()).unwrap();
    let scale = |analyst: &str| Scale::of_analyst(&report, &config, analyst, "new");
    for analyst in ["alice", "bob"] {
        assert_eq!(scale(analyst).room(), admitted(analyst), "{analyst}");
    }
    assert!(scale("alice").room() < scale("bob").room(), "{}", scale("alice").room());
    assert_eq!(Scale::new(&report, &config).room(), scale("bob").room());
    assert!(scale("bob").caption().ends_with(", by your limit for one analyst."), "{}", scale("bob").caption());
    // A job that fits the budget but not the rest of the limit has to wait.
    let needed = gaussian_dp::mu(3.9, 1e-6).powi(2);
    assert!(scale("alice").lacks(needed) && !scale("bob").lacks(needed));
}

#[test]
fn the_request_is_stated_with_its_signer_and_its_study() {
    let toml = format!("study = {{ purpose = \"readmission, protocol 4\", contact = \"alice@example.org\" }}\n{MEAN_TOML}");
    let (_, text) = summary(&toml, "", |_| {});
    let key = format!("sha256:{}", "09".repeat(32));
    for part in [&*key, "readmission, protocol 4", "alice@example.org", "2026-03-01", "Not protected: ", "the number of rows"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!summary(MEAN_TOML, "adjacency = \"add-remove\"\n", |_| {}).1.contains("the number of rows"));
}
