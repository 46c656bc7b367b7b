#![allow(clippy::unwrap_used)]
use conclave_privacy::pass::hold::Moves;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::job::{JobError, JobSpec};
use crate::model::{Summand, TableLaw, sums};
use crate::query::{QueryError, QueryTerms};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::ModelData;

const UNIT: i64 = QueryKind::COUNT_UNIT as i64;

fn job(model: &str, more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\noutcome = \"y\"\n{model}\n[columns]\ny = {{ binary = true }}\nb = {{ binary = true }}\n\
         c = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\nw = {{ levels = [\"p\", \"q\", \"r\"] }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{more}"
    ))
    .unwrap()
}

fn logistic(predictors: &str, more: &str) -> JobSpec {
    job(&format!("kind = \"logistic\"\npredictors = [{predictors}]\n{more}"), "")
}

/// Returns the predictors of a record with these levels under "b", "w", "b:w".
fn record(b: f64, w: usize) -> Vec<f64> {
    let is = |level| f64::from(u8::from(w == level));
    vec![b, is(1), is(2), b * is(1), b * is(2)]
}

fn shard(records: &[(f64, Vec<f64>)]) -> ModelData {
    let column = |j: usize| records.iter().map(|(_, x)| x[j]).collect();
    ModelData {
        outcome: records.iter().map(|(y, _)| *y).collect(),
        predictors: (0..records[0].1.len()).map(column).collect(),
        ..ModelData::default()
    }
}

/// Returns the table of the model with an interaction.
fn counted(records: &[(f64, Vec<f64>)]) -> Vec<i64> {
    let model = logistic("\"b\", \"w\", \"b:w\"", "").build_model();
    sums(model.as_ref(), &shard(records), &[Summand::table_of(model.as_ref())]).remove(0).open_components_for_test()
}

#[test]
fn only_categories_with_predictors_of_their_own_make_a_table() {
    let table = |spec: &JobSpec| spec.outcome_table(spec.build_model().as_ref()).map(|table| table.cells());
    assert_eq!(table(&logistic("\"b\", \"w\"", "")), Some(13));
    assert_eq!(table(&logistic("\"b\", \"w\", \"b:w\"", "")), Some(13));
    assert_eq!(table(&logistic("\"b\", \"c\"", "")), Some(9));
    // A number, an interaction without its columns, no intercept, a power.
    for (predictors, more) in
        [("\"b\", \"x\"", ""), ("\"b\", \"b:w\"", ""), ("\"b\", \"w\"", "intercept = false"), ("\"b\", \"w\"", "power = 0.5")]
    {
        assert_eq!(table(&logistic(predictors, more)), None, "{predictors} {more}");
    }
    // Without the key, only a small table is used.
    assert_eq!((table(&binaries(2, "").unwrap()), table(&binaries(3, "").unwrap())), (Some(9), None));
}

fn binaries(n: usize, more: &str) -> Result<JobSpec, JobError> {
    let columns = (0..n).map(|i| format!("c{i} = {{ binary = true }}\n")).collect::<String>();
    let names: Vec<String> = (0..n).map(|i| format!("\"c{i}\"")).collect();
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [{}]\n[columns]\n\
         y = {{ binary = true }}\n{columns}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{more}",
        names.join(", "),
    ))
}

const NAMED: &str = "[release]\ntable = true\n";

/// A job that names its table has one of up to 4,096 cells and one for unusable records, or is refused with the key.
#[test]
fn a_job_names_its_table() {
    let cells = |spec: &JobSpec| spec.outcome_table(spec.build_model().as_ref()).map(|table| table.cells());
    let asked = |n| binaries(n, NAMED).unwrap();
    assert_eq!((cells(&asked(3)), cells(&asked(11))), (Some(17), Some(4097)));
    assert_eq!((asked(11).releases(), asked(11).most_rounds(), asked(11).chosen.is_some()), (vec!["table"], Some(1), true));
    let refused = |spec: Result<JobSpec, JobError>| spec.unwrap_err();
    let too_many = refused(binaries(12, NAMED));
    assert_eq!(too_many.key, "release.table");
    assert!(too_many.message.contains("4096 cells"), "{too_many}");
    let staged = refused(binaries(3, "[release]\ntable = true\nstages = [0.5, 0.5]\n"));
    assert!(staged.key == "release.table" && staged.message.contains("release.stages"), "{staged}");
    // A job that declines its small table uses scores.
    assert_eq!(binaries(2, "[release]\ntable = false\n").unwrap().releases(), ["score"]);
    // Another algorithm has no such key.
    let text = "[release]\ntable = true\n[sampler]\nuntil = { ess = 100 }\n";
    assert_eq!(refused(binaries(3, text)).key, "release");
}

fn counts(most: u32, more: &str, named: &str) -> Result<JobSpec, JobError> {
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"poisson\"\noutcome = \"y\"\npredictors = [\"b\", \"w\"]\n{more}\n\
         [columns]\ny = {{ min = 1, max = {most} }}\nb = {{ binary = true }}\ne = {{ min = 1, max = 2 }}\nw = {{ levels = [\"p\", \"q\", \"r\"] }}\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n{named}"
    ))
}

/// A Poisson regression has a table of its counts, where the job names it and they are few.
#[test]
fn counts_have_a_table() {
    let cells = |spec: JobSpec| spec.outcome_table(spec.build_model().as_ref()).map(|table| table.cells());
    assert_eq!(cells(counts(4, "", NAMED).unwrap()), Some(25));
    assert_eq!(cells(counts(4, "", "").unwrap()), None);
    assert_eq!(cells(counts(682, "", NAMED).unwrap()), Some(4093));
    for refused in [counts(683, "", NAMED), counts(4, "exposure = \"e\"", NAMED)] {
        assert_eq!(refused.unwrap_err().key, "release.table");
    }
    let model = counts(4, "", NAMED).unwrap().build_model();
    let table = model.outcome_table(usize::MAX).unwrap();
    assert_eq!((table.outcomes(), table.law()), (vec![1.0, 2.0, 3.0, 4.0], TableLaw::Poisson));
    let is = |w: usize, level| f64::from(u8::from(w == level));
    for (at, y) in table.outcomes().into_iter().enumerate() {
        for (cell, (b, w)) in [0.0, 1.0].into_iter().flat_map(|b| (0..3).map(move |w| (b, w))).enumerate() {
            let x = vec![b, is(w, 1), is(w, 2)];
            assert_eq!(table.rows()[cell], [vec![1.0], x.clone()].concat());
            let scaled = (y - 2.5) / 1.5;
            let found = sums(model.as_ref(), &shard(&[(scaled, x)]), &[Summand::table_of(model.as_ref())]).remove(0);
            let expected = (0..25).map(|i| UNIT * i64::from(i == cell + 6 * at)).collect::<Vec<_>>();
            assert_eq!(found.open_components_for_test(), expected, "{y} {b} {w}");
        }
    }
    // Whatever a record contains, it is in one cell; one without a count or a level is in the last.
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -2.0, 5.0] {
        for record in [(odd, vec![1.0, 0.0, 0.0]), (1.0, vec![odd, 0.0, 0.0]), (1.0, vec![0.0, odd, odd])] {
            let found = sums(model.as_ref(), &shard(&[record]), &[Summand::table_of(model.as_ref())]).remove(0);
            assert_eq!(found.open_components_for_test(), (0..25).map(|i| UNIT * i64::from(i == 24)).collect::<Vec<_>>(), "{odd}");
        }
    }
}

#[test]
fn rows_are_those_of_the_design() {
    let model = logistic("\"b\", \"w\", \"b:w\"", "").build_model();
    let table = model.outcome_table(usize::MAX).unwrap();
    let combinations = [0.0, 1.0].into_iter().flat_map(|b| (0..3).map(move |w| (b, w)));
    for (cell, (b, w)) in combinations.enumerate() {
        assert_eq!(table.rows()[cell], [vec![1.0], record(b, w)].concat());
        for y in [0.0, 1.0] {
            let counts = counted(&[(y, record(b, w))]);
            let expected = (0..13).map(|i| UNIT * i64::from(i == cell + 6 * usize::from(y == 1.0))).collect::<Vec<_>>();
            assert_eq!(counts, expected, "{y} {b} {w}");
        }
    }
}

/// Every record is counted once, whatever it contains: replacing one by another moves two cells, by exactly the price.
#[test]
fn every_record_is_in_one_cell() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let odd = [f64::NAN, f64::INFINITY, -1.0, 0.5, 2.0, 1e300, -0.0, 1.0];
    let mut records: Vec<(f64, Vec<f64>)> =
        (0..600).map(|i| (f64::from(i % 2), record(f64::from(i / 2 % 2), i as usize % 3))).collect();
    let usable = records.len();
    for _ in 0..300 {
        let mut any = || odd[rng.random_range(0..odd.len())];
        records.push((any(), (0..5).map(|_| any()).collect()));
    }
    // Two levels set in one column.
    records.push((1.0, vec![1.0, 1.0, 1.0, 1.0, 1.0]));
    let one: Vec<Vec<i64>> = records.iter().map(|record| counted(std::slice::from_ref(record))).collect();
    for (i, counts) in one.iter().enumerate() {
        assert_eq!((counts.iter().sum::<i64>(), counts.iter().filter(|c| **c != 0).count()), (UNIT, 1), "{:?}", records[i]);
        assert!(i >= usable || counts[12] == 0);
    }
    assert_eq!(one.last().unwrap()[12], UNIT);
    let all = counted(&records);
    assert!((0..13).all(|cell| all[cell] == one.iter().map(|counts| counts[cell]).sum::<i64>()));
    let square = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| u128::from((a - b).unsigned_abs()).pow(2)).sum::<u128>();
    let price =
        |replaced| u128::from(Moves::one_hot(1, 1).between(if replaced { Adjacency::Replace } else { Adjacency::AddRemove }));
    let most = one.iter().flat_map(|a| one.iter().map(move |b| square(a, b))).max().unwrap();
    assert!(most <= price(true).pow(2) && most > (price(true) - 1).pow(2));
    assert!(one.iter().all(|a| square(a, &[0; 13]) <= price(false).pow(2)));
    let persons = |records| Moves::one_hot(1, records).between(Adjacency::Replace);
    assert_eq!(persons(4), 4 * persons(1));
}

/// A job that uses its table queries nothing else, and a job with stages queries no table.
#[test]
fn a_job_queries_its_table_or_scores() {
    let ask = |spec: &JobSpec, unit, kind, points: (&[f64], &[f64])| {
        QueryTerms::new(spec.build_model().as_ref(), spec, unit, kind, points).map(|terms| terms.sensitivity().units())
    };
    let (table, gradient) = (QueryKind::Table { cells: 9 }, QueryKind::Gradient { parameters: 3 });
    let spec = logistic("\"b\", \"c\"", "");
    assert_eq!((spec.releases(), spec.most_rounds()), (vec!["table"], Some(1)));
    let (theta, frame) = ([0.0; 3], [0.1; 12]);
    assert_eq!(ask(&spec, PrivacyUnit::default(), table, (&[], &[])), Ok(1_482_911), "the root of 2, upwards");
    assert_eq!(ask(&spec, PrivacyUnit::row(Adjacency::AddRemove), table, (&[], &[])), Ok(1 << 20));
    assert_eq!(ask(&spec, PrivacyUnit::default(), gradient, (&theta, &frame)), Err(QueryError::Kind(gradient)));
    let other = QueryKind::Table { cells: 8 };
    assert_eq!(ask(&spec, PrivacyUnit::default(), other, (&[], &[])), Err(QueryError::Vector(other)));
    assert_eq!(ask(&spec, PrivacyUnit::default(), table, (&[0.0], &[])), Err(QueryError::Vector(table)));
    let staged = job("kind = \"logistic\"\npredictors = [\"b\", \"c\"]", "[release]\ncurvature_share = 0.1\n");
    assert_eq!(staged.releases(), ["score"]);
    assert_eq!(ask(&staged, PrivacyUnit::default(), table, (&[], &[])), Err(QueryError::Kind(table)));
    assert!(ask(&staged, PrivacyUnit::default(), gradient, (&theta, &frame)).is_ok());
}
