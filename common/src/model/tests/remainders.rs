//! Remainders: the same integers as for the gradient, within their bound, and the same in both directions.

use proptest::prelude::*;

use super::super::{Remainder, ScoreModel};
use super::scores::{job, records};
use crate::job::{Algorithm, JobSpec};
use crate::parameter::Constraint;
use crate::query::QueryTerms;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{QueryKind, STEP, Sensitivity};
use conclave_privacy::pass::{Block, Blocks, CachedBlocks, Frame, GRADIENT_SCALE, ModelData, Persons, WeightCache};

fn jobs() -> Vec<JobSpec> {
    vec![
        job("logistic", "{ binary = true }", "offset = \"o\""),
        job("linear", "{ min = -1, max = 1 }", "sd = 0.4"),
        job("poisson", "{ min = 0, max = 8 }", ""),
        job("poisson", "{ min = 0, max = 8 }", "power = 0.25\noffset = \"o\""),
        job("student_t", "{ min = -1, max = 1 }", "df = 4.0"),
        job("student_t", "{ min = -1, max = 1 }", "df = 1.5\noffset = \"o\""),
    ]
}

/// Returns theta, the midpoint and theta' for a step of this size and direction.
fn points(spec: &JobSpec, by: [f64; 2], scale: f64) -> [Vec<f64>; 3] {
    let d = spec.dimension();
    let at = [0.2, -0.4, 0.3, 0.1, -0.2, 0.35];
    let along = [1.0, -0.6, 0.3, 0.5, -0.8, 0.7];
    let to = |sign: f64, by: f64| (0..d).map(|j| at[j] + sign * scale * by * along[(j + usize::from(sign > 0.0)) % d]).collect();
    [to(-1.0, by[0]), at[..d].to_vec(), to(1.0, by[1])]
}

/// Returns the numbers of a query whose gradient is in units of `length`, with a centre.
fn numbers(spec: &JobSpec, points: &[Vec<f64>; 3], length: f64, centre: f64) -> Vec<f64> {
    let d = points[0].len();
    let frame = (0..d * d).map(|at| if at / d == at % d { length.recip() } else { 0.0 });
    let shift = (0..d).map(|_| -centre / length);
    // A family's own parameter enters by its logarithm.
    let by = |((from, to), constraint): ((&f64, &f64), &Constraint)| match constraint {
        Constraint::Positive => (to / from).ln(),
        _ => to - from,
    };
    let by: Vec<f64> = points[0].iter().zip(&points[2]).zip(&spec.model.constraints()).map(by).collect();
    let constant = by.iter().sum::<f64>() * centre;
    frame.chain(shift).chain(by.iter().map(|by| by * length / GRADIENT_SCALE)).chain([constant]).collect()
}

fn sum(scores: &dyn ScoreModel, data: &ModelData, points: &[f64], numbers: &[f64], clamp: u64) -> i64 {
    let d = points.len() / 3;
    let step = Remainder::new(points, numbers, d).unwrap();
    scores.remainder_sum(&Block::lent(data), &step, Sensitivity::from_units(clamp).unwrap()).open_for_test()
}

/// Returns the difference between the log ratio and the gradient's sum along the step.
fn expected(spec: &JobSpec, data: &ModelData, points: &[Vec<f64>; 3], numbers: &[f64]) -> f64 {
    let model = spec.build_model();
    let scores = model.scores().unwrap();
    let d = points[0].len();
    let frame = Frame::new(&numbers[..Frame::length(d)], d).unwrap();
    let total = scores.gradient_sum(&Block::lent(data), &points[1], frame).open_components_for_test();
    let along: f64 = total.iter().zip(&numbers[Frame::length(d)..]).map(|(units, weight)| *units as f64 * weight).sum();
    let constant = numbers[numbers.len() - 1] * data.outcome.len() as f64;
    model.log_likelihood(data, &points[2]) - model.log_likelihood(data, &points[0]) - along - constant
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With clipped gradients (short frames) or not, with or without a centre, gradient and remainder add up to the log ratio, up
    /// to the rounding of each record to the lattice.
    #[test]
    fn gradient_and_remainder_add_up_to_the_log_ratio(
        u in prop::collection::vec(prop::array::uniform6(0.0..1.0_f64), 1..40),
        by in prop::array::uniform2(-1.0..1.0_f64),
        length in prop_oneof![Just(0.3), Just(12.0)],
        centre in prop_oneof![Just(0.0), Just(0.2)],
    ) {
        for spec in jobs() {
            let model = spec.build_model();
            let scores = model.scores().unwrap();
            let data = records(&spec, &u);
            let points = points(&spec, by, 0.05);
            let numbers = numbers(&spec, &points, length, centre);
            let found = sum(scores.as_ref(), &data, &points.concat(), &numbers, 1 << 40);
            let wanted = expected(&spec, &data, &points, &numbers);
            // The gradient's sum is rounded, too, once per component.
            let d = points[0].len();
            let rounded: f64 = numbers[Frame::length(d)..][..d].iter().map(|weight| 0.5 * weight.abs()).sum();
            prop_assert!((found as f64 * STEP - wanted).abs() < STEP * u.len() as f64 + rounded + 1e-11, "{found} {wanted}");
            // The reverse step: the other end first, the same midpoint, and negated weights.
            let back = [points[2].clone(), points[1].clone(), points[0].clone()];
            let fixed = Frame::length(points[0].len());
            let turned: Vec<f64> = numbers.iter().enumerate().map(|(at, x)| if at < fixed { *x } else { -x }).collect();
            prop_assert_eq!(sum(scores.as_ref(), &data, &back.concat(), &turned, 1 << 40), -found);
        }
    }

    /// No record exceeds the public bound where none of its gradient is clipped, and the bound is not far above the maximum: a
    /// loose bound would be expensive.
    #[test]
    fn no_record_exceeds_the_bound(by in prop::array::uniform2(-1.0..1.0_f64), scale in prop_oneof![Just(1e-3), Just(0.3)]) {
        for spec in jobs() {
            let model = spec.build_model();
            let scores = model.scores().unwrap();
            let points = points(&spec, by, scale);
            let numbers = numbers(&spec, &points, 40.0, 0.0);
            let all = points.concat();
            let step = Remainder::new(&all, &numbers, points[0].len()).unwrap();
            let second = scores.remainder_bound(step.points, None).unwrap();
            let back = scores.remainder_bound([step.points[2], step.points[1], step.points[0]], None).unwrap();
            prop_assert_eq!(second.to_bits(), back.to_bits());
            let bound = step.bound(second, scores.vector_rounding(&step)) / STEP;
            for corner in 0..64_u32 {
                let u: [f64; 6] = std::array::from_fn(|j| f64::from(corner >> j & 1));
                for u in [u, u.map(|u| 0.2 + 0.6 * u)] {
                    let one = sum(scores.as_ref(), &records(&spec, &[u]), &all, &numbers, 1 << 45);
                    prop_assert!(one.unsigned_abs() as f64 <= bound + 0.5, "{one} beyond {bound}");
                }
            }
        }
    }
}

/// Gradient and remainder have the same bits on every machine, and so does the remainder where the gradient's weights were
/// cached: only the most recent gradients that fit are cached.
#[test]
fn no_bit_depends_on_vectors_or_on_cached_weights() {
    for spec in jobs()
        .into_iter()
        .chain([job("negative_binomial", "{ min = 0, max = 8 }", ""), job("linear", "{ min = -1, max = 1 }", "")])
    {
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        let u: Vec<[f64; 6]> = (0..1_000_u32)
            .map(|i| [0.618, 0.382, 0.755, 0.57, 0.414, 0.236].map(|step| (f64::from(i) * step + 0.05).fract()))
            .collect();
        let mut data = records(&spec, &u);
        data.predictors[0][7] = f64::NAN;
        data.predictors[2][8] = 1e300;
        data.predictors[1][9] = -40.0;
        data.outcome[10] = f64::INFINITY;
        let points = points(&spec, [0.4, -0.7], 0.02);
        let d = points[0].len();
        // Short enough that some of the vectors are cut.
        for length in [0.7, 12.0] {
            let numbers = numbers(&spec, &points, length, 0.1);
            let frame = Frame::new(&numbers[..Frame::length(d)], d).unwrap();
            let all = points.concat();
            let step = Remainder::new(&all, &numbers, d).unwrap();
            let clamp = Sensitivity::from_units(1 << 40).unwrap();
            let gradient = |block: &Block<'_>| scores.gradient_sum(block, &points[1], frame).open_components_for_test();
            let remainder = |block: &Block<'_>| scores.remainder_sum(block, &step, clamp).open_for_test();
            let (sum, left) = (gradient(&Block::lent(&data)), remainder(&Block::lent(&data)));
            let scalar = Block::lent(&data).on(pulp::Arch::Scalar);
            assert_eq!((gradient(&scalar), remainder(&scalar)), (sum.clone(), left), "{}", spec.model.kind());

            let kept = WeightCache::new((data.records(), data.count()), 2);
            let keeping = CachedBlocks::new(&data, &kept);
            let block = keeping.block(0).unwrap();
            assert_eq!((remainder(&block), kept.gradients()), (left, 0));
            assert_eq!((gradient(&block), remainder(&block), kept.gradients()), (sum.clone(), left, 1));
            // A query finds its own cached weights; a query at another point finds none.
            let other = scores.gradient_sum(&block, &points[0], frame).open_components_for_test();
            assert!(other != sum && remainder(&block) == left && kept.gradients() == 2);
            let _ = scores.gradient_sum(&block, &points[2], frame);
            assert_eq!((kept.gradients(), remainder(&block)), (2, left));
            // Weights of a part of a block are computed again.
            let halves = [block.part(0..400), block.part(400..1_000)].map(|half| remainder(&half));
            assert_eq!(halves[0] + halves[1], left);
        }
    }
}

/// Nothing is cached for a shard that is too large.
#[test]
fn the_cache_has_a_bound() {
    struct Many(u64);
    impl Blocks for Many {
        fn count(&self) -> usize {
            1
        }
        fn records(&self) -> u64 {
            self.0
        }
        fn units(&self) -> u64 {
            self.0
        }
        fn block(&self, _at: usize) -> Result<Block<'_>, conclave_privacy::pass::BlockError> {
            Ok(Block::owned(ModelData::default(), 0))
        }
    }
    for (records, queries, keeps) in
        [(1 << 25, 1, true), (1 << 25, 2, false), (1 << 23, 4, true), (u64::MAX, 1, false), (1, 0, false)]
    {
        let blocks = Many(records);
        let kept = WeightCache::new((blocks.records(), blocks.count()), queries);
        assert_eq!(CachedBlocks::new(&blocks, &kept).block(0).unwrap().weight_cache().is_some(), keeps, "{records} {queries}");
    }
}

/// A step of zero length has no remainder, even at the ends of the widest box, where the bend exceeds all numbers.
#[test]
fn no_step_has_no_remainder() {
    for spec in jobs() {
        let spec = JobSpec { algorithm: Algorithm::Hmc, ..spec };
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        for value in [0.3_f64, 1000.0, -1000.0] {
            let theta = vec![if scores.parameters() > scores.coefficients() { value.abs() } else { value }; spec.dimension()];
            assert_eq!(scores.remainder_bound([&theta, &theta, &theta], None), Some(0.0), "{value}");
        }
    }
}

/// The sum moves by no more than its charge, whatever numbers a query has, also with inert records and out-of-range values.
#[test]
fn no_contribution_exceeds_its_charge() {
    for spec in jobs() {
        let spec = JobSpec { algorithm: Algorithm::Hmc, ..spec };
        let model = spec.build_model();
        let points = points(&spec, [0.4, -0.7], 0.02);
        let (all, d) = (points.concat(), points[0].len() as u32);
        let lie: Vec<f64> = numbers(&spec, &points, 0.5, 0.1).into_iter().map(|x| 1e3 * x).collect();
        let kind = QueryKind::Remainder { parameters: d };
        for numbers in [numbers(&spec, &points, 3.0, 0.1), lie] {
            for unit in [PrivacyUnit::default(), PrivacyUnit::person(Adjacency::Replace, 3).unwrap()] {
                let terms = QueryTerms::new(model.as_ref(), &spec, unit, kind, (&all, &numbers)).unwrap();
                let summand = terms.summand(&all, &numbers, terms.sensitivity()).unwrap();
                for value in [f64::NAN, f64::INFINITY, 1e300, -1e300, 1e-310, 0.5] {
                    let rows = unit.records_per_person().unwrap_or(1) as usize;
                    let mut data = records(&spec, &vec![[0.7; 6]; rows]);
                    data.predictors[0].fill(value);
                    data.persons = unit.records_per_person().and_then(|limit| Persons::new(vec![rows], limit));
                    let found = super::super::sums(model.as_ref(), &data, &[summand]).remove(0).open_for_test();
                    assert!(found.unsigned_abs() <= terms.sensitivity().units(), "{value}: {found}");
                }
            }
        }
        // A sensitivity other than the charged one has no sum.
        let numbers = numbers(&spec, &points, 3.0, 0.0);
        let terms = QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&all, &numbers)).unwrap();
        let other = Sensitivity::from_units(terms.sensitivity().units() + 1).unwrap();
        assert!(terms.summand(&all, &numbers, other).is_err());
    }
}
