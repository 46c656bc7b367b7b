//! Tests of the bounded influence of a binary outcome: sensitivities by brute force of every form of information, and the expectation
//! under the model.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::job::JobSpec;
use crate::model::{Model, Summand, sums};
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::ModelData;
use conclave_privacy::pass::hold::DIAGONAL;
use proptest::prelude::*;

const PRODUCT_UNITS: f64 = 4_294_967_296.0;
const CLIP: f64 = 1.6;
const TRACE: f64 = 1.5;
const POINT: [f64; 3] = [-0.4, 1.1, -0.8];
type Rows = [[f64; 3]; 3];

fn model() -> Box<dyn Model> {
    JobSpec::parse(
        "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\nweights = \"always\"\n[columns]\ny = { binary = true }\na = { min = -1, max = 1 }\n\
         b = { min = -1, max = 1 }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n",
    )
    .unwrap()
    .build_model()
}

fn numbers(rows: Rows) -> Vec<f64> {
    rows.concat().into_iter().chain([0.0; 3]).chain([CLIP, TRACE]).collect()
}

/// Score, information, information half way to a point, and the score's variance, over one record.
fn released(rows: Rows, half_way: [f64; 3], [y, a, b]: [f64; 3]) -> [Vec<f64>; 4] {
    let (model, numbers) = (model(), numbers(rows));
    let with_point = [numbers.as_slice(), &half_way].concat();
    let influence = Influence::new(&numbers, 3).unwrap();
    let summands = [
        Summand::BoundedGradient { at: &POINT, influence },
        Summand::BoundedCurvature { at: &POINT, influence },
        Summand::BoundedCurvature { at: &POINT, influence: Influence::half_way(&with_point, 3).unwrap() },
        Summand::BoundedVariance { at: &POINT, influence: Influence::half_way(&with_point, 3).unwrap() },
    ];
    let data = ModelData { outcome: vec![y], predictors: vec![vec![a], vec![b]], ..ModelData::default() };
    let sums = sums(model.as_ref(), &data, &summands);
    let sums: Vec<Vec<f64>> =
        sums.into_iter().map(|sum| sum.open_components_for_test().into_iter().map(|x| x as f64).collect()).collect();
    sums.try_into().unwrap()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The trace of a released triangle, in its own units.
fn trace(triangle: &[f64]) -> f64 {
    [0, 3, 5].iter().map(|at| triangle[*at] / PRODUCT_UNITS / DIAGONAL).sum()
}

fn rows() -> impl Strategy<Value = Rows> {
    prop::array::uniform3(prop::array::uniform3(-8.0..8.0_f64))
}

fn point() -> impl Strategy<Value = [f64; 3]> {
    prop::array::uniform3(prop_oneof![-3.0..3.0_f64, Just(0.0), Just(1e8), Just(-40.0)])
}

fn record() -> impl Strategy<Value = [f64; 3]> {
    let value = || prop_oneof![-1.0..1.0_f64, Just(1.0), Just(-1.0), Just(1e150), Just(-3.0)];
    (prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64], value(), value()).prop_map(|(y, a, b)| [y, a, b])
}

fn fisher(at: &[f64; 3], a: f64, b: f64) -> (f64, f64) {
    let p = (1.0 + (-(at[0] + at[1] * a + at[2] * b)).exp()).recip();
    (p, p * (1.0 - p))
}

proptest! {
    /// Two records' scores are at most two lengths apart, and each form of information at most its unit, whatever frame, points and
    /// records are.
    #[test]
    fn no_record_moves_a_sum_by_more_than_is_charged(rows in rows(), to in point(), one in record(), other in record()) {
        let (one, other) = (released(rows, to, one), released(rows, to, other));
        prop_assert!(distance(&one[0], &other[0]) <= 2.0 * GRADIENT_UNITS as f64);
        for at in 1..4 {
            prop_assert!(distance(&one[at], &other[at]) <= PRODUCT_UNITS);
        }
    }

    /// Under the model the score of every row has expectation 0. The released variance times the weight is the expectation of its square.
    #[test]
    fn the_score_has_the_expectations_of_the_model(rows in rows(), a in -1.0..1.0_f64, b in -1.0..1.0_f64) {
        let (p, information) = fisher(&POINT, a, b);
        let [high, low] = [1.0, 0.0].map(|y| released(rows, POINT, [y, a, b]));
        let scale = CLIP / GRADIENT_UNITS as f64;
        for (high, low) in high[0].iter().zip(&low[0]) {
            let mean = scale * (p * high + (1.0 - p) * low);
            prop_assert!(mean.abs() < 5e-4, "{mean}");
        }
        let square = |score: &[f64]| score.iter().map(|x| scale * scale * x * x).sum::<f64>();
        let expected = p * square(&high[0]) + (1.0 - p) * square(&low[0]);
        let variance = Influence::MOST_HALF_WAY * TRACE * high[3][0] / PRODUCT_UNITS / DIAGONAL;
        let length: f64 = rows.iter().map(|row| information * (row[0] + row[1] * a + row[2] * b).powi(2)).sum();
        let weight = Influence::weight(TRACE, length);
        prop_assert!((expected - weight * variance).abs() < 2e-3, "{expected} {weight} {variance}");
    }

    /// The information half way has the weights of the query's point: with the two points equal it is the information, and else kappa
    /// times the ratio of the Fisher information, up to 1.3.
    #[test]
    fn the_information_half_way_keeps_the_weights(rows in rows(), by in prop::array::uniform3(-0.7..0.7_f64), a in -1.0..1.0_f64, b in -1.0..1.0_f64) {
        let to: [f64; 3] = std::array::from_fn(|j| POINT[j] + by[j]);
        let of = released(rows, to, [1.0, a, b]);
        let ((p, here), (_, there)) = (fisher(&POINT, a, b), fisher(&to, a, b));
        let kappa = here.sqrt() * here.sqrt().recip().min(CLIP / p.max(1.0 - p));
        let expected = trace(&of[1]) / kappa * (kappa * there / here).min(Influence::MOST_HALF_WAY) / Influence::MOST_HALF_WAY;
        prop_assert!((trace(&of[2]) - expected).abs() < 2e-3, "{} {expected}", trace(&of[2]));
        let same = released(rows, POINT, [1.0, a, b]);
        prop_assert!((trace(&same[2]) * Influence::MOST_HALF_WAY - trace(&same[1])).abs() < 2e-3);
    }
}

/// The charged distances are reached: the information by two records in different directions, of an even outcome at the query's point
/// and of a rare one half way; the score by a rare outcome of either kind.
#[test]
fn the_charged_distance_is_reached() {
    let reached =
        |one: &[f64], other: &[f64], most: f64| assert!(distance(one, other) > 0.999 * most, "{}", distance(one, other) / most);
    // Images longer than R, of records at whose linear predictor of 0 kappa is 1.
    let wide = [[0.0; 3], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]];
    let [one, other] = [[1.0, 0.4 / 1.1, 0.0], [1.0, 0.0, -0.5]].map(|record| released(wide, POINT, record));
    reached(&one[1], &other[1], PRODUCT_UNITS);
    // The images of two records of linear predictors about -1.8 along two axes; half way, at 0, kappa is at its limit of 1.3.
    let along = [[0.0; 3], [0.0, -8.0, -4.0], [0.0, 4.0, 8.0]];
    let [one, other] = [[1.0, -1.0, 0.5], [1.0, -0.5, 1.0]].map(|record| released(along, [0.0; 3], record));
    reached(&one[2], &other[2], PRODUCT_UNITS);
    // Two rare outcomes, each in a record's direction: of a probability of 1 / (1 + e^8) the residual is at its clip.
    let model = model();
    let lengths = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]].map(|[y, a, b]| {
        let numbers = numbers([[0.0, 65.0, 0.0], [0.0; 3], [0.0; 3]]);
        let summand = Summand::BoundedGradient { at: &[-8.0, 0.0, 0.0], influence: Influence::new(&numbers, 3).unwrap() };
        let data = ModelData { outcome: vec![y], predictors: vec![vec![a], vec![b]], ..ModelData::default() };
        let sum = sums(model.as_ref(), &data, &[summand]).remove(0);
        sum.open_components_for_test().into_iter().map(|x| x as f64).collect::<Vec<f64>>()
    });
    reached(&lengths[0], &lengths[1], 2.0 * GRADIENT_UNITS as f64);
}

#[test]
fn an_inert_record_adds_nothing() {
    let rows = [[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]];
    for record in [[f64::NAN, 0.1, 0.2], [1.0, f64::NAN, 0.2], [1.0, 0.1, f64::INFINITY]] {
        let sums = released(rows, [0.1; 3], record);
        assert!(sums.iter().flatten().all(|x| *x == 0.0), "{record:?}: {sums:?}");
    }
}

#[test]
fn a_point_half_way_has_moderate_coordinates() {
    let whole = [numbers([[0.1; 3]; 3]), vec![0.1; 3]].concat();
    assert!(Influence::half_way(&whole, 3).is_some() && Influence::new(&whole, 3).is_none());
    for (at, value) in [(0, f64::NAN), (1, f64::INFINITY), (2, 1e10), (0, 1e-100)] {
        let mut numbers = whole.clone();
        numbers[whole.len() - 3 + at] = value;
        assert!(Influence::half_way(&numbers, 3).is_none(), "{value}");
    }
    assert!(Influence::half_way(&whole[1..], 3).is_none() && Influence::half_way(&whole[..8], 3).is_none());
}

/// Each form has its price, and no gradient and no table has a second point.
#[test]
fn each_form_is_priced() {
    use crate::query::QueryTerms;
    use conclave_privacy::accounting::PrivacyUnit;
    use conclave_privacy::mechanism::QueryKind;
    let text = "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\nweights = \"always\"\n[columns]\ny = { binary = true }\na = { min = -1, max = 1 }\n\
         b = { min = -1, max = 1 }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
    let (spec, numbers) = (JobSpec::parse(text).unwrap(), numbers([[0.1; 3]; 3]));
    let with_point = [numbers.as_slice(), &POINT].concat();
    let (gradient, curvature) = (QueryKind::Gradient { parameters: 3 }, |parameters| QueryKind::Curvature { parameters });
    for (kind, to, asked) in [
        (gradient, &numbers, true),
        (gradient, &with_point, false),
        (curvature(3), &numbers, true),
        (curvature(3), &with_point, true),
        (curvature(1), &numbers, true),
        (curvature(1), &with_point, true),
        (curvature(2), &with_point, false),
        (curvature(2), &numbers, false),
        (QueryKind::Table { cells: 3 }, &[with_point.as_slice(), &[0.5]].concat(), false),
        (QueryKind::Table { cells: 3 }, &[numbers.as_slice(), &[0.5]].concat(), true),
    ] {
        let terms = QueryTerms::new(spec.build_model().as_ref(), &spec, PrivacyUnit::default(), kind, (&POINT, to));
        assert_eq!(terms.is_ok(), asked, "{kind} {}: {terms:?}", to.len());
        if let (Ok(terms), QueryKind::Curvature { .. }) = (terms, kind) {
            assert!(terms.summand(&POINT, to, terms.sensitivity()).is_ok());
        }
    }
    let never = JobSpec::parse(&text.replace("weights = \"always\"\n", "")).unwrap();
    for kind in [curvature(1), curvature(3)] {
        assert!(QueryTerms::new(never.build_model().as_ref(), &never, PrivacyUnit::default(), kind, (&POINT, &numbers)).is_err());
    }
}
