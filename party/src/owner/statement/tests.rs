#![allow(clippy::unwrap_used)]
use std::path::Path;

use conclave_common::epsilon;
use conclave_privacy::accounting::Spent;

use conclave_privacy::accounting::gaussian_dp;
use conclave_privacy::mechanism::QueryKind;

use conclave_pages::document::{Block, file as page, markdown};

use super::*;
use crate::config::PartyConfig;
use crate::ledger_views::Approval;
use crate::ledger_views::report;
use crate::owner::jobs::JobView;
use crate::owner::terms::Terms;
use crate::owner::totals::JobTotals;
use crate::owner::totals::{Released, Releases};
use crate::owner::worst_case::worst_case;
use conclave_vault::consent::list::Decided;
use conclave_vault::consent::{Request, Standing};
use conclave_vault::ledger::Ledger;
use conclave_vault::testing::{JOB, MEAN_TOML};

fn config(data: &str) -> PartyConfig {
    let text = format!(
        "name = \"hospital-a\"\ncoordinator = \"https://x\"\nidentity = \"i\"\nledger = \"ledger.sqlite\"\n[data]\n\
         path = \"a.csv\"\n{data}\n[budget]\nepsilon = 8\ndelta = 1e-6\n[policy]\nreply_delay_ms = 5\n"
    );
    PartyConfig::parse(&text, Path::new("/srv")).unwrap()
}

fn job(spec_toml: &str) -> JobView {
    let decided =
        Decided { standing: Standing::Approved, time: "2026-03-02".into(), decider: "owner".into(), reason: String::new() };
    let request = Request {
        job: JOB.into(),
        analyst: "alice".into(),
        digest: [7; 32],
        spec_toml: spec_toml.into(),
        asked: "2026-03-01".into(),
        decided: Some(decided),
        permit: None,
        signer: Some([9; 32]),
    };
    let totals = JobTotals {
        job: JOB.into(),
        analyst: "alice".into(),
        digest: [7; 32],
        spec_toml: spec_toml.into(),
        opened: "2026-03-02".into(),
        closed: None,
        end: None,
        is_refreshed: false,
        queries: 1234,
        spent: Spent { units: 1 << 48, draws: 1234, ..Spent::default() },
    };
    JobView::of(request, &[totals])
}

fn blocks(data: &str, job: &JobView) -> Vec<Block> {
    blocks_of(data, job, vec![Released { kind: QueryKind::Ratio, queries: 1234, integers: 1234, noise: (1.0, 2.0) }])
}

fn blocks_of(data: &str, job: &JobView, kinds: Vec<Released>) -> Vec<Block> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let config = config(data);
    Ledger::init(&path, "hospital-a", &config.budget).unwrap();
    let report = report(&path, "hospital-a", &config.budget).unwrap();
    let worst = job.spec.as_ref().map(|spec| worst_case(spec, job.spent().units, &report, None).unwrap());
    let alone = job.is_masked().then_some(4.0);
    let releases = Releases { kinds, charged: ("2026-03-02".into(), "2026-03-03".into()), mu_squared_if_all_collude: alone };
    let releases = job.totals.as_ref().map(|_| &releases);
    statement(&config, job, &Facts { report: &report, worst: worst.as_ref(), releases, papers: None }, "2026-03-04")
}

#[test]
fn a_statement_says_what_an_owner_must_know() {
    let text = markdown(&blocks("", &job(MEAN_TOML)));
    for part in [
        "mean of height",
        "| analyst | alice (",
        "| finished | not yet",
        "| analyst's key | sha256:0909090909",
        "signed with the key sha256:0909090909",
        "1234 whole numbers",
        "standard deviation 1 to 2",
        "one row, not one person",
        "at delta 1e-6",
        "by zCDP",
        "epsilon 8 at delta 1e-6",
        "Who could collude",
        "What is not protected",
        "0707070707",
        "    kind = \"gaussian_mean\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // mu = 1 at delta 1e-6, as computed by the accountant.
    assert!(text.contains(&epsilon::spent(gaussian_dp::epsilon(1.0, 1e-6))), "{text}");
}

#[test]
fn a_statement_on_persons_says_so() {
    let text = markdown(&blocks("person = \"id\"\nmax_records_per_person = 5\nadjacency = \"add-remove\"", &job(MEAN_TOML)));
    assert!(text.contains("protects one person") && text.contains("had one person been added or removed"), "{text}");
    assert!(!text.contains("not one person") && !text.contains("it is public"), "{text}");
}

#[test]
fn a_statement_says_that_the_promises_of_several_owners_add() {
    let two = MEAN_TOML.replace("parties = [\"hospital-a\"]", "parties = [\"hospital-a\", \"hospital-b\"]");
    let (alone, shared) = (markdown(&blocks("", &job(MEAN_TOML))), markdown(&blocks("", &job(&two))));
    assert!(alone.contains("these guarantees add") && !alone.contains("at all 2 owners"), "{alone}");
    assert!(two != MEAN_TOML && shared.contains("these guarantees add") && shared.contains("at all 2 owners"), "{shared}");
}

#[test]
fn a_statement_on_a_masked_job_says_what_protects_and_what_if_not() {
    let toml = conclave_vault::testing::masked_toml(5, 1);
    let text = markdown(&blocks("", &job(&toml)));
    for part in [
        "as if 4 parties' noise protects you",
        "if all others collude",
        "It was released masked",
        "X25519",
        "quantum",
        "mu grows by m",
        // mu squared is 4: mu is 2.
        &epsilon::spent(gaussian_dp::epsilon(2.0, 1e-6)),
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("against all of them together"), "{text}");
}

#[test]
fn nothing_that_an_analyst_writes_becomes_markup() {
    let wicked = MEAN_TOML.replace("name = \"mean\"", "name = \"<script>x</script> | [a](b)\"");
    let mut job = job(&wicked);
    // Today's parser would refuse it.
    job.spec.as_mut().unwrap().name.push_str("\n# x\u{1b}[2J\u{202e}");
    let blocks = blocks("", &job);
    let (md, html) = (markdown(&blocks), page(&blocks));
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"));
    let line = md.lines().find(|l| l.starts_with("| name")).unwrap();
    assert!(
        !md.contains(['\u{1b}', '\u{202e}'])
            && !html.contains(['\u{1b}', '\u{202e}'])
            && !md.lines().any(|l| l.starts_with("# x"))
    );
    assert!(line.contains("\\<script\\>") && line.contains("\\| \\[a\\]"), "{line}");
    let outside = ["http:", "https:", "src=", "@import", "url("];
    assert!(
        html.starts_with("<!doctype html>") && outside.iter().all(|part| !html.contains(part)),
        "it needs nothing from outside"
    );
}

#[test]
fn a_job_that_never_ran_let_nothing_leave() {
    let silent = JobView { totals: None, ..job(MEAN_TOML) };
    assert!(markdown(&blocks("", &silent)).contains("Nothing: no number was released"));
}

#[test]
fn a_statement_on_vectors_counts_them_by_kind() {
    let toml = "name = \"i\"\nparties = [\"hospital-a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
                predictors = [\"age\"]\n[columns]\ny = { binary = true }\nage = { min = 20, max = 80 }\n[privacy]\nepsilon = 1.0\n\
                delta = 1e-6\n";
    let kind = QueryKind::Gradient { parameters: 2 };
    let kinds = vec![Released { kind, queries: 3, integers: 6, noise: (0.5, 4.0) }];
    let text = markdown(&blocks_of("", &job(toml), kinds));
    for part in [
        "gradient of 2 parameters",
        "6 whole numbers in 3 answers",
        "0.5 to 4 in each, in units of one record's largest contribution",
        "queried at most 11 times",
        "Anyone who holds the release can fit any model of these columns",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("log-likelihood units") && !text.contains("explains a record"), "{text}");
}

/// A choice is no sum and has no added noise, and a table counts records: neither compares settings of the model.
#[test]
fn choices_and_tables_are_not_said_to_be_ratios() {
    let job_of = |algorithm: &str, model: &str, columns: &str| {
        job(&format!(
            "name = \"i\"\nparties = [\"hospital-a\"]\nalgorithm = \"{algorithm}\"\n[model]\n{model}\n[columns]\ny = {{ binary = true }}\n\
             {columns}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        ))
    };
    let released = |kind: QueryKind, integers: u64| Released { kind, queries: 2, integers, noise: (1.0, 1.0) };
    let ops = job_of("ops", "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"age\"]", "age = { min = 20, max = 80 }");
    let choices = || released(QueryKind::Choice { candidates: 512 }, 2);
    let text = markdown(&blocks_of("", &ops, vec![choices()]));
    for part in ["2 whole numbers in 2 answers, each drawn at random; no noise is added", "Each choice is the index of one of"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("Each number is a sum") && !text.contains("explains a record"), "{text}");
    let text = markdown(&blocks_of("", &ops, vec![released(QueryKind::Ratio, 2), choices()]));
    assert!(text.contains("Each number of the search is a sum") && text.contains("Each choice is the index"), "{text}");

    let bayes = "kind = \"naive_bayes\"\noutcome = \"y\"\npredictors = [\"ward\"]";
    let augmentation = job_of("augmentation", bayes, "ward = { levels = [\"a\", \"b\"] }");
    let text = markdown(&blocks_of("", &augmentation, vec![released(QueryKind::Table { cells: 4 }, 8)]));
    for part in ["a sum over all records of the quantities named above", "Anyone who holds the release can fit any model"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("explains a record"), "{text}");
}

/// A job of an earlier version has no key, and says so; differences between the decisions and the ledger are stated.
#[test]
fn what_is_not_known_of_a_job_is_stated() {
    let mut old = job(MEAN_TOML);
    old.request.signer = None;
    old.terms = Terms::new(&old.request, Some(Approval::read("{\"permit\":{\"until\":\"2026-12-31\"}}")));
    let text = markdown(&blocks("", &old)).replace('\\', "");
    for part in
        ["not stored: the job was entered by a version", "signed with the key of analyst alice", "permit_differs: ", "2026-12-31"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
