//! Every job that a party can answer is rehearsed, and any other is refused for what it is.
#![allow(clippy::unwrap_used)]
use conclave_privacy::accounting::{Adjacency, SamplingProbability};

use super::*;
use crate::answer::measure::measure;

fn job(algorithm: &str, model: &str, columns: &str, more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"r\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\"]\n[model]\n{model}\n[columns]\n{columns}\n{more}"
    ))
    .unwrap()
}

const SMALL: &str = "[sampler]\nchains = 1\ndraws = 20\nwarmup = 1\n[privacy]\nepsilon = 0.05\ndelta = 1e-6\n";

/// Whatever a party protects, and however little the job may spend: a rehearsal's ledger is its own.
#[test]
fn every_unit_is_rehearsed_at_any_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mean = |algorithm: &str| {
        job(algorithm, "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 2.0", "y = { min = 0, max = 20 }", SMALL)
    };
    let persons = [1, 3, 1 << 16].map(|limit| PrivacyUnit::person(Adjacency::Replace, limit).unwrap());
    let threads = Arc::new(Threads::one());
    for unit in persons.into_iter().chain([PrivacyUnit::default()]) {
        let measured = |spec: &JobSpec| {
            measure(&Rehearsal { spec, unit, units: 5, threads: &threads, precision: Precision::Double }, folder.path())
        };
        assert!(measured(&mean("penalty")).is_ok(), "{unit}: {:?}", measured(&mean("penalty")));
        let (statistic, is_row) = (measured(&mean("penalty-exp-family")), unit == PrivacyUnit::default());
        // What a party that protects persons does not release is refused for that, and is no fault of the party.
        assert!(statistic.is_ok() == is_row, "{unit}: {statistic:?}");
        assert!(is_row || matches!(&statistic, Err(Unmeasured::Job(why)) if why.contains("protects a person")), "{statistic:?}");
    }
}

#[test]
fn a_clip_by_slope_is_rehearsed() {
    let (folder, threads) = (tempfile::tempdir().unwrap(), Arc::new(Threads::one()));
    let banana = "kind = \"banana\"\noutcome = \"y\"\nsecond_outcome = \"z\"\na = 0.1\ntau1 = 1.0\ntau2 = 1.0";
    let columns = "y = { min = -9, max = 9 }\nz = { min = -9, max = 9 }";
    let spec = job("penalty", banana, columns, &format!("{SMALL}clip = {{ slope = 5.0 }}\n"));
    let rehearsal =
        Rehearsal { spec: &spec, unit: PrivacyUnit::default(), units: 9, threads: &threads, precision: Precision::Double };
    assert!(measure(&rehearsal, folder.path()).is_ok(), "{:?}", measure(&rehearsal, folder.path()));
}

/// Levels, an interaction and an exposure are made up too, and no kind of regression refuses a value at the ends of its box.
#[test]
fn every_regression_is_rehearsed() {
    let folder = tempfile::tempdir().unwrap();
    for ((kind, outcome, more), algorithm) in [
        ("logistic", "{ binary = true }", "offset = \"days\""),
        ("linear", "{ min = 0, max = 20 }", "sd = 4"),
        ("linear", "{ min = 0, max = 20 }", "offset = \"days\""),
        ("poisson", "{ min = 0, max = 20 }", "exposure = \"days\""),
        ("negative_binomial", "{ min = 0, max = 20 }", "exposure = \"days\""),
        ("student_t", "{ min = 0, max = 20 }", "df = 4"),
    ]
    .into_iter()
    .flat_map(|job| ["penalty", "noisy-statistics", "hmc", "sgld"].map(|algorithm| (job, algorithm)))
    {
        // Of a scale or dispersion that is a parameter no bound on a remainder is known.
        if algorithm == "hmc" && !(["logistic", "poisson"].contains(&kind) || more.starts_with("sd")) {
            continue;
        }
        let text = format!(
            "name = \"r\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
             predictors = [\"age\", \"ward\", \"age:ward\"]\n{more}\n[columns]\ny = {outcome}\n\
             age = {{ min = 20, max = 80 }}\nward = {{ levels = [\"a\", \"b\", \"c\"] }}\n\
             days = {{ min = 0.5, max = 9 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        let spec = JobSpec::parse(&text).unwrap();
        let (threads, unit) = (Arc::new(Threads::one()), PrivacyUnit::default());
        let rehearsal = Rehearsal { spec: &spec, unit, units: 300, threads: &threads, precision: Precision::Double };
        let made = rehearsal.made_up().unwrap();
        let made = made.held();
        assert_eq!((made.outcome.len(), made.predictors.len()), (300, 5), "{kind}");
        let columns = || made.predictors.iter().chain(&made.auxiliary).chain([&made.outcome]);
        assert!(columns().all(|column| column.iter().all(|x| x.is_finite())), "{kind}");
        assert!(made.predictors.iter().all(|column| column.iter().any(|x| *x != 0.0)), "{kind}: every level is made up");
        measure(&rehearsal, folder.path()).unwrap_or_else(|e| panic!("{kind}, {algorithm}: {e}"));
    }
}

/// Ratios and gradients over samples are measured over the largest samples, in as many blocks as that takes: of one place each, or of more than are
/// ever asked.
#[test]
fn jobs_over_samples_are_rehearsed() {
    let (folder, threads) = (tempfile::tempdir().unwrap(), Arc::new(Threads::one()));
    let regression =
        ("kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]", "y = { binary = true }\nx = { min = 0, max = 9 }");
    for (algorithm, batch, blocks) in [
        (Algorithm::Barker, 0.01, 1),
        (Algorithm::Barker, 0.9, 10_000),
        (Algorithm::Sgld, 0.01, 20),
        (Algorithm::Sgnht, 1.0 / f64::from(1 << 20), 1),
    ] {
        let mut spec = job("penalty", regression.0, regression.1, &format!("{SMALL}clip = 0.5\n"));
        let reserve_units = 1 << 36;
        spec.algorithm = algorithm;
        spec.sampler.batch = SamplingProbability::at_least(batch).unwrap();
        spec.privacy.blocks = Some(blocks);
        spec.privacy.budget = spec.privacy.budget.reserving(reserve_units);
        for unit in [PrivacyUnit::default(), PrivacyUnit::person(Adjacency::Replace, 3).unwrap()] {
            let rehearsal = Rehearsal { spec: &spec, unit, units: 2500, threads: &threads, precision: Precision::Double };
            let questions = rehearsal.questions().unwrap();
            let kinds = |pass| -> Vec<_> {
                let asked = rehearsal.request(pass, &questions).proposals;
                asked.into_iter().map(|proposal| QueryKind::from_code(proposal.kind).unwrap().is_sampled()).collect()
            };
            assert_eq!((kinds(0).contains(&true), kinds(1)), (false, vec![true; spec.sampler.chains as usize]), "{algorithm:?}");
            let measured = measure(&rehearsal, folder.path());
            assert!(measured.is_ok(), "{algorithm:?} {batch} {unit}: {measured:?}");
        }
    }
}
