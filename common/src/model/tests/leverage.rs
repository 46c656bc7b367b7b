//! Tests of leverage weights: sensitivities by brute force in frames of every condition, and the bits of gradient and remainder.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::job::JobSpec;
use crate::model::{Remainder, Summand, sums};
use crate::query::QueryTerms;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{GRADIENT_UNITS, QueryKind, STEP, Sensitivity};
use conclave_privacy::pass::{Block, Blocks, CachedBlocks, GRADIENT_SCALE, ModelData, WeightCache};
use proptest::prelude::*;

pub(in crate::model) type Rows = [[f64; 3]; 3];
pub(in crate::model) type Record = [f64; 3];
pub(in crate::model) const TRACE: f64 = 1.5;

fn job(weights: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"hmc\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\nweights = \"{weights}\"\n[columns]\ny = {{ binary = true }}\na = {{ min = -1, max = 1 }}\n\
         b = {{ min = -1, max = 1 }}\n[privacy]\nepsilon = 1\ndelta = 1e-6\n"
    ))
    .unwrap()
}

fn data(records: &[Record]) -> ModelData {
    let column = |j: usize| records.iter().map(|record| record[j]).collect::<Vec<f64>>();
    ModelData { outcome: column(0), predictors: vec![column(1), column(2)], ..ModelData::default() }
}

/// The numbers of a gradient query.
fn numbers(rows: Rows) -> Vec<f64> {
    rows.concat().into_iter().map(plain).chain([0.0; 3]).chain([TRACE]).collect()
}

fn plain(x: f64) -> f64 {
    if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x }
}

/// The numbers of the remainder's query: the inner product of the step with the vector F x is `weights . vector`.
fn with_weights(numbers: &[f64], [from, to]: [&[f64; 3]; 2]) -> Vec<f64> {
    let rows = &numbers[..9];
    let step: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
    let weights = solve(3, |i, j| rows[j * 3 + i], &step).unwrap_or_else(|| vec![0.0; 3]);
    let weights = weights.into_iter().map(|w| plain(w / GRADIENT_SCALE));
    numbers[..12].iter().copied().chain(weights).chain([0.0, TRACE]).collect()
}

/// The weight of a record, and its image in F.
fn weight(numbers: &[f64], [_, a, b]: Record) -> (f64, [f64; 3]) {
    let leverage = Leverage::new(numbers, 3).unwrap();
    let image: [f64; 3] = std::array::from_fn(|k| {
        let row = leverage.frame().row(k);
        row[0] + row[1] * a + row[2] * b
    });
    let square: f64 = image.iter().map(|x| (leverage.widening * x).powi(2)).sum();
    (Influence::weight(TRACE, square), image)
}

fn logistic(eta: f64) -> f64 {
    (1.0 + (-eta).exp()).recip()
}

fn eta(at: &[f64; 3], [_, a, b]: Record) -> f64 {
    at[0] + at[1] * a + at[2] * b
}

fn gradient(numbers: &[f64], at: &[f64; 3], record: Record) -> Vec<f64> {
    let summand = Summand::LeverageGradient { at, leverage: Leverage::new(numbers, 3).unwrap() };
    let sum = sums(job("always").build_model().as_ref(), &data(&[record]), &[summand]).remove(0);
    sum.open_components_for_test().into_iter().map(|x| x as f64).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// A frame: of any rows, of two rows that nearly agree, of rank 1, or of one long axis.
pub(in crate::model) fn rows() -> impl Strategy<Value = Rows> {
    let any = || prop::array::uniform3(prop::array::uniform3(-1.0..1.0_f64));
    let of_size = (any(), prop_oneof![Just(7.9), Just(2.0), Just(0.3), Just(1e-6)])
        .prop_map(|(rows, size)| rows.map(|row| row.map(|x| size * x)));
    let nearly_equal =
        (any(), 1e-12..1e-2_f64).prop_map(|(rows, by)| [rows[0], std::array::from_fn(|j| rows[0][j] + by * rows[1][j]), rows[2]]);
    let of_rank_1 = (any(), -4.0..4.0_f64).prop_map(|(rows, by)| [rows[0], rows[0].map(|x| by * x), [0.0; 3]]);
    let long = any().prop_map(|rows| [rows[0].map(|x| 7.9 * x), rows[1].map(|x| 1e-4 * x), rows[2].map(|x| 1e-8 * x)]);
    prop_oneof![4 => of_size, 2 => nearly_equal, 1 => of_rank_1, 1 => long]
}

pub(in crate::model) fn point() -> impl Strategy<Value = [f64; 3]> {
    prop::array::uniform3(-2.0..2.0_f64)
}

/// A record within its bounds, or at a corner of them.
fn inside() -> impl Strategy<Value = Record> {
    let value = || prop_oneof![-1.0..1.0_f64, Just(1.0), Just(-1.0), Just(0.0)];
    (prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64], value(), value()).prop_map(|(y, a, b)| [y, a, b])
}

/// A record anywhere.
fn anywhere() -> impl Strategy<Value = Record> {
    let value = || prop_oneof![Just(1e150), Just(-3.0), Just(1e300), Just(f64::NAN), Just(f64::INFINITY)];
    prop_oneof![3 => inside(), 1 => (inside(), value()).prop_map(|([y, a, _], b)| [y, a, b]),
        1 => (inside(), value()).prop_map(|([_, a, b], y)| [y, a, b])]
}

fn remainder_terms(spec: &JobSpec, points: &[f64], numbers: &[f64]) -> QueryTerms {
    let (model, kind) = (spec.build_model(), QueryKind::Remainder { parameters: 3 });
    QueryTerms::new(model.as_ref(), spec, PrivacyUnit::default(), kind, (points, numbers)).unwrap()
}

/// The remainder of one record without a clamp, in lattice units.
fn remainder(points: &[f64], numbers: &[f64], record: Record) -> i64 {
    let (model, step) = (job("always").build_model(), Remainder::new(points, numbers, 3).unwrap());
    let scores = model.scores().unwrap();
    scores.remainder_sum(&Block::lent(&data(&[record])), &step, Sensitivity::from_units(1 << 45).unwrap()).open_for_test()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Two records' gradients are at most two lengths apart, wherever the records are. Within the bounds none is shortened: each is
    /// the weight times the slope times F x.
    #[test]
    fn no_gradient_exceeds_its_charge_and_none_is_shortened(rows in rows(), at in point(), one in anywhere(), other in anywhere(), within in inside()) {
        let numbers = numbers(rows);
        prop_assert!(distance(&gradient(&numbers, &at, one), &gradient(&numbers, &at, other)) <= 2.0 * GRADIENT_UNITS as f64);
        let (w, image) = weight(&numbers, within);
        let expected: Vec<f64> =
            image.iter().map(|x| GRADIENT_SCALE * w * (within[0] - logistic(eta(&at, within))) * x).collect();
        let found = gradient(&numbers, &at, within);
        // A slope is an integer of about 2^20.
        prop_assert!(distance(&found, &expected) <= 2e-6 * GRADIENT_UNITS as f64, "{found:?} {expected:?}");
    }

    /// No record's remainder exceeds the bound that prices it, and gradient and remainder add up to the weighted log ratio. The reverse
    /// step negates it.
    #[test]
    fn no_remainder_exceeds_its_bound(
        rows in rows(), at in point(), by in prop::array::uniform2(point()), size in prop_oneof![Just(1e-3), Just(0.05), Just(0.5)],
        record in inside(), far in anywhere(),
    ) {
        let [from, to]: [[f64; 3]; 2] =
            [(-1.0, by[0]), (1.0, by[1])].map(|(sign, by)| std::array::from_fn(|j| at[j] + sign * size * by[j]));
        let (points, back) = ([from, at, to].concat(), [to, at, from].concat());
        let (numbers, turned) = (with_weights(&numbers(rows), [&from, &to]), with_weights(&numbers(rows), [&to, &from]));
        let spec = job("always");
        let terms = remainder_terms(&spec, &points, &numbers);
        prop_assert_eq!(terms.sensitivity(), remainder_terms(&spec, &back, &turned).sensitivity());
        let found = remainder(&points, &numbers, record);
        prop_assert_eq!(found, -remainder(&back, &turned, record));
        // Only for a frame of full rank the weights are those of the step.
        let leverage = Leverage::new(&numbers[..12].iter().copied().chain([TRACE]).collect::<Vec<_>>(), 3).is_some();
        let step: Vec<f64> = from.iter().zip(&to).map(|(from, to)| to - from).collect();
        let made: Vec<f64> = (0..3).map(|j| (0..3).map(|k| rows[k][j] * numbers[12 + k] * GRADIENT_SCALE).sum()).collect();
        if leverage && distance(&step, &made) <= 1e-9 * size {
            prop_assert!(found.unsigned_abs() <= terms.sensitivity().units(), "{found} beyond {}", terms.sensitivity().units());
            let units: f64 = gradient(&[&numbers[..12], &[TRACE]].concat(), &at, record).iter().zip(&numbers[12..]).map(|(g, w)| g * w).sum();
            let log = |at: &[f64; 3]| record[0] * eta(at, record) - (1.0 + eta(at, record).exp()).ln();
            let expected = weight(&[&numbers[..12], &[TRACE]].concat(), record).0 * (log(&to) - log(&from)) - units;
            let rounded: f64 = numbers[12..15].iter().map(|w| w.abs()).sum();
            prop_assert!((found as f64 * STEP - expected).abs() <= STEP + rounded + 1e-12, "{found} {expected}");
        }
        // The released number holds to its charge wherever the record is.
        let summand = terms.summand(&points, &numbers, terms.sensitivity()).unwrap();
        let sum = sums(spec.build_model().as_ref(), &data(&[far]), &[summand]).remove(0).open_for_test();
        prop_assert!(sum.unsigned_abs() <= terms.sensitivity().units());
    }

    /// The bound on a weighted movement holds for every record, step and frame, and is the same for the reverse step.
    #[test]
    fn a_movement_has_its_bounds(rows in rows(), step in point(), record in inside()) {
        let numbers = numbers(rows);
        let sup = |e: &[f64]| (e[0] - e[1].abs() - e[2].abs(), e[0] + e[1].abs() + e[2].abs());
        let leverage = Leverage::new(&numbers, 3).unwrap();
        let most = leverage.movement(&step, sup);
        let (w, _) = weight(&numbers, record);
        let moved = eta(&step, record).abs();
        prop_assert!(w.sqrt() * moved <= most, "{w} {moved} {most}");
        prop_assert_eq!(leverage.movement(&step.map(|x| -x), sup).to_bits(), most.to_bits());
    }
}

/// The charged distances are reached by .999.
#[test]
fn the_charged_distance_is_reached() {
    // The images of all records but those at the centre lie outside the ball, and the outcome is nearly certain.
    let wide = numbers([[0.0; 3], [0.0, 1.3, 0.0], [0.0, 0.0, 1.3]]);
    let [one, other] = [[1.0, 0.9, 0.0], [1.0, -0.9, 0.0]].map(|record| gradient(&wide, &[-12.0, 0.0, 0.0], record));
    assert!(distance(&one, &other) > 0.999 * 2.0 * GRADIENT_UNITS as f64, "{}", distance(&one, &other));
    // The movement of a record with w |v|² = R along the step, all of it after the midpoint.
    let (from, to) = ([0.0; 3], [0.0, 0.05, 0.0]);
    let narrow = with_weights(&numbers([[0.01, 0.0, 0.0], [0.0, 1.9, 0.0], [0.0, 0.0, 0.01]]), [&from, &to]);
    let points = [from, from, to].concat();
    let terms = remainder_terms(&job("always"), &points, &narrow);
    let most = (0..=1000).map(|k| remainder(&points, &narrow, [1.0, f64::from(k) / 1000.0, -1.0]).unsigned_abs()).max().unwrap();
    let part = most as f64 / terms.sensitivity().units() as f64;
    assert!((0.999..=1.0).contains(&part), "{part}");
    let plain = JobSpec { weights: crate::job::Weights::Never, ..job("always") };
    let unweighted = remainder_terms(&plain, &points, &narrow[..narrow.len() - 1]);
    assert!(unweighted.sensitivity().units() as f64 > 1.5 * terms.sensitivity().units() as f64);
}

#[test]
fn an_inert_record_adds_nothing() {
    let numbers = numbers([[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]]);
    let (from, at, to) = ([0.1; 3], [0.15; 3], [0.2; 3]);
    let along = with_weights(&numbers, [&from, &to]);
    for record in [[f64::NAN, 0.1, 0.2], [1.0, f64::NAN, 0.2], [1.0, 0.1, f64::INFINITY]] {
        assert!(gradient(&numbers, &at, record).iter().all(|x| *x == 0.0), "{record:?}");
        assert_eq!(remainder(&[from, at, to].concat(), &along, record), 0, "{record:?}");
    }
}

/// A remainder has the same bits where the weights of its gradient are cached, on every processor; the weights of a plain gradient in
/// the same frame, and of one of bounded influence, are not taken for them.
#[test]
fn no_bit_depends_on_vectors_or_on_cached_weights() {
    let spec = job("always");
    let (model, numbers) = (spec.build_model(), numbers([[1.2, 0.1, 0.0], [0.0, 2.5, 0.1], [0.3, 0.0, 3.5]]));
    let scores = model.scores().unwrap();
    let value = |i: u32, step: f64| 2.0 * (f64::from(i) * step).fract() - 1.0;
    let mut records: Vec<Record> = (0..1000).map(|i| [f64::from(i % 2), value(i, 0.618), value(i, 0.382)]).collect();
    (records[7][1], records[8][2], records[9][0]) = (f64::NAN, 1e300, f64::INFINITY);
    let data = data(&records);
    let (from, at, to) = ([0.1, -0.3, 0.2], [0.15, -0.2, 0.25], [0.2, -0.1, 0.31]);
    let (points, along) = ([from, at, to].concat(), with_weights(&numbers, [&from, &to]));
    let step = Remainder::new(&points, &along, 3).unwrap();
    let clamp = Sensitivity::from_units(1 << 40).unwrap();
    let remainder = |block: &Block<'_>| scores.remainder_sum(block, &step, clamp).open_for_test();
    let expected = remainder(&Block::lent(&data));
    assert_eq!(remainder(&Block::lent(&data).on(pulp::Arch::Scalar)), expected);
    let cache = WeightCache::new((data.records(), data.count()), 3);
    let blocks = CachedBlocks::new(&data, &cache);
    let block = blocks.block(0).unwrap();
    let leverage = Leverage::new(&numbers, 3).unwrap();
    let bounded = [&numbers[..12], &[2.0, TRACE]].concat();
    let influence = Influence::new(&bounded, 3).unwrap();
    let _ = scores.gradient_sum(&block, &at, leverage.frame());
    let _ = crate::model::block_sums(model.as_ref(), &block, &[Summand::BoundedGradient { at: &at, influence }]);
    assert_eq!((remainder(&block), cache.gradients()), (expected, 2));
    let _ = crate::model::block_sums(model.as_ref(), &block, &[Summand::LeverageGradient { at: &at, leverage }]);
    assert_eq!((remainder(&block), cache.gradients()), (expected, 3));
}

/// Only a job that weights its chains asks such queries, and only with moderate numbers.
#[test]
fn a_query_must_fit() {
    let numbers = numbers([[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]]);
    let at = [0.1; 3];
    let asks = |spec: &JobSpec, numbers: &[f64]| {
        let (model, kind) = (spec.build_model(), QueryKind::Gradient { parameters: 3 });
        QueryTerms::new(model.as_ref(), spec, PrivacyUnit::default(), kind, (&at, numbers)).is_ok()
    };
    assert!(asks(&job("always"), &numbers) && asks(&job("auto"), &numbers) && !asks(&job("never"), &numbers));
    for (place, value) in [(0, 8.0), (0, f64::NAN), (3, 1e-100), (9, 0.1), (12, 0.9), (12, 17.0)] {
        let mut other = numbers.clone();
        other[place] = value;
        assert!(!asks(&job("always"), &other), "{place} {value}");
    }
    let along = with_weights(&numbers, [&at, &at]);
    let (spec, points) = (job("never"), [at, at, at].concat());
    let (model, kind) = (spec.build_model(), QueryKind::Remainder { parameters: 3 });
    let ask = |numbers: &[f64]| QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&points, numbers)).is_ok();
    assert!(ask(&along[..along.len() - 1]) && !ask(&along));
}

/// Chains of other models, tests and algorithms weight no record.
#[test]
fn other_jobs_are_refused_by_name() {
    let text = |algorithm: &str, kind: &str, outcome: &str, more: &str| {
        format!(
            "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = {kind}\noutcome = \"y\"\n\
             predictors = [\"a\"]\nweights = \"auto\"\n[columns]\ny = {{ {outcome} }}\na = {{ min = -1, max = 1 }}\n\
             [privacy]\nepsilon = 1\ndelta = 1e-6\n{more}"
        )
    };
    for (algorithm, kind, outcome, more) in [
        ("penalty", "\"logistic\"", "binary = true", ""),
        ("sgld", "\"logistic\"", "binary = true", ""),
        ("hmc", "\"linear\"\nsd = 1.0", "min = -4, max = 4", ""),
        ("hmc", "\"poisson\"", "min = 0, max = 9", ""),
        ("hmc", "\"logistic\"\npower = 0.5", "binary = true", ""),
        ("hmc", "\"logistic\"", "binary = true", "[sampler]\nfriction = 0\n"),
    ] {
        let refused = JobSpec::parse(&text(algorithm, kind, outcome, more)).unwrap_err().to_string();
        assert!(refused.contains("weights"), "{refused}");
    }
    assert!(JobSpec::parse(&text("hmc", "\"logistic\"", "binary = true", "[sampler]\ntest = \"none\"\n")).is_ok());
}
