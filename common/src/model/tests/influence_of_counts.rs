//! Tests of the bounded influence of a count: sensitivities by brute force of every form, and the expectations under the model.
#![allow(clippy::unwrap_used)]

use super::super::slope_table::SlopeTable;
use super::*;
use crate::job::{JobSpec, Weights};
use crate::model::{Model, Summand, sums};
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::ModelData;
use conclave_privacy::pass::hold::DIAGONAL;
use proptest::prelude::*;

const PRODUCT_UNITS: f64 = 4_294_967_296.0;
const TRACE: f64 = 1.5;
const CLIP: f64 = 3.0;
const ALPHA: f64 = 0.7;
/// The last coordinate is the dispersion, which a Poisson law has not.
const POINT: [f64; 4] = [0.4, 0.6, -0.5, ALPHA];
const ENDS: [f64; 2] = [-3.0, 3.5];
/// The middle and half width of the counts' bounds.
const HALF: f64 = 500.0;

type Rows = [[f64; 3]; 3];

fn spec(kind: &str) -> JobSpec {
    let spec = JobSpec::parse(&format!(
        "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\n[columns]\ny = {{ min = 0, max = 1000 }}\na = {{ min = -1, max = 1 }}\n\
         b = {{ min = -1, max = 1 }}\n[privacy]\nepsilon = 1\ndelta = 1e-6\n"
    ));
    JobSpec { weights: Weights::Always, ..spec.unwrap() }
}

fn model(own: bool) -> Box<dyn Model> {
    spec(if own { "negative_binomial" } else { "poisson" }).build_model()
}

fn parameters(own: bool) -> usize {
    3 + usize::from(own)
}

/// The numbers of a query whose frame has these rows for the coefficients, without its table.
fn frame(own: bool, rows: Rows, clip: f64) -> Vec<f64> {
    let p = parameters(own);
    let entry = |at: usize| rows.get(at / p).and_then(|row| row.get(at % p)).copied().unwrap_or(0.0);
    (0..p * p).map(entry).chain(vec![0.0; p]).chain([clip, TRACE]).collect()
}

/// The numbers of a query about the dispersion.
fn frame_of_own(clip: f64) -> Vec<f64> {
    let mut numbers = frame(true, [[0.0; 3]; 3], clip);
    numbers[15] = 1.0;
    numbers[21] = 1.0;
    numbers
}

/// A table whose values are a function of the node, within their bounds.
fn table(ends: [f64; 2], of: impl Fn(f64) -> [f64; 2]) -> Vec<f64> {
    let node = |k: usize| ends[0] + (ends[1] - ends[0]) * k as f64 / (SlopeTable::NODES - 1) as f64;
    let values: Vec<[f64; 2]> = (0..SlopeTable::NODES).map(|k| of(node(k))).collect();
    ends.into_iter().chain(values.iter().map(|v| v[0])).chain(values.iter().map(|v| v[1])).collect()
}

/// A table of any shape: of one that fits no law, privacy is the same.
fn wild_table(clip: f64, seed: f64) -> Vec<f64> {
    table(ENDS, |eta| [clip * (seed + 37.0 * eta).sin(), (0.5 + 0.5 * (seed * eta + 11.0 * eta * eta).cos()).clamp(0.0, 1.0)])
}

/// The law of a count: its probabilities.
fn law(own: bool, eta: f64) -> Vec<f64> {
    let mean = eta.exp();
    let log = |y: f64| match own {
        false => y * eta - mean - libm::lgamma(y + 1.0),
        true => {
            let k = ALPHA.recip();
            libm::lgamma(y + k) - libm::lgamma(k) - libm::lgamma(y + 1.0)
                + k * (k / (k + mean)).ln()
                + y * (mean / (k + mean)).ln()
        }
    };
    (0..=1000).map(|y| log(f64::from(y)).exp()).collect()
}

/// The expectation of the clipped residual, and kappa.
fn expected(own: bool, eta: f64) -> [f64; 2] {
    let mean = eta.exp();
    let sd = (mean * (1.0 + if own { ALPHA } else { 0.0 } * mean)).sqrt();
    law(own, eta).iter().enumerate().fold([0.0; 2], |[a, kappa], (y, p)| {
        let u = (y as f64 - mean) / sd;
        [a + p * u.clamp(-CLIP, CLIP), kappa + p * u * u.clamp(-CLIP, CLIP)]
    })
}

fn data([y, a, b]: [f64; 3]) -> ModelData {
    ModelData { outcome: vec![y / HALF - 1.0], predictors: vec![vec![a], vec![b]], ..ModelData::default() }
}

fn open(own: bool, summands: &[Summand<'_>], record: [f64; 3]) -> Vec<Vec<f64>> {
    let opened = sums(model(own).as_ref(), &data(record), summands).into_iter();
    opened.map(|sum| sum.open_components_for_test().into_iter().map(|x| x as f64).collect()).collect()
}

/// The score, the information at the point and the one half way to another one of one record.
fn released(own: bool, (rows, table): (Rows, &[f64]), to: [f64; 3], record: [f64; 3]) -> [Vec<f64>; 3] {
    let p = parameters(own);
    let numbers = [frame(own, rows, CLIP), table.to_vec()].concat();
    let with_point = [numbers.as_slice(), &to, &POINT[3..p]].concat();
    let (at, influence) = (&POINT[..p], Influence::new(&numbers, p).unwrap());
    let summands = [
        Summand::BoundedGradient { at, influence },
        Summand::BoundedCurvature { at, influence },
        Summand::BoundedCurvature { at, influence: Influence::half_way(&with_point, p).unwrap() },
    ];
    open(own, &summands, record).try_into().unwrap()
}

/// The slope in the logarithm of the dispersion and its kappa, of one record.
fn of_own(table: &[f64], clip: f64, record: [f64; 3]) -> [f64; 2] {
    let numbers = [frame_of_own(clip), table.to_vec()].concat();
    let (at, influence) = (&POINT, Influence::new(&numbers, 4).unwrap());
    assert!(influence.is_of_own());
    let opened = open(true, &[Summand::BoundedGradient { at, influence }, Summand::BoundedVariance { at, influence }], record);
    assert!(opened[0][..3].iter().all(|x| *x == 0.0), "{opened:?}");
    [opened[0][3], opened[1][0]]
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

fn rows() -> impl Strategy<Value = Rows> {
    prop::array::uniform3(prop::array::uniform3(-8.0..8.0_f64))
}

/// Rows that cut no score: an entry times a record's slope is at most 4.
fn moderate_rows() -> impl Strategy<Value = Rows> {
    prop::array::uniform3(prop::array::uniform3(-2.0..2.0_f64))
}

fn record() -> impl Strategy<Value = [f64; 3]> {
    let value = || prop_oneof![-1.0..1.0_f64, Just(1.0), Just(-1.0), Just(1e150), Just(-3.0), Just(f64::NAN)];
    let count = prop_oneof![0.0..30.0_f64, Just(0.0), Just(1000.0), Just(1e150), Just(-1e9), Just(f64::NAN)];
    (count, value(), value()).prop_map(|(y, a, b)| [y, a, b])
}

fn point() -> impl Strategy<Value = [f64; 3]> {
    prop::array::uniform3(prop_oneof![-3.0..3.0_f64, Just(0.0), Just(1e8), Just(-40.0)])
}

proptest! {
    /// Two records' scores are at most two lengths apart, and each form of information at most its unit, whatever frame, table, points and
    /// records are.
    #[test]
    fn no_record_moves_a_sum_by_more_than_is_charged(
        own in any::<bool>(), rows in rows(), seed in -9.0..9.0_f64, to in point(), one in record(), other in record()
    ) {
        let table = wild_table(CLIP, seed);
        let (one, other) = (released(own, (rows, &table), to, one), released(own, (rows, &table), to, other));
        prop_assert!(distance(&one[0], &other[0]) <= 2.0 * GRADIENT_UNITS as f64);
        prop_assert!(distance(&one[1], &other[1]) <= PRODUCT_UNITS && distance(&one[2], &other[2]) <= PRODUCT_UNITS);
    }

    /// The same of the slope in the dispersion and of its kappa.
    #[test]
    fn no_record_moves_the_dispersion_by_more(
        clip in 0.1..40.0_f64, seed in -9.0..9.0_f64, one in record(), other in record()
    ) {
        let table = wild_table(clip, seed);
        let (one, other) = (of_own(&table, clip, one), of_own(&table, clip, other));
        prop_assert!((one[0] - other[0]).abs() <= 2.0 * GRADIENT_UNITS as f64);
        prop_assert!((one[1] - other[1]).abs() <= PRODUCT_UNITS * DIAGONAL);
    }

    /// Under the model the score of every row has expectation 0, up to the interpolation of the table.
    #[test]
    fn the_score_has_expectation_0(own in any::<bool>(), rows in moderate_rows(), a in -1.0..1.0_f64, b in -1.0..1.0_f64) {
        let table = table(ENDS, |eta| expected(own, eta));
        let eta = POINT[0] + POINT[1] * a + POINT[2] * b;
        let (limit, mut mean) = (Influence::new(&[frame(own, rows, CLIP), table.clone()].concat(), parameters(own)).unwrap().limit(), [0.0; 3]);
        for (y, p) in law(own, eta).into_iter().enumerate().take(80) {
            let score = released(own, (rows, &table), [0.0; 3], [y as f64, a, b]);
            mean.iter_mut().zip(&score[0]).for_each(|(mean, x)| *mean += p * limit * x / GRADIENT_UNITS as f64);
        }
        prop_assert!(mean.iter().all(|mean| mean.abs() < 1e-3), "{mean:?}");
    }

    /// The information half way has the weights of the query's point: kappa times the ratio of the means, up to 1.3.
    #[test]
    fn the_information_half_way_keeps_the_weights(rows in rows(), by in prop::array::uniform3(-0.5..0.5_f64), a in -1.0..1.0_f64, b in -1.0..1.0_f64) {
        let table = table(ENDS, |eta| expected(false, eta));
        let to: [f64; 3] = std::array::from_fn(|j| POINT[j] + by[j]);
        let of = released(false, (rows, &table), to, [1.0, a, b]);
        let trace = |triangle: &[f64]| [0, 3, 5].iter().map(|at| triangle[*at] / PRODUCT_UNITS / DIAGONAL).sum::<f64>();
        let eta = POINT[0] + POINT[1] * a + POINT[2] * b;
        let ([_, kappa], moved) = (expected(false, eta), by[0] + by[1] * a + by[2] * b);
        let ratio = (kappa * moved.exp()).min(Influence::MOST_HALF_WAY) / Influence::MOST_HALF_WAY;
        prop_assert!((trace(&of[2]) - trace(&of[1]) / kappa * ratio).abs() < 3e-3, "{} {}", trace(&of[2]), trace(&of[1]));
    }
}

/// The charged distances are reached.
#[test]
fn the_charged_distance_is_reached() {
    let reached = |distance: f64, most: f64| assert!(distance > 0.999 * most, "{}", distance / most);
    let edge = table(ENDS, |_| [-CLIP, 1.0]);
    for own in [false, true] {
        let wide = [[0.0; 3], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]];
        // Information of two records in different directions; half way, at the limit of 1.3.
        let of = |a: f64, b: f64| released(own, (wide, &edge), [2.0, 0.0, 0.0], [1.0, a, b]);
        let (one, other) = (of(1.0, 0.0), of(0.0, -1.0));
        reached(distance(&one[1], &other[1]), PRODUCT_UNITS);
        reached(distance(&one[2], &other[2]), PRODUCT_UNITS);
    }
    // The score: one row, two records of opposite residuals with the centre at either limit.
    let scores = [[1000.0, 1.0, 0.0], [1000.0, -1.0, 0.0]].map(|record| {
        let numbers = [frame(false, [[0.0, 1.2, 0.0], [0.0; 3], [0.0; 3]], CLIP), table(ENDS, |_| [-CLIP, 1.0])].concat();
        let summand = Summand::BoundedGradient { at: &[0.0; 3], influence: Influence::new(&numbers, 3).unwrap() };
        open(false, &[summand], record).remove(0)
    });
    reached(distance(&scores[0], &scores[1]), 2.0 * GRADIENT_UNITS as f64);
    // The dispersion: counts of 0 and of 1000 are beyond the clip, with the centre at either limit; and kappas of 0 and 1.
    let edge = table(ENDS, |eta| if eta < 0.4 { [-0.05, 1.0] } else { [0.05, 0.0] });
    let [high, low] = [[1000.0, -1.0, 0.0], [1.0, 1.0, 0.0]].map(|record| of_own(&edge, 0.05, record));
    reached(high[0] - low[0], 2.0 * GRADIENT_UNITS as f64);
    // The entry is held as one on the diagonal.
    reached(high[1] - low[1], PRODUCT_UNITS * DIAGONAL);
}

#[test]
fn an_inert_record_adds_nothing() {
    let (rows, table) = ([[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]], table(ENDS, |eta| expected(true, eta)));
    for record in [[f64::NAN, 0.1, 0.2], [1.0, f64::NAN, 0.2], [1.0, 0.1, f64::INFINITY]] {
        let sums = released(true, (rows, &table), [0.1; 3], record);
        assert!(sums.iter().flatten().all(|x| *x == 0.0), "{record:?}: {sums:?}");
        assert_eq!(of_own(&table, 1.0, record), [0.0; 2], "{record:?}");
    }
}

/// Each form has its price, with a table and not without.
#[test]
fn each_form_is_priced_with_its_table() {
    use crate::query::QueryTerms;
    use conclave_privacy::accounting::PrivacyUnit;
    use conclave_privacy::mechanism::QueryKind;
    let (whole, numbers) = (table(ENDS, |eta| expected(true, eta)), frame(true, [[0.1; 3]; 3], CLIP));
    let with = |more: &[&[f64]]| [&[numbers.as_slice()], more].concat().concat();
    let own = [frame_of_own(1.0), table(ENDS, |_| [0.5, 0.5])].concat();
    let (gradient, curvature) = (QueryKind::Gradient { parameters: 4 }, |parameters| QueryKind::Curvature { parameters });
    let (spec, cells) = (spec("negative_binomial"), QueryKind::Table { cells: 3 });
    for (kind, to, asked) in [
        (gradient, with(&[]), false),
        (gradient, with(&[&whole]), true),
        (gradient, own.clone(), true),
        (gradient, with(&[&whole, &POINT]), false),
        (curvature(4), with(&[]), false),
        (curvature(4), with(&[&POINT]), false),
        (curvature(4), with(&[&whole]), true),
        (curvature(4), with(&[&whole, &POINT]), true),
        (curvature(1), own, true),
        (curvature(2), with(&[&whole]), false),
        (cells, with(&[&[0.5]]), false),
        (cells, with(&[&whole, &[0.5]]), true),
        (cells, vec![0.5], true),
    ] {
        let terms = QueryTerms::new(spec.build_model().as_ref(), &spec, PrivacyUnit::default(), kind, (&POINT, &to));
        assert_eq!(terms.is_ok(), asked, "{kind} {}: {terms:?}", to.len());
        if let Ok(terms) = terms {
            assert!(terms.summand(&POINT, &to, terms.sensitivity()).is_ok());
        }
    }
    let never = JobSpec { weights: Weights::Never, ..spec };
    let terms =
        QueryTerms::new(never.build_model().as_ref(), &never, PrivacyUnit::default(), gradient, (&POINT, &with(&[&whole])));
    assert!(terms.is_err());
}

#[test]
fn a_table_has_its_bounds() {
    let whole = table(ENDS, |eta| expected(false, eta));
    assert!(SlopeTable::new(&whole, CLIP).is_some() && SlopeTable::new(&whole[1..], CLIP).is_none());
    for (at, value) in [
        (0, -31.0),
        (0, 3.5),
        (1, 31.0),
        (1, f64::NAN),
        (2, 3.01),
        (9, -3.01),
        (9, f64::NAN),
        (9, 1e-100),
        (258, 1.01),
        (300, -0.01),
        (513, f64::NAN),
    ] {
        let mut numbers = whole.clone();
        numbers[at] = value;
        assert!(SlopeTable::new(&numbers, CLIP).is_none(), "{at} {value}");
    }
}

/// The tables from which tails and exposures are read. Neighbours differ by one record in each of two cells: the charged root of 2.
/// Squared lengths in a frame of the intercept alone are informations; and where every mean is the least one, a count has its own
/// cell whatever its exposure is.
#[test]
fn tables_tell_tails_linear_predictors_and_counts_apart() {
    let spec = JobSpec::parse(
        "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"poisson\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\nexposure = \"e\"\nexposure_fixed = true\nweights = \"always\"\n[columns]\n\
         y = { min = 0, max = 1000 }\na = { min = -1, max = 1 }\nb = { min = -1, max = 1 }\ne = { min = 1, max = 20 }\n\
         [privacy]\nepsilon = 1\ndelta = 1e-6\n",
    );
    let (model, unit) = (spec.unwrap().build_model(), conclave_privacy::mechanism::QueryKind::COUNT_UNIT as f64);
    let counts = |at: &[f64], influence, edges: &[f64], ([y, a, b], exposure): ([f64; 3], f64)| -> Vec<f64> {
        let data = ModelData { auxiliary: vec![vec![f64::ln(exposure)]], ..data([y, a, b]) };
        let cells = Summand::Cells { at, influence, edges };
        sums(model.as_ref(), &data, &[cells]).remove(0).open_components_for_test().iter().map(|x| *x as f64 / unit).collect()
    };
    let place = |counts: &[f64]| counts.iter().position(|count| *count == 1.0).unwrap();
    // The mean is e^(0.4 + 0.6 - 0.5) times the exposure.
    let (at, edges) = (&POINT[..3], [-6.0, -3.0, 3.0, 6.0]);
    let tail = |y: f64, exposure: f64| counts(at, None, &edges, ([y, 1.0, 1.0], exposure));
    let mean = 10.0 * f64::exp(0.5);
    assert_eq!([0.0, 17.0, (mean + 4.0 * mean.sqrt()).round(), 1000.0].map(|y| place(&tail(y, 10.0))), [1, 2, 3, 4]);
    assert_eq!(distance(&tail(0.0, 10.0), &tail(1000.0, 10.0)), f64::sqrt(2.0));
    let numbers = [frame(false, [[1.0, 0.0, 0.0], [0.0; 3], [0.0; 3]], CLIP), table(ENDS, |_| [0.0; 2])].concat();
    let informations = [0.9, 1.1, 1.9].map(|of| of * mean);
    let length = |exposure: f64| place(&counts(at, Influence::new(&numbers, 3), &informations, ([3.0, 1.0, 1.0], exposure)));
    assert_eq!([8.0, 10.0, 15.0, 20.0].map(length), [0, 1, 2, 3]);
    let least = [-SlopeTable::FARTHEST - 1.0 - f64::ln(20.0), 0.0, 0.0];
    let edges: Vec<f64> = [0.5, 1.5, 3.5].iter().map(|y| y * f64::exp(0.5 * SlopeTable::FARTHEST)).collect();
    for exposure in [1.0, 7.0, 20.0] {
        let cell = |y: f64| place(&counts(&least, None, &edges, ([y, 0.3, -1.0], exposure)));
        assert_eq!([0.0, 1.0, 2.0, 3.0, 4.0, 900.0].map(cell), [0, 1, 2, 2, 3, 3]);
    }
}
