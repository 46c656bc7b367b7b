//! Every job that a party can answer is rehearsed, and any other is refused with the right reason.
#![allow(clippy::unwrap_used)]
use conclave_privacy::accounting::{Adjacency, SamplingProbability};

use super::*;
use std::sync::Arc;

use conclave_common::job::{Algorithm, JobSpec};

use conclave_privacy::pass::Threads;
use conclave_vault::answer::Answerer;
use conclave_vault::config::{Policy, ReplyDelay};
use conclave_vault::data::{BadRows, Precision, Shard};
use conclave_vault::ledger::Ledger;
use conclave_vault::members::Members;
use conclave_vault::noise::Noise;
use conclave_vault::ports::DelayMeter as _;
use conclave_vault::testing::{MEAN_TOML, data, open_policy, open_request, query, write};

use crate::reply_delay::SandboxMeter;
use crate::reply_delay::measure::measure;

fn job(algorithm: &str, model: &str, columns: &str, more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"r\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\"]\n[model]\n{model}\n[columns]\n{columns}\n{more}"
    ))
    .unwrap()
}

const SMALL: &str = "[sampler]\nchains = 1\ndraws = 20\nwarmup = 1\n[privacy]\nepsilon = 0.05\ndelta = 1e-6\n";

/// Whatever unit a party protects, and however small the job's budget: a rehearsal uses a ledger of its own.
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
            measure(
                &Rehearsal(&MeteredJob { spec, unit, units: 5, threads: &threads, precision: Precision::Double }),
                folder.path(),
            )
        };
        assert!(measured(&mean("penalty")).is_ok(), "{unit}: {:?}", measured(&mean("penalty")));
        let (statistic, is_row) = (measured(&mean("penalty-exp-family")), unit == PrivacyUnit::default());
        // A release that a party cannot make for persons is refused with that reason, and is not a fault of the party.
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
    let rehearsal = Rehearsal(&MeteredJob {
        spec: &spec,
        unit: PrivacyUnit::default(),
        units: 9,
        threads: &threads,
        precision: Precision::Double,
    });
    assert!(measure(&rehearsal, folder.path()).is_ok(), "{:?}", measure(&rehearsal, folder.path()));
}

/// Levels, an interaction and an exposure are generated too, and no kind of regression refuses a value at the ends of its box.
#[test]
fn every_regression_is_rehearsed() {
    let folder = tempfile::tempdir().unwrap();
    for ((kind, outcome, more), algorithm) in [
        ("logistic", "{ binary = true }", "offset = \"days\""),
        ("logistic", "{ binary = true }", "weights = \"auto\""),
        ("linear", "{ min = 0, max = 20 }", "sd = 4"),
        ("linear", "{ min = 0, max = 20 }", "offset = \"days\""),
        ("poisson", "{ min = 0, max = 20 }", "exposure = \"days\""),
        ("negative_binomial", "{ min = 0, max = 20 }", "exposure = \"days\""),
        ("student_t", "{ min = 0, max = 20 }", "df = 4"),
    ]
    .into_iter()
    .flat_map(|job| ["penalty", "noisy-statistics", "hmc", "sgld"].map(|algorithm| (job, algorithm)))
    {
        // No bound on a remainder is known where the scale or dispersion is a parameter.
        if algorithm == "hmc" && !(["logistic", "poisson"].contains(&kind) || more.starts_with("sd")) {
            continue;
        }
        let weighs = more.starts_with("weights");
        if weighs && algorithm == "sgld" {
            continue;
        }
        let sampler = if weighs && algorithm == "penalty" { "[sampler]\nlocate = \"gradients\"\n" } else { "" };
        let text = format!(
            "name = \"r\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
             predictors = [\"age\", \"ward\", \"age:ward\"]\n{more}\n[columns]\ny = {outcome}\n\
             age = {{ min = 20, max = 80 }}\nward = {{ levels = [\"a\", \"b\", \"c\"] }}\n\
             days = {{ min = 0.5, max = 9 }}\n{sampler}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        let spec = JobSpec::parse(&text).unwrap();
        let (threads, unit) = (Arc::new(Threads::one()), PrivacyUnit::default());
        let rehearsal = Rehearsal(&MeteredJob { spec: &spec, unit, units: 300, threads: &threads, precision: Precision::Double });
        let made = rehearsal.made_up().unwrap();
        assert_eq!((made.outcome.len(), made.predictors.len()), (300, 5), "{kind}");
        let queries = rehearsal.queries().unwrap();
        let lengths: Vec<usize> =
            (0..16).flat_map(|pass| rehearsal.request(pass, &queries).proposals).map(|query| query.to.len()).collect();
        // A gradient and a remainder of six parameters, each with R.
        let has_leverage = [6 * 7 + 1, 6 * 7 + 6 + 2].iter().all(|length| lengths.contains(length));
        assert_eq!(has_leverage, weighs && algorithm == "hmc", "{kind} {algorithm}: {lengths:?}");
        // A step of six parameters and the weights.
        let weighs_steps = lengths.contains(&(6 + 6 * 7 + 1));
        assert_eq!(algorithm == "penalty" && weighs_steps, weighs && algorithm == "penalty", "{kind} {algorithm}: {lengths:?}");
        let columns = || made.predictors.iter().chain(&made.auxiliary).chain([&made.outcome]);
        assert!(columns().all(|column| column.iter().all(|x| x.is_finite())), "{kind}");
        assert!(made.predictors.iter().all(|column| column.iter().any(|x| *x != 0.0)), "{kind}: every level is made up");
        measure(&rehearsal, folder.path()).unwrap_or_else(|e| panic!("{kind}, {algorithm}: {e}"));
    }
}

/// A linear job by table asks its moments alone, and has nothing else to be measured by.
#[test]
fn a_table_of_sums_is_rehearsed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"r\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
                predictors = [\"sex\", \"ward\"]\n[columns]\ny = { min = 0, max = 20 }\nsex = { binary = true }\n\
                ward = { levels = [\"a\", \"b\", \"c\"] }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n[release]\ntable = true\n";
    let spec = JobSpec::parse(text).unwrap();
    let (threads, unit) = (Arc::new(Threads::one()), PrivacyUnit::default());
    let rehearsal = Rehearsal(&MeteredJob { spec: &spec, unit, units: 300, threads: &threads, precision: Precision::Double });
    measure(&rehearsal, folder.path()).unwrap();
}

/// Ratios and gradients over samples are measured with the largest samples, in the necessary number of blocks: blocks of one
/// place each, or of more places than are ever used.
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
            let rehearsal =
                Rehearsal(&MeteredJob { spec: &spec, unit, units: 2500, threads: &threads, precision: Precision::Double });
            let queries = rehearsal.queries().unwrap();
            let kinds = |pass| -> Vec<_> {
                let asked = rehearsal.request(pass, &queries).proposals;
                asked.into_iter().map(|proposal| QueryKind::from_code(proposal.kind).unwrap().is_sampled()).collect()
            };
            assert_eq!((kinds(0).contains(&true), kinds(1)), (false, vec![true; spec.sampler.chains as usize]), "{algorithm:?}");
            let measured = measure(&rehearsal, folder.path());
            assert!(measured.is_ok(), "{algorithm:?} {batch} {unit}: {measured:?}");
        }
    }
}

/// A party with this meter holds the replies of a job to the delay that it measured, and leaves nothing of the rehearsal behind.
#[test]
fn a_party_measures_its_reply_delay() {
    let folder = tempfile::tempdir().unwrap();
    let rows = write(folder.path(), "a.csv", &format!("height\n{}", "150\n".repeat(5)));
    let (ledger, budget) = (folder.path().join("ledger.sqlite"), conclave_vault::testing::budget());
    Ledger::init(&ledger, "hospital-a", &budget).unwrap();
    let shard = Shard::load(&data(rows, BadRows::Stop), None).unwrap();
    let opened = Ledger::open(&ledger, "hospital-a", &budget).unwrap();
    let policy = Policy { reply_delay: ReplyDelay::Auto, ..open_policy() };
    let without =
        |shard, ledger| Answerer::new("hospital-a".into(), policy.clone(), budget, shard, ledger, Noise::from_os().unwrap());
    let mut answerer = without(shard, opened).with_members(Members::anyone()).with_delay_meter(Arc::new(SandboxMeter));
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    assert!(!folder.path().join("reply-delay.tmp").exists());
    assert_eq!(answerer.answer(query(0, &[(0, 0.0, 1e-4)])).status, Some(0));
    let spec = JobSpec::parse(MEAN_TOML).unwrap();
    let threads = Arc::new(Threads::one());
    let metered =
        MeteredJob { spec: &spec, unit: PrivacyUnit::default(), units: 5, threads: &threads, precision: Precision::Double };
    let delay = SandboxMeter.measure(&metered, folder.path()).unwrap();
    assert!(delay.answer.least >= std::time::Duration::from_micros(250) && delay.answer.proposals == 2, "{delay:?}");
}

/// Chains that start at a choice ask as many numbers a round as other chains, also where the choice has few candidates.
#[test]
fn chains_that_start_at_a_choice_are_rehearsed_at_their_number() {
    let threads = Arc::new(Threads::one());
    let more = "[sampler]\nstart = \"ops\"\ncandidates = 2\nchains = 11\ndraws = 20\npolish = 2\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
    let model = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]";
    let spec = job("sgld", model, "y = { binary = true }\nx = { min = 0, max = 9 }", more);
    let metered =
        MeteredJob { spec: &spec, unit: PrivacyUnit::default(), units: 5, threads: &threads, precision: Precision::Double };
    let rehearsal = Rehearsal(&metered);
    let asked = |pass| -> Vec<u32> { rehearsal.vectors(pass, &rehearsal.ordinary(), None).iter().map(|p| p.kind).collect() };
    assert_eq!(asked(1), vec![QueryKind::Ratio.code(); 11]);
    assert_eq!(asked(3), vec![QueryKind::Gradient { parameters: 2 }.code(); 11]);
}
