//! Tests of weighted log ratios: sensitivities by brute force in frames of every condition, and the bits of the weights.
#![allow(clippy::unwrap_used)]

use crate::job::JobSpec;
use crate::model::leverage::tests::{Record, Rows, TRACE, point, rows};
use crate::model::{Influence, Leverage, Remainder, block_sums, sums};
use crate::parameter::LEAST_MAGNITUDE;
use crate::query::{QueryError, QueryTerms};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{QueryKind, STEP, Sensitivity};
use conclave_privacy::pass::{Block, ModelData};
use proptest::prelude::*;

fn text(weights: &str, sampler: &str) -> String {
    format!(
        "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"a\", \"b\"]\nweights = \"{weights}\"\n[columns]\ny = {{ binary = true }}\na = {{ min = -1, max = 1 }}\n\
         b = {{ min = -1, max = 1 }}\n[sampler]\n{sampler}\n[privacy]\nepsilon = 1\ndelta = 1e-6\n"
    )
}

fn job(weights: &str) -> JobSpec {
    JobSpec::parse(&text(weights, "locate = \"gradients\"")).unwrap()
}

fn data(records: &[Record]) -> ModelData {
    let column = |j: usize| records.iter().map(|record| record[j]).collect::<Vec<f64>>();
    ModelData { outcome: column(0), predictors: vec![column(1), column(2)], ..ModelData::default() }
}

/// The second part of a query: theta' and the weights.
fn to(theta: &[f64; 3], rows: Rows) -> Vec<f64> {
    let plain = |x: f64| if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x };
    theta.iter().copied().chain(rows.concat().into_iter().map(plain)).chain([0.0; 3]).chain([TRACE]).collect()
}

fn terms(unit: PrivacyUnit, from: &[f64], to: &[f64]) -> QueryTerms {
    let spec = job("always");
    QueryTerms::new(spec.build_model().as_ref(), &spec, unit, QueryKind::Ratio, (from, to)).unwrap()
}

/// The integers of one record: under the charge, and under a clamp that never cuts.
fn contribution(terms: &QueryTerms, (from, to): (&[f64], &[f64]), record: Record) -> [i64; 2] {
    let charged = [terms.sensitivity(), Sensitivity::from_units(1 << 45).unwrap()];
    charged.map(|charged| {
        let summand = terms.summand(from, to, charged).unwrap();
        sums(job("always").build_model().as_ref(), &data(&[record]), &[summand]).remove(0).open_for_test()
    })
}

fn eta(at: &[f64], [_, a, b]: Record) -> f64 {
    at[0] + at[1] * a + at[2] * b
}

fn log_ratio(from: &[f64], to: &[f64], record: Record) -> f64 {
    let log = |at: &[f64]| record[0] * eta(at, record) - eta(at, record).exp().ln_1p();
    log(to) - log(from)
}

/// The weight of a record, and the length of the step in the frame if that has full rank.
fn weight(numbers: &[f64], [_, a, b]: Record) -> f64 {
    let (_, leverage) = Leverage::after_point(numbers, 3).unwrap();
    let m = Leverage::widening(leverage.frame());
    let image = |k: usize| {
        let row = leverage.frame().row(k);
        m * (row[0] + row[1] * a + row[2] * b)
    };
    Influence::weight(TRACE, (0..3).map(|k| image(k).powi(2)).sum())
}

/// A record within its bounds, or at a corner of them.
fn inside() -> impl Strategy<Value = Record> {
    let value = || prop_oneof![-1.0..1.0_f64, Just(1.0), Just(-1.0), Just(0.0)];
    (prop_oneof![Just(0.0), Just(1.0)], value(), value()).prop_map(|(y, a, b)| [y, a, b])
}

/// A record anywhere.
fn anywhere() -> impl Strategy<Value = Record> {
    let value = || prop_oneof![Just(1e150), Just(-3.0), Just(1e300), Just(f64::NAN), Just(f64::INFINITY)];
    prop_oneof![3 => inside(), 1 => (inside(), value()).prop_map(|([y, a, _], b)| [y, a, b]),
        1 => (inside(), value()).prop_map(|([_, a, b], y)| [y, a, b])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Within the bounds no record's part exceeds the charge, which is at most that of the least of the box and the frame: it is the
    /// weight times the log ratio, less the centre. The reverse step negates it. Beyond the bounds it holds to the charge.
    #[test]
    fn no_weighted_ratio_exceeds_its_charge(
        rows in rows(), from in point(), by in point(), size in prop_oneof![Just(1e-3), Just(0.05), Just(0.5), Just(2.0)],
        record in inside(), far in anywhere(), replaced in any::<bool>(),
    ) {
        let theta: [f64; 3] = std::array::from_fn(|j| from[j] + size * by[j]);
        let (there, back) = (to(&theta, rows), to(&from, rows));
        prop_assume!(Leverage::after_point(&there, 3).is_some());
        let unit = PrivacyUnit::row(if replaced { Adjacency::Replace } else { Adjacency::AddRemove });
        let (terms, reverse) = (terms(unit, &from, &there), terms(unit, &theta, &back));
        prop_assert_eq!((terms.sensitivity(), terms.centre()), (reverse.sensitivity(), -reverse.centre()));
        let [held, whole] = contribution(&terms, (&from, &there), record);
        prop_assert_eq!(held, whole);
        prop_assert_eq!(contribution(&reverse, (&theta, &back), record), [-held; 2]);
        let expected = weight(&there, record) * log_ratio(&from, &theta, record) - terms.centre();
        prop_assert!((whole as f64 * STEP - expected).abs() <= STEP + 1e-11, "{whole} {expected}");
        let moved: f64 = theta.iter().zip(&from).map(|(to, from)| (to - from).abs()).sum();
        prop_assert!(terms.sensitivity().units() as f64 * STEP <= moved * (1.0 + 1e-9) + 2.0 * STEP);
        prop_assert!(contribution(&terms, (&from, &there), far)[0].unsigned_abs() <= terms.sensitivity().units());
        prop_assert!(replaced || terms.centre() == 0.0);
    }

    /// The weights have the bits that a remainder's have: one along no gradient is the weighted ratio.
    #[test]
    fn weights_are_those_of_a_remainder(rows in rows(), from in point(), by in point(), records in prop::collection::vec(inside(), 1..20)) {
        let theta: [f64; 3] = std::array::from_fn(|j| from[j] + 0.3 * by[j]);
        let there = to(&theta, rows);
        prop_assume!(Leverage::after_point(&there, 3).is_some());
        let (spec, clamp) = (job("always"), Sensitivity::from_units(1 << 45).unwrap());
        let summand = terms(PrivacyUnit::row(Adjacency::AddRemove), &from, &there).summand(&from, &there, clamp).unwrap();
        let (model, data) = (spec.build_model(), data(&records));
        let ratio = sums(model.as_ref(), &data, &[summand]).remove(0).open_for_test();
        let numbers = [&there[3..15], &[0.0; 4], &[TRACE]].concat();
        let points = [from, from, theta].concat();
        let step = Remainder::new(&points, &numbers, 3).unwrap();
        let scores = model.scores().unwrap();
        prop_assert_eq!(scores.remainder_sum(&Block::lent(&data), &step, clamp).open_for_test(), ratio);
        let scalar = Block::lent(&data).on(pulp::Arch::Scalar);
        prop_assert_eq!(block_sums(model.as_ref(), &scalar, &[summand]).remove(0).open_for_test(), ratio);
    }
}

/// The charged distance is reached by .999: by images on the ball along the step, and in the box where that is nearer.
#[test]
fn the_charged_distance_is_reached() {
    let (from, theta) = ([-12.0, 0.0, 0.0], [-12.0, 0.05, 0.0]);
    for (rows, a) in [
        ([[0.01, 0.0, 0.0], [0.0, 1.3, 0.0], [0.0, 0.0, 0.01]], 0.9),
        ([[1e-3, 0.0, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.01]], 1.0),
    ] {
        let there = to(&theta, rows);
        let terms = terms(PrivacyUnit::default(), &from, &there);
        let [one, other] = [a, -a].map(|a| contribution(&terms, (&from, &there), [1.0, a, 0.0])[0]);
        let part = (one - other) as f64 / (2.0 * terms.sensitivity().units() as f64);
        assert!((0.999..=1.0).contains(&part), "{part}");
    }
    let wide = to(&theta, [[0.01, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 0.01]]);
    let (weighted, plain) = (terms(PrivacyUnit::default(), &from, &wide), terms(PrivacyUnit::default(), &from, &theta));
    assert!(plain.sensitivity().units() > 4 * weighted.sensitivity().units());
}

#[test]
fn an_inert_record_adds_its_centre_alone() {
    let (from, theta) = ([0.1; 3], [0.4, 0.1, 0.1]);
    let there = to(&theta, [[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]]);
    let terms = terms(PrivacyUnit::default(), &from, &there);
    let centre = (terms.centre() / STEP).round() as i64;
    for record in [[f64::NAN, 0.1, 0.2], [1.0, f64::NAN, 0.2], [1.0, 0.1, f64::INFINITY]] {
        assert_eq!(contribution(&terms, (&from, &there), record)[0], -centre, "{record:?}");
    }
}

/// Only a job that weights its chains asks such queries, in its own number of parameters and with moderate numbers.
#[test]
fn a_query_must_fit() {
    let (from, there) = ([0.1; 3], to(&[0.2; 3], [[0.2, 0.1, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.5]]));
    let ask = |spec: &JobSpec, kind, from: &[f64], to: &[f64]| {
        QueryTerms::new(spec.build_model().as_ref(), spec, PrivacyUnit::default(), kind, (from, to)).err()
    };
    let (always, never) = (job("always"), job("never"));
    let ratio = |spec: &JobSpec, to: &[f64]| ask(spec, QueryKind::Ratio, &from, to);
    assert_eq!((ratio(&always, &there), ratio(&job("auto"), &there)), (None, None));
    assert_eq!((ratio(&always, &there[..3]), ratio(&never, &there[..3])), (None, None));
    assert_eq!(ratio(&never, &there), Some(QueryError::Points));
    for (place, value) in [(3, 8.0), (3, f64::NAN), (6, 1e-100), (12, 0.1), (15, 0.9), (15, 17.0)] {
        let mut other = there.clone();
        other[place] = value;
        assert_eq!(ratio(&always, &other), Some(QueryError::Points), "{place} {value}");
    }
    assert_eq!(ratio(&always, &there[..15]), Some(QueryError::Points));
    assert!(ask(&always, QueryKind::ClipCount, &from, &there).is_some());
    // A frame of one parameter more than the model has.
    let other = [vec![0.2; 4], vec![0.1; 16], vec![0.0; 4], vec![TRACE]].concat();
    assert_eq!(ask(&always, QueryKind::Ratio, &[0.1; 4], &other), Some(QueryError::Points));
}

/// Chains of ratios with other moves, starts or limits weight no record, and say which key is in the way.
#[test]
fn other_chains_are_refused_by_name() {
    let by = "locate = \"gradients\"\n";
    for (sampler, word) in [
        ("", "locate = \"gradients\""),
        ("locate = \"ratios\"", "locate = \"gradients\""),
        ("locate = \"gradients\"\nproposal = { kind = \"random_walk\" }", "guided"),
        ("locate = \"gradients\"\nlocate_share = 0.1\nstart = { intercept = 0, a = 0, b = 0 }", "start"),
        ("locate = \"gradients\"\nproposal = { radius = { intercept = 0.1, a = 0.1, b = 0.1 } }", "proposal.radius"),
    ] {
        let refused = JobSpec::parse(&text("auto", sampler)).unwrap_err();
        assert!(refused.key == "model.weights" && refused.to_string().contains(word), "{sampler}: {refused}");
        assert!(JobSpec::parse(&text("never", sampler)).is_ok(), "{sampler}");
    }
    let clipped = text("always", by).replace("epsilon = 1", "epsilon = 1\nclip = 0.5");
    assert!(JobSpec::parse(&clipped).unwrap_err().to_string().contains("privacy.clip"));
    let barker = text("always", "").replace("penalty", "barker");
    assert!(JobSpec::parse(&barker).unwrap_err().to_string().contains("model.weights"));
    assert_eq!(job("always").releases(), ["score", "ratio", "table"]);
    assert_eq!((job("always").sampler.locate_share, job("never").sampler.locate_share), (0.15, 0.05));
}
