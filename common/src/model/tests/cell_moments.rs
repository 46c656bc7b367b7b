#![allow(clippy::unwrap_used)]
use crate::job::{JobError, JobSpec};
use crate::model::{Summand, sums};
use crate::query::{QueryError, QueryTerms};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::ModelData;

const NAMED: &str = "[release]\ntable = true\n";

fn job(predictors: &str, more: &str) -> Result<JobSpec, JobError> {
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [{predictors}]\n[columns]\n\
         y = {{ min = 0, max = 10 }}\nb = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\nw = {{ levels = [\"p\", \"q\", \"r\"] }}\n[privacy]\n\
         epsilon = 1.0\ndelta = 1e-6\n{more}"
    ))
}

/// Returns the triangle of the moments of `b`, `w` and `b:w` by combinations, in units of 2^-32, without the diagonal's factor.
fn moments(records: &[(f64, f64, usize)]) -> Vec<Vec<f64>> {
    let is = |w: usize, level| if w > 2 { f64::NAN } else { f64::from(u8::from(w == level)) };
    let predictors = |(_, b, w): &(f64, f64, usize)| vec![*b, is(*w, 1), is(*w, 2), b * is(*w, 1), b * is(*w, 2)];
    let rows: Vec<Vec<f64>> = records.iter().map(predictors).collect();
    let shard = ModelData {
        outcome: records.iter().map(|(y, _, w)| if *w > 2 { f64::NAN } else { *y }).collect(),
        predictors: (0..5).map(|j| rows.iter().map(|row| row[j]).collect()).collect(),
        ..ModelData::default()
    };
    let model = job("\"b\", \"w\", \"b:w\"", NAMED).unwrap().build_model();
    let summand = Summand::Moments { order: 7, squares: 2 };
    let mut released = sums(model.as_ref(), &shard, &[summand]).remove(0).open_components_for_test().into_iter();
    (0..7).map(|i| (i..7).map(|_| released.next().unwrap() as f64 / f64::from(2.0_f32.powi(32))).collect()).collect()
}

/// A job that names its table releases one matrix, with a row for each combination and one for the outcome; nothing else.
#[test]
fn a_linear_job_names_its_table() {
    let named = job("\"b\", \"w\"", NAMED).unwrap();
    let model = named.build_model();
    assert_eq!((named.releases(), named.most_rounds(), named.is_by_table(model.as_ref())), (vec!["moments"], Some(1), true));
    let ask = |kind, points: (&[f64], &[f64])| QueryTerms::new(model.as_ref(), &named, PrivacyUnit::default(), kind, points);
    let moments = |order| ask(QueryKind::Moments { order }, (&[], &[]));
    assert!(moments(7).is_ok() && moments(5).is_err());
    let score = ask(QueryKind::Curvature { parameters: 5 }, (&[0.0, 0.0, 0.0, 0.0, 1.0], &[1.0, 1.0]));
    assert!(matches!(score, Err(QueryError::Kind(_))), "{score:?}");
    // Without the key the second moments are those of predictors, and scores follow.
    let other = job("\"b\", \"w\"", "").unwrap();
    assert_eq!((other.releases(), other.is_by_table(other.build_model().as_ref())), (vec!["moments", "score"], false));
    // A number, an interaction without its columns; stages.
    for refused in
        [job("\"b\", \"x\"", NAMED), job("\"b\", \"b:w\"", NAMED), job("\"b\"", "[release]\ntable = true\nstages = [0.5, 0.5]\n")]
    {
        assert_eq!(refused.unwrap_err().key, "release.table");
    }
}

/// Whatever the number of predictors, a record's squares are at most 2: with d of them, second moments of predictors have d + 2.
#[test]
fn the_charge_is_that_of_two_squares() {
    let charged = |predictors: &str, more: &str, order: u32| {
        let spec = job(predictors, more).unwrap();
        let kind = QueryKind::Moments { order };
        let unit = PrivacyUnit::row(Adjacency::Replace);
        QueryTerms::new(spec.build_model().as_ref(), &spec, unit, kind, (&[], &[])).unwrap().sensitivity().units() as f64
    };
    let (by_table, plain) = (charged("\"b\", \"w\"", NAMED, 7), charged("\"b\", \"w\"", "", 5));
    // The intercept, b, w, and the outcome.
    assert!((plain / by_table - 2.0).abs() < 1e-6, "{plain} {by_table}");
}

/// Counts, sums and squares are those of the records. One without a level counts nowhere.
#[test]
fn combinations_are_counted_and_summed() {
    let records = [(-1.0, 0.0, 0), (0.5, 1.0, 2), (0.25, 1.0, 2), (1.0, 0.0, 1), (0.5, 1.0, 9)];
    let triangle = moments(&records);
    let mut expected = vec![vec![0.0; 7]; 7];
    for (y, b, w) in &records[..4] {
        // Columns are in the order of their names.
        let cell = *b as usize * 3 + w;
        expected[cell][cell] += 181.0 / 256.0;
        expected[cell][6] += y;
        expected[6][6] += y * y * 181.0 / 256.0;
    }
    for (i, row) in triangle.iter().enumerate() {
        for (j, value) in row.iter().enumerate() {
            assert!((value - expected[i][i + j]).abs() < 1e-4, "{i} {} {value} {}", i + j, expected[i][i + j]);
        }
    }
}

/// Replacing a record by any other moves the released numbers by at most what is charged, and by almost as much at the extremes.
#[test]
fn neighbours_move_by_at_most_the_charge() {
    let charged = 2.0;
    let mut furthest = 0.0_f64;
    let all = [-1.0, -0.3, 0.0, 1.0, 1e300, f64::NEG_INFINITY]
        .into_iter()
        .flat_map(|y| [(y, 0.0, 0), (y, 1.0, 2), (y, 0.0, 1), (y, 1.0, 7)]);
    let all: Vec<(f64, f64, usize)> = all.collect();
    for left in &all {
        for right in &all {
            let (a, b) = (moments(&[*left]), moments(&[*right]));
            let squares = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b) * (a - b));
            furthest = furthest.max(squares.sum::<f64>().sqrt());
        }
    }
    assert!(furthest <= charged && furthest > 0.999 * charged, "{furthest}");
}
