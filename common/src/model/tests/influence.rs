//! Tests of bounded influence: sensitivities by brute force, inert records, and the expectation under the model.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::job::JobSpec;
use crate::model::{Model, Summand, sums};
use conclave_privacy::mechanism::{GRADIENT_UNITS, QueryKind};
use conclave_privacy::pass::ModelData;
use proptest::prelude::*;

const PRODUCT_UNITS: f64 = 4_294_967_296.0;
const CLIP: f64 = 2.0;
const TRACE: f64 = 1.5;
const POINT: [f64; 4] = [0.1, 0.3, -0.4, 0.2];

fn model() -> Box<dyn Model> {
    JobSpec::parse(
        "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\nweights = \"always\"\n[columns]\ny = { min = -1, max = 1 }\na = { min = -1, max = 1 }\n\
         b = { min = -1, max = 1 }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n",
    )
    .unwrap()
    .build_model()
}

/// The numbers of a query whose frame has these rows for the three coefficients.
fn numbers(rows: [[f64; 3]; 3]) -> Vec<f64> {
    let rows = rows.into_iter().flat_map(|row| row.into_iter().chain([0.0])).chain([0.0; 4]);
    rows.chain([0.0; 4]).chain([CLIP, TRACE]).collect()
}

fn data(records: &[[f64; 3]]) -> ModelData {
    let column = |j: usize| records.iter().map(|record| record[j]).collect::<Vec<f64>>();
    ModelData { outcome: column(0), predictors: vec![column(1), column(2)], ..ModelData::default() }
}

fn released(numbers: &[f64], records: &[[f64; 3]]) -> [Vec<f64>; 2] {
    let (model, influence) = (model(), Influence::new(numbers, 4).unwrap());
    let summands = [Summand::BoundedGradient { at: &POINT, influence }, Summand::BoundedCurvature { at: &POINT, influence }];
    let sums = sums(model.as_ref(), &data(records), &summands);
    let mut sums = sums.into_iter().map(|sum| sum.open_components_for_test().into_iter().map(|x| x as f64).collect());
    [sums.next().unwrap(), sums.next().unwrap()]
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

fn entries() -> impl Strategy<Value = [[f64; 3]; 3]> {
    // Sigma is .2, so an entry of 1.6 is 8 at the root of the information.
    prop::array::uniform3(prop::array::uniform3(-1.6..1.6_f64))
}

/// A record within its bounds, at a corner of them, or far outside.
fn record() -> impl Strategy<Value = [f64; 3]> {
    let value = || prop_oneof![-1.0..1.0_f64, Just(1.0), Just(-1.0), Just(1e150), Just(-3.0)];
    [value(), value(), value()]
}

proptest! {
    /// Two records' scores are at most two lengths apart, and their information at most R, whatever frame and records are.
    #[test]
    fn no_record_moves_a_sum_by_more_than_is_charged(rows in entries(), one in record(), other in record()) {
        let numbers = numbers(rows);
        let ([score, information], [score_too, information_too]) = (released(&numbers, &[one]), released(&numbers, &[other]));
        prop_assert!(distance(&score, &score_too) <= 2.0 * GRADIENT_UNITS as f64);
        prop_assert!(distance(&information, &information_too) <= PRODUCT_UNITS);
    }

    /// A record with residual e and one with residual -e cancel: the score's expectation under a symmetric law is 0 for every frame.
    #[test]
    fn opposite_residuals_cancel(rows in entries(), a in -1.0..1.0_f64, b in -1.0..1.0_f64, e in 0.0..0.5_f64) {
        let eta = POINT[0] + POINT[1] * a + POINT[2] * b;
        let [score, _] = released(&numbers(rows), &[[eta + e, a, b], [eta - e, a, b]]);
        // Weights are integers of 2^20 at most; the two residuals differ by rounding.
        prop_assert!(distance(&score, &[0.0; 4]) < 1e-5 * GRADIENT_UNITS as f64, "{score:?}");
    }

    /// Score and information have one weight: the square of the score over psi², times R over w, is the information.
    #[test]
    fn score_and_information_have_the_same_weight(rows in entries(), a in -1.0..1.0_f64, b in -1.0..1.0_f64, e in 0.02..0.39_f64) {
        let eta = POINT[0] + POINT[1] * a + POINT[2] * b;
        let [score, information] = released(&numbers(rows), &[[eta + e, a, b]]);
        let root = POINT[3].recip();
        let v = rows.map(|row| root * (row[0] + row[1] * a + row[2] * b));
        let square: f64 = v.iter().map(|v| v * v).sum();
        let weight = Influence::weight(TRACE, square);
        for k in 0..3 {
            let expected = e * root / CLIP * weight * v[k];
            prop_assert!((score[k] / GRADIENT_UNITS as f64 - expected).abs() < 2e-2 * expected.abs() + 1e-4, "{k}: {score:?} {expected}");
        }
        let trace: f64 = [0, 4, 7].iter().map(|at| information[*at] / PRODUCT_UNITS / (181.0 / 256.0)).sum();
        prop_assert!((trace - weight * square / TRACE).abs() < 1e-3, "{trace} {weight} {square}");
    }
}

/// The charged distances are reached: by opposite residuals beyond the clip of a record on the sphere, and by two such records in
/// different directions.
#[test]
fn the_charged_distance_is_reached() {
    // Images between 1 and R long: the score is as long as its limit.
    let near = numbers([[0.05, 0.0, 0.0], [0.0, 0.16, 0.0], [0.0, 0.0, 0.16]]);
    let [high, low] = [1.0, -1.0].map(|y| released(&near, &[[y, 1.0, 1.0]]));
    assert!(distance(&high[0], &low[0]) > 0.999 * 2.0 * GRADIENT_UNITS as f64);
    // Longer images: the trace of the information is at its limit.
    let far = numbers([[0.0; 3], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]);
    let [one, other] = [[0.4, 1.0, 0.0], [-0.3, 0.0, 1.0]].map(|record| released(&far, &[record]));
    assert!(distance(&one[1], &other[1]) > 0.999 * PRODUCT_UNITS, "{}", distance(&one[1], &other[1]) / PRODUCT_UNITS);
}

#[test]
fn an_inert_record_adds_nothing() {
    let (numbers, model) = (numbers([[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]]), model());
    let influence = Influence::new(&numbers, 4).unwrap();
    for record in [[f64::NAN, 0.1, 0.2], [0.3, f64::NAN, 0.2], [0.3, 0.1, f64::INFINITY]] {
        let [score, information] = released(&numbers, &[record]);
        assert!(score.iter().chain(&information).all(|x| *x == 0.0), "{record:?}");
        for influence in [None, Some(influence)] {
            let cells = Summand::Cells { at: &POINT, influence, edges: &[-1.0, 0.0, 1.0] };
            let counts = sums(model.as_ref(), &data(&[record]), &[cells]).remove(0).open_components_for_test();
            // Infinite predictors have a place in the table of residuals only if the residual is a number.
            let unusable = counts.iter().take(4).all(|count| *count == 0) && counts[4] == QueryKind::COUNT_UNIT as i64;
            assert!(unusable || record[2].is_infinite(), "{record:?}: {counts:?}");
        }
    }
}

#[test]
fn records_are_counted_between_edges() {
    let (model, count) = (model(), QueryKind::COUNT_UNIT as i64);
    let eta = |a: f64, b: f64| POINT[0] + POINT[1] * a + POINT[2] * b;
    // Residuals of -2, 0 and 1.5 sds.
    let records = [[eta(0.1, 0.2) - 0.4, 0.1, 0.2], [eta(0.0, 0.0), 0.0, 0.0], [eta(-0.5, 0.1) + 0.3, -0.5, 0.1]];
    let counts = |influence, edges: &[f64]| {
        let cells = Summand::Cells { at: &POINT, influence, edges };
        sums(model.as_ref(), &data(&records), &[cells])
            .remove(0)
            .open_components_for_test()
            .iter()
            .map(|x| x / count)
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(None, &[-1.0, 0.0, 1.0]), [1, 0, 1, 1, 0]);
    // Squared lengths, by the second predictor alone: 0.25, 0 and 6.25.
    let numbers = numbers([[0.0; 3], [0.0, 1.0, 0.0], [0.0; 3]]);
    assert_eq!(counts(Influence::new(&numbers, 4), &[0.1, 1.0]), [1, 1, 1, 0]);
}

#[test]
fn numbers_beyond_the_limits_are_no_influence() {
    let whole = numbers([[0.1; 3]; 3]);
    let with = |at: usize, value: f64| {
        let mut numbers = whole.clone();
        let at = if at < 100 { at } else { numbers.len() + 99 - at };
        numbers[at] = value;
        numbers
    };
    assert!(Influence::new(&whole, 4).is_some() && Influence::length(4) == whole.len());
    let entries = [2.0_f64.powi(101), 2.0_f64.powi(509), 1e308, f64::NAN, f64::INFINITY, 1e-100].map(|entry| with(0, entry));
    assert!(entries.iter().all(|numbers| Influence::new(numbers, 4).is_none()));
    assert!(Influence::new(&with(0, -Influence::MOST_ENTRY), 4).is_some());
    for numbers in [whole[1..].to_vec(), with(16, 0.1), with(100, 0.9), with(100, 17.0), with(101, 0.0), with(101, f64::NAN)] {
        assert!(Influence::new(&numbers, 4).is_none());
    }
    assert!((0..10).all(|k| Influence::weight(1.5, f64::from(k)) <= 1.0));
    assert_eq!((Influence::weight(1.5, 0.0), Influence::weight(1.5, 1.0), Influence::weight(1.5, 9.0)), (1.0, 1.0, 1.5 / 9.0));
}

/// A job that weights no record is asked no such query.
#[test]
fn a_job_without_weights_has_no_such_query() {
    use crate::query::{QueryError, QueryTerms};
    use conclave_privacy::accounting::PrivacyUnit;
    let text = "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
                predictors = [\"a\", \"b\"]\n[columns]\ny = { min = -1, max = 1 }\na = { min = -1, max = 1 }\n\
                b = { min = -1, max = 1 }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
    let weighted = text.replace("[columns]", "weights = \"always\"\n[columns]");
    let numbers = numbers([[0.1; 3]; 3]);
    let table = [numbers.as_slice(), &[0.5]].concat();
    for (text, asked) in [(text, false), (&weighted, true)] {
        let spec = JobSpec::parse(text).unwrap();
        let model = spec.build_model();
        for (kind, to) in [
            (QueryKind::Gradient { parameters: 4 }, &numbers),
            (QueryKind::Curvature { parameters: 4 }, &numbers),
            (QueryKind::Table { cells: 3 }, &table),
            (QueryKind::Table { cells: 3 }, &vec![0.5]),
        ] {
            let terms = QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&POINT, to));
            assert_eq!(terms.is_ok(), asked, "{kind}: {terms:?}");
            assert!(asked || matches!(terms, Err(QueryError::Vector(_) | QueryError::Kind(_))));
        }
    }
    for (from, to) in [
        ("algorithm = \"noisy-statistics\"", "algorithm = \"penalty\""),
        ("weights = \"always\"", "weights = \"always\"\npower = 0.5"),
        ("[privacy]", "[release]\ntable = true\n[privacy]"),
        ("kind = \"linear\"", "kind = \"poisson\""),
    ] {
        let error = JobSpec::parse(&weighted.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains("weights") || error.contains("outcome"), "{error}");
    }
}
