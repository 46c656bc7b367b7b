//! Queries over samples: the jobs that may send them, their charges, and the limit of a unit's contribution.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::job::{Algorithm, JobSpec};
use crate::model::{Summand, sums};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind};
use conclave_privacy::pass::{Frame, ModelData, Persons, Summed};

const ALGORITHMS: [Algorithm; 10] = [
    Algorithm::Penalty,
    Algorithm::PenaltyExpFamily,
    Algorithm::NoisyStatistics,
    Algorithm::Hmc,
    Algorithm::Barker,
    Algorithm::Sgld,
    Algorithm::Sghmc,
    Algorithm::Sgnht,
    Algorithm::Sgfs,
    Algorithm::Ops,
];

/// Returns a job over samples of a hundredth, in 20 blocks.
fn sampled(algorithm: Algorithm, privacy: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\n\
         y = {{ binary = true }}\nx = {{ min = -1, max = 1 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{privacy}"
    );
    let mut spec = JobSpec::parse(&text).unwrap();
    spec.algorithm = algorithm;
    spec.sampler.batch = SamplingProbability::at_least(0.01).unwrap();
    spec.privacy.blocks = Some(20);
    spec
}

fn persons(adjacency: Adjacency) -> PrivacyUnit {
    PrivacyUnit::person(adjacency, 3).unwrap()
}

fn terms(spec: &JobSpec, unit: PrivacyUnit, kind: QueryKind, points: (&[f64], &[f64])) -> Result<QueryTerms, QueryError> {
    QueryTerms::new(spec.build_model().as_ref(), spec, unit, kind, points)
}

#[test]
fn only_jobs_over_samples_query_samples() {
    let (ratio, gradient) = (QueryKind::SampledRatio, QueryKind::SampledGradient { parameters: 2 });
    for algorithm in ALGORITHMS {
        let spec = sampled(algorithm, "clip = 0.5");
        let asked = [ratio, gradient].map(|kind| spec.asks(kind));
        assert_eq!(asked, [algorithm == Algorithm::Barker, algorithm.is_unadjusted()], "{algorithm:?}");
        let mut whole = spec;
        whole.privacy.blocks = None;
        whole.sampler.batch = SamplingProbability::ONE;
        assert!(!whole.asks(ratio) && !whole.asks(gradient), "{algorithm:?}");
        assert!(
            whole
                .block_terms(
                    ratio,
                    PrivacyUnit::default(),
                    (conclave_privacy::mechanism::Sensitivity::from_units(1).unwrap(), NoiseScale::from_sd(1.0).unwrap())
                )
                .is_none()
        );
    }
    // The search before the chains queries all records.
    assert!(sampled(Algorithm::Barker, "clip = 0.5").asks(QueryKind::Ratio));
    assert!(sampled(Algorithm::Sgld, "").asks(QueryKind::Gradient { parameters: 2 }));
}

/// A block's releases have one sensitivity, the clip, whatever each step's own bound is; the smaller of the two limits a unit.
#[test]
fn a_ratio_over_a_sample_is_charged_by_the_clip_and_limited_by_the_bound() {
    let spec = sampled(Algorithm::Barker, "clip = 0.5");
    let model = spec.build_model();
    let (origin, near, far) = ([0.0, 0.0], [0.01, 0.0], [5.0, 3.0]);
    for (unit, records) in [
        (PrivacyUnit::row(Adjacency::Replace), 1),
        (PrivacyUnit::row(Adjacency::AddRemove), 1),
        (persons(Adjacency::Replace), 3),
        (persons(Adjacency::AddRemove), 3),
    ] {
        let clip = records * (1 << 31);
        for (to, is_clipped) in [(near, false), (far, true), (origin, false)] {
            let terms = terms(&spec, unit, QueryKind::SampledRatio, (&origin, &to)).unwrap();
            assert_eq!((terms.sensitivity().units(), terms.centre().to_bits()), (clip, 0));
            let Ok(Summand::Step(step)) = terms.summand(&origin, &to, terms.sensitivity()) else { panic!("no step") };
            let bound = (model.bound(&origin, &to) * (1_u64 << 32) as f64).ceil().max(1.0) as u64 * records;
            assert_eq!(step.clamp.units(), bound.min(clip), "{unit} {to:?}");
            assert_eq!((step.clamp.units() == clip, step.centre.to_bits(), step.of), (is_clipped, 0, Summed::Ratios));
            // A smaller charge would limit a unit, too.
            let less = conclave_privacy::mechanism::Sensitivity::from_units(7).unwrap();
            assert!(matches!(terms.summand(&origin, &to, less), Ok(Summand::Step(step)) if step.clamp == step.clamp.min(less)));
            let block = spec.block_terms(QueryKind::SampledRatio, unit, (terms.sensitivity(), spec.privacy.noise)).unwrap();
            assert_eq!((block.release.sensitivity.units(), block.release.components), (clip, 1));
        }
    }
}

#[test]
fn without_a_clip_per_record_a_ratio_over_a_sample_has_no_price() {
    for privacy in ["", "clip = { slope = 0.5 }"] {
        let spec = sampled(Algorithm::Barker, privacy);
        let asked = terms(&spec, PrivacyUnit::default(), QueryKind::SampledRatio, (&[0.0, 0.0], &[0.1, 0.0]));
        assert_eq!(asked, Err(QueryError::NoSampleClip), "{privacy:?}");
    }
}

/// A gradient over a sample is one over all records in everything that affects a unit's contribution.
#[test]
fn a_gradient_over_a_sample_is_charged_and_limited_as_any() {
    let spec = sampled(Algorithm::Sgnht, "");
    let frame: Vec<f64> = (0..Frame::length(2)).map(|at| if at < 4 { 0.2 } else { 0.001 }).collect();
    let theta = [0.3, -0.2];
    for unit in [PrivacyUnit::default(), PrivacyUnit::row(Adjacency::AddRemove), persons(Adjacency::Replace)] {
        let ask = |kind| terms(&spec, unit, kind, (&theta, &frame)).unwrap();
        let (some, all) = (ask(QueryKind::SampledGradient { parameters: 2 }), ask(QueryKind::Gradient { parameters: 2 }));
        assert_eq!(some.sensitivity(), all.sensitivity());
        assert_eq!(some.sensitivity().units(), GRADIENT_UNITS * u64::from(unit.records_per_person().unwrap_or(1)));
        assert_eq!((some.length(), some.sum_fits(1 << 30), some.sum_fits(1 << 35)), (2, true, false));
        assert!(matches!(some.summand(&theta, &frame, all.sensitivity()), Ok(Summand::Gradient { .. })));
        let other = conclave_privacy::mechanism::Sensitivity::from_units(1).unwrap();
        assert!(matches!(some.summand(&theta, &frame, other), Err(QueryError::Charged)));
    }
    let wrong = terms(&spec, PrivacyUnit::default(), QueryKind::SampledGradient { parameters: 3 }, (&theta, &frame));
    assert!(matches!(wrong, Err(QueryError::Vector(_))), "{wrong:?}");
}

/// Whatever one unit's records contain, its contribution is at most the clip.
#[test]
fn no_contribution_exceeds_the_clip() {
    let spec = sampled(Algorithm::Barker, "clip = 0.25");
    let model = spec.build_model();
    for (from, to) in [([0.0, 0.0], [0.01, -0.01]), ([3.0, -3.0], [-9.0, 20.0])] {
        for wild in [f64::NAN, f64::INFINITY, -1e300, 1.0] {
            let data = ModelData { outcome: vec![1.0; 3], predictors: vec![vec![wild; 3]], ..ModelData::default() };
            for unit in [PrivacyUnit::default(), persons(Adjacency::AddRemove)] {
                let each = ModelData {
                    persons: unit.records_per_person().and_then(|limit| Persons::new(vec![3], limit)),
                    ..data.clone()
                };
                let terms = terms(&spec, unit, QueryKind::SampledRatio, (&from, &to)).unwrap();
                let summand = terms.summand(&from, &to, terms.sensitivity()).unwrap();
                let sum = sums(model.as_ref(), &each, &[summand]).remove(0).open_for_test();
                let units = each.units();
                assert!(sum.unsigned_abs() <= units * terms.sensitivity().units(), "{wild} {unit}: {sum}");
            }
        }
    }
}

/// A second moment is the sum of the units' squared contributions; for persons, of their squared sums. Whatever a unit contains,
/// its contribution is at most the charge, and both adjacencies move the sum by no more than that.
#[test]
fn squares_are_of_units_and_limited_by_the_charge() {
    let spec = sampled(Algorithm::Barker, "clip = 0.05");
    let model = spec.build_model();
    let (from, to) = ([0.1, -0.3], [0.2, -0.1]);
    let x: Vec<f64> = (0..30).map(|i| f64::from(i) / 15.0 - 1.0).collect();
    let outcome: Vec<f64> = (0..30).map(|i| f64::from(i % 2)).collect();
    let kind = QueryKind::SecondMoment;
    for (unit, records) in
        [(PrivacyUnit::default(), 1), (PrivacyUnit::row(Adjacency::AddRemove), 1), (persons(Adjacency::Replace), 3)]
    {
        let terms = terms(&spec, unit, kind, (&from, &to)).unwrap();
        let most = QueryKind::SQUARE_UNITS;
        assert_eq!((terms.sensitivity().units(), terms.centre().to_bits(), terms.length()), (most, 0, 1));
        // There is no factor of two: the sum of squares moves by one unit's maximum, whether a unit is replaced or added.
        let noise = NoiseScale::from_units(1 << 30).unwrap();
        let charge =
            unit.charge_of_kind(kind, terms.sensitivity(), (noise, conclave_privacy::accounting::Honest::ALONE)).unwrap();
        let exact = (most as f64 / (1_u64 << 30) as f64).powi(2) * (1_u64 << 48) as f64;
        assert!(charge as f64 >= exact && (charge as f64) < exact * 1.0001 + 64.0, "{charge} {exact}");
        let over = record_bound(model.as_ref(), &spec.privacy, &from, &to).unwrap();
        let group = |limit: u64| {
            (limit > 1)
                .then(|| Persons::new((1..=30 / limit as usize).map(|p| p * limit as usize).collect(), limit as u32).unwrap())
        };
        let data =
            ModelData { outcome: outcome.clone(), predictors: vec![x.clone()], persons: group(records), ..ModelData::default() };
        let summand = terms.summand(&from, &to, terms.sensitivity()).unwrap();
        let sum = sums(model.as_ref(), &data, &[summand]).remove(0).open_for_test();
        // Each record's ratio by itself.
        let parts: Vec<f64> = (0..30)
            .map(|i| {
                let one = ModelData { outcome: vec![outcome[i]], predictors: vec![vec![x[i]]], ..ModelData::default() };
                let step = conclave_privacy::pass::Step::new(&from, &to, over);
                sums(model.as_ref(), &one, &[Summand::Step(step)]).remove(0).open_for_test() as f64 / over.units() as f64
            })
            .collect();
        let expected: f64 = parts.chunks(records as usize).map(|part| part.iter().sum::<f64>().powi(2)).sum();
        let found = sum as f64 / QueryKind::SQUARE_UNITS as f64 * (records * records) as f64;
        assert!(
            (found - expected).abs() < (30 * records * records) as f64 / QueryKind::SQUARE_UNITS as f64,
            "{unit}: {found} {expected}"
        );
        assert!(parts.iter().any(|part| part.abs() == 1.0) && parts.iter().any(|part| part.abs() < 0.9), "some are clipped");
        for wild in [f64::NAN, f64::INFINITY, -1e300, 1e9] {
            let data = ModelData {
                outcome: vec![1.0; 3],
                predictors: vec![vec![wild; 3]],
                persons: (records > 1).then(|| Persons::new(vec![3], 3).unwrap()),
                ..ModelData::default()
            };
            let sum = sums(model.as_ref(), &data, &[summand]).remove(0).open_for_test();
            assert!((0..=(data.units() * most) as i64).contains(&sum), "{wild} {unit}: {sum}");
        }
        for other in [1, most - 1, most + 1] {
            let charged = conclave_privacy::mechanism::Sensitivity::from_units(other).unwrap();
            assert!(matches!(terms.summand(&from, &to, charged), Err(QueryError::Charged)));
        }
    }
    assert!(!sampled(Algorithm::Sgld, "").asks(kind) && sampled(Algorithm::Barker, "clip = 0.5").asks(kind));
    let whole = JobSpec { privacy: crate::job::PrivacySpec { blocks: None, ..spec.privacy.clone() }, ..spec };
    assert!(!whole.asks(kind), "without samples there is nothing to check");
}
