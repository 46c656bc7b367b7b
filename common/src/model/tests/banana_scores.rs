#![allow(clippy::unwrap_used)]

use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::Block;
use conclave_privacy::pass::hold::DIAGONAL;
use proptest::prelude::*;

use super::*;
use crate::job::JobSpec;
use crate::model::Model;
use conclave_privacy::mechanism::{GRADIENT_UNITS, STEP};
use conclave_privacy::pass::{Blocks, CachedBlocks, GRADIENT_SCALE, ModelData, WeightCache};

/// Returns jobs with outcomes around zero and around five, in different units.
fn jobs() -> [JobSpec; 2] {
    let job = |model: &str, columns: &str| {
        JobSpec::parse(&format!(
            "name = \"s\"\nalgorithm = \"hmc\"\nparties = [\"a\"]\n[model]\nkind = \"banana\"\noutcome = \"y\"\nsecond_outcome = \"z\"\n{model}\n\
             [columns]\n{columns}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        ))
        .unwrap()
    };
    [
        job("a = 20.0\ntau1 = 0.0005\ntau2 = 0.0004", "y = { min = -200, max = 200 }\nz = { min = -250, max = 250 }"),
        job("a = -0.8\ntau1 = 2.0\ntau2 = 3.0", "y = { min = -1, max = 3 }\nz = { min = 3, max = 7 }"),
    ]
}

fn data(records: &[[f64; 2]]) -> ModelData {
    ModelData {
        outcome: records.iter().map(|record| record[0]).collect(),
        predictors: Vec::new(),
        auxiliary: vec![records.iter().map(|record| record[1]).collect()],
        persons: None,
    }
}

fn many() -> ModelData {
    data(&(0..500).map(|i| [0.618, 0.755].map(|step| 2.0 * (f64::from(i) * step + 0.05).fract() - 1.0)).collect::<Vec<_>>())
}

fn gradient(model: &dyn Model, data: &ModelData, theta: &[f64], frame: &[f64]) -> Vec<i64> {
    let frame = Frame::new(frame, 2).unwrap();
    model.scores().unwrap().gradient_sum(&Block::lent(data), theta, frame).open_components_for_test()
}

fn information(model: &dyn Model, data: &ModelData, theta: &[f64], scales: [f64; 2]) -> Vec<i64> {
    model.scores().unwrap().curvature_sum(&Block::lent(data), theta, scales).open_components_for_test()
}

/// A step through a midpoint off the straight line, and the numbers of its query in a frame of this length.
struct Asked {
    points: [Vec<f64>; 3],
    all: Vec<f64>,
    numbers: Vec<f64>,
}

impl Asked {
    fn new(at: [f64; 2], by: [[f64; 2]; 2], length: f64, centre: f64) -> Self {
        let end = |sign: f64, by: [f64; 2]| vec![at[0] + sign * by[0], at[1] + sign * by[1]];
        let points = [end(-1.0, by[0]), at.to_vec(), end(1.0, by[1])];
        let along = [points[2][0] - points[0][0], points[2][1] - points[0][1]];
        let one = length.recip();
        let frame = [one, 0.0, 0.0, one, -centre * one, -centre * one];
        let constant = centre * (along[0] + along[1]);
        let weights = along.map(|by| by * length / GRADIENT_SCALE);
        Self { all: points.concat(), points, numbers: frame.into_iter().chain(weights).chain([constant]).collect() }
    }

    fn back(&self) -> Self {
        let [from, middle, to] = self.points.clone();
        let numbers = self.numbers.iter().enumerate().map(|(at, x)| if at < 6 { *x } else { -x }).collect();
        Self { all: [&to[..], &middle, &from].concat(), points: [to, middle, from], numbers }
    }

    fn step(&self) -> Remainder<'_> {
        Remainder::new(&self.all, &self.numbers, 2).unwrap()
    }

    fn sum(&self, model: &dyn Model, data: &ModelData, clamp: u64) -> i64 {
        let clamp = Sensitivity::from_units(clamp).unwrap();
        model.scores().unwrap().remainder_sum(&Block::lent(data), &self.step(), clamp).open_for_test()
    }
}

#[test]
fn a_gradient_is_the_slope_of_the_log_likelihood() {
    for spec in jobs() {
        let (model, data, theta) = (spec.build_model(), many(), [0.3, 1.4]);
        let length = model.scores().unwrap().gradient_bound(&theta)[0];
        let found = gradient(model.as_ref(), &data, &theta, &[1.0 / length, 0.0, 0.0, 1.0 / length, 0.0, 0.0]);
        for j in 0..2 {
            let at = |by: f64| {
                let mut moved = theta;
                moved[j] += by;
                model.log_likelihood(&data, &moved)
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            let value = found[j] as f64 / GRADIENT_SCALE * length;
            assert!((value - slope).abs() < 1e-4 * slope.abs().max(1.0), "{j}: {value} {slope}");
        }
    }
}

/// Compares with second differences of the log likelihood at its maximum, where the two agree.
#[test]
fn at_the_maximum_the_information_is_the_observed_one() {
    for spec in jobs() {
        let (model, data) = (spec.build_model(), many());
        let banana = |values: &[f64], column: &str| {
            let column = &spec.columns[column];
            column.centre() + column.half_width() * values.iter().sum::<f64>() / values.len() as f64
        };
        let crate::schema::ModelSpec::Banana { bend, .. } = &spec.model else { panic!("a banana") };
        let first = banana(&data.outcome, "y");
        let theta = [first, banana(&data.auxiliary[0], "z") - bend * first * first];
        let scales = model.scores().unwrap().most_information(&theta);
        let found = information(model.as_ref(), &data, &theta, scales);
        let at = |a: f64, b: f64| model.log_likelihood(&data, &[theta[0] + a, theta[1] + b]);
        let h = 1e-3;
        let second = |i: usize, j: usize| {
            let by = |k: usize, h: f64| if k == 0 { [h, 0.0] } else { [0.0, h] };
            let to = |a: f64, b: f64| {
                let ([a0, a1], [b0, b1]) = (by(i, a), by(j, b));
                at(a0 + b0, a1 + b1)
            };
            -(to(h, h) - to(h, -h) - to(-h, h) + to(-h, -h)) / (4.0 * h * h)
        };
        let entry = |at: usize, diagonal: f64| found[at] as f64 / 2_f64.powi(32) * scales[0] / diagonal;
        for (found, expected) in
            [(entry(0, DIAGONAL), second(0, 0)), (entry(1, 1.0), second(0, 1)), (entry(2, DIAGONAL), second(1, 1))]
        {
            assert!((found - expected).abs() < 3e-3 * expected.abs() + 1e-3 * scales[0] * 500.0, "{found} {expected}");
        }
    }
}

/// In other units of outcomes and parameters the length of a step is the same; without bend no step has a remainder.
#[test]
fn the_length_of_a_step_has_no_unit() {
    let far = |unit: f64, bend: f64, theta: [f64; 2], by: [f64; 2]| {
        let column = crate::schema::ColumnSpec::Numeric { min: -4.0 * unit, max: 4.0 * unit };
        let precision = [1.5, 2.5].map(|tau| tau / (unit * unit));
        let model = BananaLaw::new([&column, &column], bend / unit, precision);
        let (low, high) = BananaScores(&model).range(&theta.map(|x| x * unit), &by.map(|x| x * unit));
        assert_eq!(low, -high);
        high
    };
    for (theta, by) in [([0.3, -0.2], [0.1, 0.0]), ([0.0, 0.0], [0.0, 0.4]), ([-1.2, 0.5], [0.2, -0.7])] {
        let one = far(1.0, 0.7, theta, by);
        assert!(one > 0.0 && (far(1e3, 0.7, theta, by) - one).abs() < 1e-9 * one);
        assert_eq!(far(1.0, 0.0, theta, by), 0.0);
    }
    // From the middle, one sd of the first parameter, 0.14 for 100,000 records, makes the information 26 times as large.
    let column = crate::schema::ColumnSpec::Numeric { min: -250.0, max: 250.0 };
    let model = BananaLaw::new([&column, &column], 20.0, [0.0005, 0.0004]);
    assert!(BananaScores(&model).range(&[0.0, 3.0], &[0.14, 0.0]).1 > 4.9);
}

#[test]
fn a_record_that_is_not_a_number_contributes_nothing() {
    let model = jobs()[0].build_model();
    let theta = [0.1, 3.0];
    let scales = model.scores().unwrap().most_information(&theta);
    assert!(information(model.as_ref(), &data(&[[0.1, 0.2]]), &theta, scales)[0] > 0);
    for bad in [[f64::NAN, 0.1], [0.1, f64::NAN], [f64::INFINITY, 0.1], [0.1, f64::NEG_INFINITY]] {
        let data = data(&[bad]);
        assert_eq!(information(model.as_ref(), &data, &theta, scales), [0, 0, 0]);
        if bad.iter().any(|x| x.is_nan()) || bad[0].is_infinite() {
            let shift = gradient(model.as_ref(), &data, &theta, &[0.01, 0.0, 0.0, 0.01, 0.25, -0.5]);
            assert_eq!(shift, [0.25, -0.5].map(|b| (b * GRADIENT_SCALE).round() as i64));
        }
    }
}

#[test]
fn no_bit_depends_on_vectors_or_on_cached_weights() {
    for spec in jobs() {
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        let mut data = many();
        data.outcome[7] = f64::NAN;
        data.auxiliary[0][8] = 1e300;
        data.outcome[9] = -40.0;
        for length in [0.02, 40.0] {
            let asked = Asked::new([0.2, 2.0], [[0.05, -0.1], [0.04, 0.07]], length, 0.01);
            let (step, clamp) = (asked.step(), Sensitivity::from_units(1 << 40).unwrap());
            let gradient =
                |block: &Block<'_>| scores.gradient_sum(block, &asked.points[1], step.frame).open_components_for_test();
            let remainder = |block: &Block<'_>| scores.remainder_sum(block, &step, clamp).open_for_test();
            let (sum, left) = (gradient(&Block::lent(&data)), remainder(&Block::lent(&data)));
            let scalar = Block::lent(&data).on(pulp::Arch::Scalar);
            assert_eq!((gradient(&scalar), remainder(&scalar)), (sum.clone(), left));
            let kept = WeightCache::new((data.records(), data.count()), 1);
            let keeping = CachedBlocks::new(&data, &kept);
            let block = keeping.block(0).unwrap();
            assert_eq!((gradient(&block), remainder(&block), kept.gradients()), (sum, left, 1));
        }
    }
}

proptest! {
    /// The charge bounds the contribution of any record, at any point and in any frame.
    #[test]
    fn no_contribution_exceeds_its_charge(
        record in prop::array::uniform2(prop_oneof![-1.0..1.0_f64, Just(f64::NAN), Just(f64::INFINITY), -1e9..1e9_f64, Just(1e300)]),
        theta in prop::array::uniform2(-50.0..50.0_f64),
        part in 1e-6..1e3_f64,
        frame in prop::array::uniform6(-1e3..1e3_f64),
    ) {
        for spec in jobs() {
            let model = spec.build_model();
            let one = data(&[record]);
            let vector = gradient(model.as_ref(), &one, &theta, &frame);
            let squares: i128 = vector.iter().map(|x| i128::from(*x) * i128::from(*x)).sum();
            prop_assert!(squares <= i128::from(GRADIENT_UNITS * GRADIENT_UNITS), "{vector:?}");
            let [a, b, c] = <[i64; 3]>::try_from(information(model.as_ref(), &one, &theta, [part, 1.0])).unwrap();
            // The matrix is positive, and its trace before the diagonal is shrunk is at most 2^32.
            let whole = |x: i64| (x as f64 + 1.0) / DIAGONAL;
            prop_assert!(a >= 0 && c >= 0 && a as f64 / DIAGONAL + c as f64 / DIAGONAL <= 2_f64.powi(32));
            prop_assert!((b as f64).powi(2) <= whole(a) * whole(c), "{a} {b} {c}");
            let asked = Asked::new(theta, [[0.3, -0.2], [0.1, 0.4]], 0.5, 0.1);
            prop_assert!(asked.sum(model.as_ref(), &one, 1 << 20).unsigned_abs() <= 1 << 20);
        }
    }

    /// With shortened or whole gradients, with or without a centre, gradient and remainder add up to the log ratio, up to the
    /// rounding of each record to the lattice; the reverse step negates it.
    #[test]
    fn gradient_and_remainder_add_up_to_the_log_ratio(
        records in prop::collection::vec(prop::array::uniform2(-1.0..1.0_f64), 1..60),
        at in prop::array::uniform2(-1.0..1.0_f64),
        by in prop::array::uniform2(prop::array::uniform2(-0.1..0.1_f64)),
        length in prop_oneof![Just(0.02), Just(40.0)],
        centre in prop_oneof![Just(0.0), Just(0.01)],
    ) {
        for spec in jobs() {
            let (model, data) = (spec.build_model(), data(&records));
            let asked = Asked::new(at, by, length, centre);
            let found = asked.sum(model.as_ref(), &data, 1 << 46);
            let total = gradient(model.as_ref(), &data, &asked.points[1], &asked.numbers[..6]);
            let along: f64 = total.iter().zip(&asked.numbers[6..]).map(|(units, weight)| *units as f64 * weight).sum();
            let constant = asked.numbers[8] * records.len() as f64;
            let ratio = model.log_likelihood(&data, &asked.points[2]) - model.log_likelihood(&data, &asked.points[0]);
            let wanted = ratio - along - constant;
            // The gradient's sum is rounded, too, once per component, and two log likelihoods are subtracted.
            let rounded: f64 = asked.numbers[6..8].iter().map(|weight| 0.5 * weight.abs()).sum();
            let slack = STEP * records.len() as f64 + rounded + 1e-13 * model.log_likelihood(&data, &asked.points[0]).abs() + 1e-10;
            prop_assert!((found as f64 * STEP - wanted).abs() < slack, "{found} {wanted}");
            prop_assert_eq!(asked.back().sum(model.as_ref(), &data, 1 << 46), -found);
        }
    }

    /// No record exceeds the public bound where its gradient is whole, and some record reaches it up to the vector's rounding: a
    /// loose bound would be expensive.
    #[test]
    fn the_bound_of_a_remainder_is_its_maximum(
        at in prop::array::uniform2(-1.0..1.0_f64),
        by in prop::array::uniform2(prop::array::uniform2(-0.2..0.2_f64)),
        inside in prop::array::uniform2(-1.0..1.0_f64),
    ) {
        for spec in jobs() {
            let model = spec.build_model();
            let scores = model.scores().unwrap();
            let length = 2.0 * scores.gradient_bound(&at)[0];
            let asked = Asked::new(at, by, length, 0.0);
            let second_order = scores.remainder_bound(asked.step().points, None).unwrap();
            prop_assert_eq!(second_order.to_bits(), scores.remainder_bound(asked.back().step().points, None).unwrap().to_bits());
            let bound = asked.step().bound(second_order, scores.vector_rounding(&asked.step())) / STEP;
            let of = |record: [f64; 2]| asked.sum(model.as_ref(), &data(&[record]), 1 << 50).unsigned_abs() as f64;
            prop_assert!(of(inside) <= bound + 0.5);
            let greatest = CORNERS.map(of).into_iter().fold(0.0, f64::max);
            let rounding = scores.vector_rounding(&asked.step()) / STEP;
            prop_assert!(greatest <= bound + 0.5 && bound <= greatest + 2.0 * rounding + 2.0 + 1e-6 * bound, "{greatest} {bound}");
        }
    }

    /// No record's image is longer than its stated reach, none is shortened in a frame of that width, and a corner's has that
    /// length.
    #[test]
    fn a_frame_contains_every_record(
        at in prop::array::uniform2(-3.0..3.0_f64),
        rows in prop::array::uniform4(-1.0..1.0_f64),
        shift in prop::array::uniform2(-0.5..0.5_f64),
        inside in prop::array::uniform2(-1.0..1.0_f64),
    ) {
        prop_assume!((rows[0] * rows[3] - rows[1] * rows[2]).abs() > 0.2);
        for spec in jobs() {
            let model = spec.build_model();
            let scores = model.scores().unwrap();
            let image = |g: &[f64]| vec![rows[0] * g[0] + rows[1] * g[1] + shift[0], rows[2] * g[0] + rows[3] * g[1] + shift[1]];
            let reach = scores.reach(&at, &image).unwrap() * (1.0 + 2e-6);
            let numbers = |width: f64| rows.iter().chain(&shift).map(|x| x / width).collect::<Vec<f64>>();
            let width = reach * scores.widened(&at, Frame::new(&numbers(reach), 2).unwrap());
            let point = At::new(&spec_banana(&spec), &at);
            let mut longest = 0.0_f64;
            for record in CORNERS.into_iter().chain([inside]) {
                let whole = image(&point.gradient(record)).into_iter().map(|x| x / width).collect::<Vec<f64>>();
                let found = gradient(model.as_ref(), &data(&[record]), &at, &numbers(width));
                for (found, whole) in found.iter().zip(&whole) {
                    prop_assert!((*found as f64 / GRADIENT_SCALE - whole).abs() < 2e-6, "{record:?} {found} {whole}");
                }
                longest = longest.max(libm::hypot(whole[0], whole[1]));
            }
            prop_assert!((0.9..=1.0).contains(&longest), "{longest}");
        }
    }
}

fn spec_banana(spec: &JobSpec) -> BananaLaw {
    let crate::schema::ModelSpec::Banana { bend, precision, .. } = &spec.model else { panic!("a banana") };
    BananaLaw::new([&spec.columns["y"], &spec.columns["z"]], *bend, *precision)
}
