#![allow(clippy::unwrap_used)]

use conclave_common::query::PartyMetadata;
use conclave_inference::diagnostics::Summary;
use conclave_inference::sampler::RunReport;

use super::*;
use crate::outcome::{Outcome, PartyOutcome};
use crate::spent::Spent;

fn spec(algorithm: &str, sampler: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"m\"\nparties = [\"a\", \"b\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
         [columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\n[prior]\ndefault = \"normal(0, 2.5)\"\n[sampler]\n{sampler}\n\
         [privacy]\nepsilon = 3\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// A figure with a Monte Carlo error that suits its effective sample size.
fn row(rhat: f64, ess: f64) -> Summary {
    let nan = f64::NAN;
    Summary {
        mean: 0.5,
        sd: 1.0,
        q5: -1.1,
        median: 0.5,
        q95: 2.1,
        rhat,
        ess_bulk: ess,
        ess_tail: ess,
        mcse_mean: ess.sqrt().recip(),
        mcse_sd: nan,
        ..conclave_inference::diagnostics::summarise(&[])
    }
}

fn outcome(stopped_by: StoppedBy, records: Option<u64>, warnings: &[&str]) -> Outcome {
    let party = |name: &str| PartyOutcome {
        name: name.to_owned(),
        metadata: records.map(|records| PartyMetadata::of_rows(&[records])[0]),
        spent: Spent { queries: 100, units: 1 << 46 },
    };
    Outcome {
        stopped_by,
        budget_party: None,
        iterations: 1000,
        seconds: 1.0,
        refit_of: None,
        warnings: warnings.iter().map(|warning| (*warning).to_owned()).collect(),
        report: RunReport::default(),
        parties: vec![party("a"), party("b")],
    }
}

fn judged(spec: &JobSpec, outcome: &Outcome, rhat: f64, ess: f64) -> Verdict {
    // The undefined figure of one parameter is not hidden by another's.
    let rows = [("x", row(rhat, ess)), ("intercept", row(1.0, 1e4))];
    let adequacy = checked(outcome, &rows);
    Verdict::of(&Ended { spec, job: "4f", outcome, adequacy: &adequacy, rows: &rows, draws: 1000 })
}

#[test]
fn the_limits_decide_the_grade() {
    let spec = spec("penalty", "chains = 4\ndraws = 1000");
    let outcome = outcome(StoppedBy::Draws, None, &[]);
    for (rhat, ess, grade) in [
        (1.01, 400.0, Grade::FitToPublish),
        (1.0101, 400.0, Grade::Preliminary),
        (1.01, 399.9, Grade::Preliminary),
        (1.05, 100.0, Grade::Preliminary),
        (1.0501, 400.0, Grade::NotUsable),
        (1.0, 99.9, Grade::NotUsable),
        (f64::NAN, 400.0, Grade::NotUsable),
        // Below six effective draws a check of adequacy fails.
        (1.0, 5.0, Grade::NotUsable),
    ] {
        let verdict = judged(&spec, &outcome, rhat, ess);
        assert_eq!(verdict.grade, grade, "{rhat} {ess}: {verdict:?}");
        assert_eq!(verdict.reasons.is_empty(), grade == Grade::FitToPublish, "{verdict:?}");
        assert_eq!(verdict.met, (grade == Grade::Preliminary).then_some(Wanted::PRELIMINARY));
        assert!(!verdict.reasons.iter().any(|reason| reason.contains("is 400, below 400")), "{verdict:?}");
    }
    let chains = self::spec("penalty", "chains = 8\ndraws = 1000");
    assert_eq!(judged(&chains, &outcome, 1.0, 799.0).grade, Grade::Preliminary, "100 per chain");
}

/// The job's own limits are printed, and never admit R-hat above 1.1.
#[test]
fn a_job_may_ask_for_less() {
    let outcome = outcome(StoppedBy::Until, None, &[]);
    let spec = spec("penalty", "chains = 4\ndraws = 1000\nuntil = { ess = 50, rhat = 1.3 }");
    let verdict = judged(&spec, &outcome, 1.09, 55.0);
    assert_eq!((verdict.grade, verdict.met), (Grade::Preliminary, Some(Wanted { ess: 50.0, rhat: 1.1 })), "{verdict:?}");
    assert_eq!(judged(&spec, &outcome, 1.11, 55.0).grade, Grade::NotUsable);
    // A stricter target changes nothing.
    let strict = self::spec("penalty", "chains = 4\ndraws = 1000\nuntil = { ess = 4000 }");
    assert_eq!(judged(&strict, &outcome, 1.0, 450.0).grade, Grade::FitToPublish);
}

#[test]
fn the_next_step_has_the_cost_of_this_run() {
    let (spec, outcome) = (spec("penalty", "chains = 4\ndraws = 1000"), outcome(StoppedBy::Draws, None, &[]));
    // 400 / 100 with 20% to spare: 4,800 draws at 4.8 times the mu^2, so at mu 1.095: epsilon 5.42, rounded up.
    let remedy = judged(&spec, &outcome, 1.0, 100.0).remedy.unwrap();
    assert!(remedy.starts_with("`conclave extend 4f --draws 4800 --epsilon 5.5`"), "{remedy}");
    // The owners have admitted this job's epsilon of 3, and may refuse a larger one.
    assert!(remedy.contains("(epsilon 5.5 is more than the 3 of this job: `conclave budget` shows whether"), "{remedy}");
    let less = judged(&spec, &outcome, 1.0, 350.0).remedy.unwrap();
    assert!(less.contains("--epsilon 2.") && !less.contains("conclave budget"), "{less}");
    // Twenty effective draws are too few to extrapolate 200-fold from.
    assert_eq!(judged(&spec, &outcome, 1.0, 2.0).remedy, None);
    assert_eq!(judged(&spec, &outcome, 1.0, 500.0).remedy, None);
    let known = self::outcome(StoppedBy::Budget, Some(20_000), &[]);
    let remedy = judged(&spec, &known, 1.0, 100.0).remedy.unwrap();
    assert!(remedy.contains("; or a new job with `algorithm = \"noisy-statistics\"`"), "{remedy}");
}

#[test]
fn what_the_draws_do_not_show_lowers_the_grade() {
    let spec = spec("penalty", "chains = 4\ndraws = 1000");
    let warned = outcome(StoppedBy::Draws, None, &["the clip cuts 3% of the ratios"]);
    let verdict = judged(&spec, &warned, 1.0, 900.0);
    // The reason names the warning.
    assert_eq!(verdict.reasons, ["a warning on the draws: the clip cuts 3% of the ratios"]);
    assert_eq!(verdict.grade, Grade::Preliminary);
    let clipped = outcome(StoppedBy::Clip, None, &[]);
    let verdict = judged(&spec, &clipped, 1.0, 900.0);
    assert!(verdict.grade == Grade::NotUsable && verdict.reasons[0].contains("another posterior"), "{verdict:?}");
    let one = self::spec("penalty", "chains = 1\ndraws = 1000");
    let verdict = judged(&one, &outcome(StoppedBy::Draws, None, &[]), f64::NAN, 900.0);
    assert!(verdict.grade == Grade::Preliminary && verdict.reasons[0].contains("one chain"), "{verdict:?}");
}
