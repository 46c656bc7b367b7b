//! Gradients, information and moments: their sums, and the limit of a record's contribution.

use proptest::prelude::*;

use super::super::{ObservedForm, ScoreModel};
use crate::job::JobSpec;
use crate::parameter::Constraint;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::hold::{DIAGONAL, Moves};
use conclave_privacy::pass::{Block, Frame, GRADIENT_SCALE, ModelData};

/// Returns a regression job with a numeric and a binary predictor, a column of three levels and an offset.
pub(super) fn job(kind: &str, outcome: &str, more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"s\"\nparties = [\"a\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = [\"x\", \"b\", \"w\"]\n{more}\n\
         [columns]\ny = {outcome}\nx = {{ min = -1, max = 1 }}\nb = {{ binary = true }}\nw = {{ levels = [\"p\", \"q\", \"r\"] }}\n\
         o = {{ min = -0.5, max = 0.5 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

fn jobs() -> Vec<JobSpec> {
    vec![
        job("logistic", "{ binary = true }", "offset = \"o\""),
        job("linear", "{ min = -1, max = 1 }", "sd = 0.4"),
        job("linear", "{ min = -1, max = 1 }", "offset = \"o\""),
        job("poisson", "{ min = 0, max = 8 }", ""),
        job("negative_binomial", "{ min = 0, max = 8 }", "offset = \"o\""),
        job("student_t", "{ min = -1, max = 1 }", "df = 4.0"),
        job("poisson", "{ min = 0, max = 8 }", "power = 0.25"),
    ]
}

/// Returns records within the declared bounds; `u` are numbers in [0, 1], six per record.
pub(super) fn records(spec: &JobSpec, u: &[[f64; 6]]) -> ModelData {
    let offset = spec.model.auxiliary().len();
    let outcome = |u: f64| match spec.model.kind() {
        "logistic" => f64::from(u8::from(u > 0.5)),
        "poisson" | "negative_binomial" => (u * 8.0).round() / 4.0 - 1.0,
        _ => 2.0 * u - 1.0,
    };
    let column = |of: &dyn Fn(&[f64; 6]) -> f64| u.iter().map(of).collect::<Vec<f64>>();
    let level = |u: f64| (3.0 * u).floor().min(2.0);
    ModelData {
        outcome: column(&|u| outcome(u[0])),
        predictors: vec![
            column(&|u| 2.0 * u[1] - 1.0),
            column(&|u| f64::from(u8::from(u[2] > 0.4))),
            column(&|u| f64::from(u8::from(level(u[3]) == 1.0))),
            column(&|u| f64::from(u8::from(level(u[3]) == 2.0))),
        ],
        auxiliary: (0..offset).map(|_| column(&|u| u[4] - 0.5)).collect(),
        persons: None,
    }
}

fn theta(spec: &JobSpec) -> Vec<f64> {
    let all = [0.2, -0.4, 0.3, 0.1, -0.2, 0.6];
    all[..spec.dimension()].to_vec()
}

/// Returns a frame of the identity divided by `length`, without a shift.
fn plain(order: usize, length: f64) -> Vec<f64> {
    let entry = |at: usize| if at < order * order && at / order == at % order { length.recip() } else { 0.0 };
    (0..Frame::length(order)).map(entry).collect()
}

fn gradient(scores: &dyn ScoreModel, data: &ModelData, theta: &[f64], frame: &[f64]) -> Vec<i64> {
    let frame = Frame::new(frame, theta.len()).unwrap();
    scores.gradient_sum(&Block::lent(data), theta, frame).open_components_for_test()
}

fn many() -> Vec<[f64; 6]> {
    (0..1_000_u32).map(|i| [0.618, 0.382, 0.755, 0.57, 0.414, 0.236].map(|step| (f64::from(i) * step + 0.05).fract())).collect()
}

/// Compares with differences of the log likelihood, in the coefficients and in the logarithm of the family's own parameter.
#[test]
fn a_gradient_is_the_slope_of_the_log_likelihood() {
    for spec in jobs() {
        let (model, at) = (spec.build_model(), theta(&spec));
        let (data, order) = (records(&spec, &many()), at.len());
        let scores = model.scores().unwrap();
        let constraints = spec.model.constraints();
        let length = 40.0;
        let sums = gradient(scores.as_ref(), &data, &at, &plain(order, length));
        for j in 0..order {
            let moved = |by: f64| {
                let mut moved = at.clone();
                moved[j] = if constraints[j] == Constraint::Positive { at[j] * by.exp() } else { at[j] + by };
                model.log_likelihood(&data, &moved)
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let found = length * sums[j] as f64 / GRADIENT_SCALE;
            assert!((found - slope).abs() < 1e-4 * (1.0 + slope.abs()), "{} {j}: {found} and {slope}", spec.model.kind());
        }
    }
}

/// The expectation of the products of slopes is the information. It is compared with minus the slope of the mean gradient where
/// outcomes are at their mean, for the families whose slope is linear in the outcome.
#[test]
fn a_curvature_is_the_weighted_sum_of_products() {
    for spec in jobs() {
        let (model, at) = (spec.build_model(), theta(&spec));
        let data = records(&spec, &many());
        let scores = model.scores().unwrap();
        let scales = scores.most_information(&at);
        assert!(scales.iter().take(1 + scores.parameters() - scores.coefficients()).all(|s| *s > 0.0), "{scales:?}");
        let scales = scales.map(|s| if s > 0.0 { s } else { 1.0 });
        let sums = scores.curvature_sum(&Block::lent(&data), &at, scales).open_components_for_test();
        let (order, coefficients) = (scores.parameters(), scores.coefficients());
        assert_eq!(sums.len(), order * (order + 1) / 2);
        // Every record's coded intercept is 1: the first entry is the mean weight, between 0 and all records.
        let first = sums[0] as f64 / 4_294_967_296.0 / DIAGONAL;
        assert!(first > 0.0 && first <= 1_000.0 + 1e-3, "{first}");
        // A binary predictor's square is also 1.
        let coded = scores.coding();
        let diagonal = |j: usize| sums[(0..j).map(|i| order - i).sum::<usize>()] as f64 / 4_294_967_296.0 / DIAGONAL;
        for j in (0..coefficients).filter(|j| coded[*j]) {
            assert!((diagonal(j) - first).abs() < 1e-2, "{j}");
        }
        if order > coefficients {
            // There are no products with the family's own parameter.
            let last: Vec<i64> = (0..coefficients).map(|j| sums[(0..=j).map(|i| order - i).sum::<usize>() - 1]).collect();
            assert!(last.iter().all(|x| *x == 0) && diagonal(order - 1) > 0.0, "{last:?}");
        }
    }
}

/// Compares the own parameter's entry with minus the second derivative of the log likelihood, whatever law the records follow:
/// they are spread evenly over their bounds here. Where only the intercept matters, every record has the same mean, and the terms
/// of [`ObservedForm`] are exact.
#[test]
fn the_own_parameters_information_is_the_observed_one() {
    for (kind, outcome, more) in
        [("negative_binomial", "{ min = 0, max = 8 }", ""), ("student_t", "{ min = -1, max = 1 }", "df = 4.0")]
    {
        let spec = job(kind, outcome, more);
        let (model, data) = (spec.build_model(), records(&spec, &many()));
        let at = [0.2, 0.0, 0.0, 0.0, 0.0, 0.6];
        let scores = model.scores().unwrap();
        let scales = scores.most_information(&at);
        let sums = scores.curvature_sum(&Block::lent(&data), &at, scales).open_components_for_test();
        let entry = |k: usize, scale: f64| scale * sums[k] as f64 / 4_294_967_296.0 / DIAGONAL;
        let (first, own) = (entry(0, scales[0]), entry(sums.len() - 1, scales[1]));
        let log = |intercept: f64, by: f64| {
            let moved = [intercept, 0.0, 0.0, 0.0, 0.0, 0.6 * libm::exp(by)];
            model.log_likelihood(&data, &moved)
        };
        let step = 1e-3;
        let observed = -(log(0.2, step) - 2.0 * log(0.2, 0.0) + log(0.2, -step)) / (step * step);
        let slope_of_own = (log(0.2, step) - log(0.2, -step)) / (2.0 * step);
        let slope_of_intercept = (log(0.2 + step, 0.0) - log(0.2 - step, 0.0)) / (2.0 * step);
        let found = match scores.observed(&at) {
            ObservedForm::Counts { size, intercept: true, .. } => {
                let mean = libm::exp(0.2);
                own - first + slope_of_own - size / (size + mean) * slope_of_intercept
            }
            _ => own,
        };
        assert!((found - observed).abs() < 2e-3 * (observed.abs() + first), "{kind}: {found} and {observed}");
    }
}

/// The mixed entry of heavy tails, and the share of the information about the linear predictor that is positive, on records of
/// the law itself: quantiles of t with 4 degrees of freedom.
#[test]
fn heavy_tails_have_the_stated_form() {
    let spec = job("student_t", "{ min = -1, max = 1 }", "df = 4.0");
    let model = spec.build_model();
    let (scores, sigma) = (model.scores().unwrap(), 0.02);
    let at = [0.0, 0.0, 0.0, 0.0, 0.0, sigma];
    // The quantile of t4: 2 sqrt((cos(acos(q)/3)/q) - 1) for q = sqrt(4 p (1 - p)).
    let t4 = |p: f64| {
        let q = (4.0 * p * (1.0 - p)).sqrt();
        2.0 * (libm::cos(libm::acos(q) / 3.0) / q - 1.0).max(0.0).sqrt() * (p - 0.5).signum()
    };
    let mut data = records(&spec, &many());
    let count = data.outcome.len();
    data.outcome.iter_mut().enumerate().for_each(|(i, y)| *y = sigma * t4((i as f64 + 0.5) / count as f64));
    let scales = scores.most_information(&at);
    let sums = scores.curvature_sum(&Block::lent(&data), &at, scales).open_components_for_test();
    let first = scales[0] * sums[0] as f64 / 4_294_967_296.0 / DIAGONAL;
    let log = |intercept: f64, by: f64| model.log_likelihood(&data, &[intercept, 0.0, 0.0, 0.0, 0.0, sigma * libm::exp(by)]);
    let h = 1e-2 * sigma;
    let observed = -(log(h, 0.0) - 2.0 * log(0.0, 0.0) + log(-h, 0.0)) / (h * h);
    assert!((first / observed - 1.0).abs() < 0.01, "{first} and {observed}");
    // A shift of the predictor by h leaves the score J h, and the mixed second derivative is the stated factor times that.
    let (h, by) = (0.1 * sigma, 1e-3);
    let slope = |by: f64| (log(h + 1e-5, by) - log(h - 1e-5, by)) / 2e-5;
    let mixed = -(slope(by) - slope(-by)) / (2.0 * by);
    let ObservedForm::HeavyTails { mixed: factor, unit } = scores.observed(&at) else { panic!("heavy tails") };
    assert!((unit / sigma - 1.0).abs() < 1e-12);
    // The score points back, and the mixed entry has its sign.
    assert!((mixed / (factor * slope(0.0)) - 1.0).abs() < 0.05, "{mixed} {factor} {}", slope(0.0));
}

#[test]
fn moments_are_the_sums_of_products_of_coded_columns() {
    let spec = job("linear", "{ min = -1, max = 1 }", "offset = \"o\"");
    let (model, data) = (spec.build_model(), records(&job("linear", "{ min = -1, max = 1 }", "offset = \"o\""), &many()));
    let scores = model.scores().unwrap();
    let (centre, half) = scores.moments_outcome().unwrap();
    assert_eq!((centre, half), (0.0, 1.5));
    let sums = scores.moments_sum(&Block::lent(&data)).unwrap().open_components_for_test();
    let row = |i: usize| {
        let b = 2.0 * data.predictors[1][i] - 1.0;
        let y = (data.outcome[i] - data.auxiliary[0][i] - centre) / half;
        [1.0, data.predictors[0][i], b, data.predictors[2][i], data.predictors[3][i], y]
    };
    let mut sums = sums.into_iter();
    for a in 0..6 {
        for b in a..6 {
            let exact: f64 = (0..1_000).map(|i| row(i)[a] * row(i)[b]).sum();
            let exact = if a == b { DIAGONAL * exact } else { exact };
            let found = sums.next().unwrap() as f64 / 4_294_967_296.0;
            assert!((found - exact).abs() < 0.02, "{a} {b}: {found} and {exact}");
        }
    }
}

/// A record with a value that is not a number adds nothing except the shift of a gradient, which the receiver accounts for in every
/// record.
#[test]
fn an_omitted_record_adds_only_the_shift() {
    for spec in jobs() {
        let (model, at) = (spec.build_model(), theta(&spec));
        let scores = model.scores().unwrap();
        let order = at.len();
        let mut left_out = records(&spec, &[[0.5; 6]]);
        left_out.outcome[0] = f64::NAN;
        left_out.predictors.iter_mut().chain(&mut left_out.auxiliary).for_each(|column| column[0] = f64::NAN);
        let mut frame = plain(order, 40.0);
        frame[order * order] = -0.25;
        let mut shift = vec![0; order];
        shift[0] = (-0.25 * GRADIENT_SCALE).round() as i64;
        assert_eq!(gradient(scores.as_ref(), &left_out, &at, &frame), shift, "{}", spec.model.kind());
        let block = Block::lent(&left_out);
        let curvature = scores.curvature_sum(&block, &at, [1.0, 1.0]).open_components_for_test();
        assert!(curvature.iter().all(|x| *x == 0), "{}: {curvature:?}", spec.model.kind());
        if let Some(moments) = scores.moments_sum(&block) {
            assert!(moments.open_components_for_test().iter().all(|x| *x == 0));
        }
    }
}

/// Any numbers: in bounds, far beyond, infinite, or not a number.
fn anything() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1.0..=1.0_f64,
        1 => -1e6..=1e6_f64,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0, 1.0, -1.0]),
    ]
}

fn hostile(spec: &JobSpec, values: &[f64]) -> ModelData {
    ModelData {
        outcome: vec![values[0]],
        predictors: (1..5).map(|j| vec![values[j]]).collect(),
        auxiliary: spec.model.auxiliary().iter().map(|_| vec![values[5]]).collect(),
        persons: None,
    }
}

fn distance(a: &[i64], b: &[i64]) -> u128 {
    a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b)).pow(2)).sum()
}

proptest! {
    /// Privacy depends on this: whatever two records contain, in any frame and at any scale, replacing one by the other moves a
    /// vector by no more than its charge, and so does adding one.
    #[test]
    fn no_record_moves_a_vector_by_more_than_its_charge(
        one in prop::collection::vec(anything(), 6),
        other in prop::collection::vec(anything(), 6),
        frame in prop::collection::vec(anything(), 42),
        scales in (1e-9..1e9_f64, 1e-9..1e9_f64),
        at in prop::collection::vec(-3.0..3.0_f64, 6),
    ) {
        for spec in jobs() {
            let model = spec.build_model();
            let scores = model.scores().unwrap();
            let order = spec.dimension();
            let mut at = at[..order].to_vec();
            if order > scores.coefficients() {
                at[order - 1] = at[order - 1].abs() + 1e-3;
            }
            let numbers: Vec<f64> = frame.iter().map(|x| if x.is_finite() { *x } else { 0.5 }).collect();
            let numbers = &numbers[..Frame::length(order).min(42)];
            let numbers: Vec<f64> = numbers.iter().copied().cycle().take(Frame::length(order)).collect();
            let data = [hostile(&spec, &one), hostile(&spec, &other)];
            let none = vec![0; order];
            let [a, b] = [0, 1].map(|i| gradient(scores.as_ref(), &data[i], &at, &numbers));
            let most = u128::from(GRADIENT_UNITS).pow(2);
            prop_assert!(distance(&a, &none) <= most && distance(&b, &none) <= most && distance(&a, &b) <= 4 * most);

            let within = |sums: [Vec<i64>; 2], squares: u64| {
                let (replaced, added) = (Moves::trace(squares, 1).sensitivity(PrivacyUnit::row(Adjacency::Replace)).unwrap(), Moves::trace(squares, 1).sensitivity(PrivacyUnit::row(Adjacency::AddRemove)).unwrap());
                let none = vec![0; sums[0].len()];
                distance(&sums[0], &sums[1]) <= u128::from(replaced.units()).pow(2)
                    && sums.iter().all(|sum| distance(sum, &none) <= u128::from(added.units()).pow(2))
            };
            let own = (order - scores.coefficients()) as u64;
            let scales = [scales.0, scales.1];
            let curvature = |data: &ModelData| scores.curvature_sum(&Block::lent(data), &at, scales).open_components_for_test();
            prop_assert!(within([curvature(&data[0]), curvature(&data[1])], scores.most_squares() + own));
            if scores.moments_outcome().is_some() {
                let moments = |data: &ModelData| scores.moments_sum(&Block::lent(data)).unwrap().open_components_for_test();
                prop_assert!(within([moments(&data[0]), moments(&data[1])], scores.most_squares() + 1));
            }
        }
    }
}

/// Slopes in the coefficients and in the family's own parameter that nearly cancel: each is many times the limit, and their sum
/// little above it. A vector that is shortened, and whose weights are then truncated to integers one by one, is no longer than
/// its charge, and nearly as long.
#[test]
fn truncated_parts_that_cancel_stay_within_the_charge() {
    let mut longest = 0.0_f64;
    for spec in [job("linear", "{ min = -1, max = 1 }", ""), job("negative_binomial", "{ min = 0, max = 8 }", "")] {
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        let d = scores.parameters();
        let most = u128::from(GRADIENT_UNITS).pow(2);
        for case in 0..4_000_u32 {
            let u = [0.618, 0.382, 0.755, 0.57, 0.414, 0.236].map(|step| (f64::from(case) * step + 0.03).fract());
            let data = records(&spec, &[u]);
            // Both parts along one direction, in any ratio: in some of the cases they nearly cancel.
            let (a, h) = ((6.0 * u[4]).exp(), (6.0 * u[5]).exp() * if case % 2 == 0 { 1.0 } else { -1.0 });
            let direction = (d as f64).sqrt().recip();
            let mut numbers = vec![0.0; Frame::length(d)];
            for k in 0..d {
                numbers[k * d] = a * direction;
                numbers[k * d + d - 1] = h * direction;
                numbers[d * d + k] = 0.3 * direction * (u[3] - 0.5);
            }
            let mut at = theta(&spec);
            at[d - 1] = 0.2 + u[2];
            let vector = gradient(scores.as_ref(), &data, &at, &numbers);
            let squares = distance(&vector, &vec![0; d]);
            assert!(squares <= most, "{case}: {squares} of {most}");
            longest = longest.max(squares as f64 / most as f64);
        }
    }
    // A vector slightly too long is shortened slightly.
    assert!(longest > 0.99, "{longest}");
}

/// The bound on moments is attained up to its allowance for rounding, by records whose vectors are orthogonal.
#[test]
fn the_bound_on_moments_is_attained() {
    let spec = JobSpec::parse(
        "name = \"s\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\", \"z\"]\n[columns]\n\
         y = { min = -1, max = 1 }\nx = { min = -1, max = 1 }\nz = { min = -1, max = 1 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
    )
    .unwrap();
    let model = spec.build_model();
    let scores = model.scores().unwrap();
    let sums = |y: f64, x: f64, z: f64| {
        let data = ModelData { outcome: vec![y], predictors: vec![vec![x], vec![z]], ..ModelData::default() };
        scores.moments_sum(&Block::lent(&data)).unwrap().open_components_for_test()
    };
    let moved = distance(&sums(1.0, 1.0, 1.0), &sums(-1.0, -1.0, 1.0)) as f64;
    let charged =
        Moves::trace(scores.most_squares() + 1, 1).sensitivity(PrivacyUnit::row(Adjacency::Replace)).unwrap().units() as f64;
    assert!(moved.sqrt() <= charged && moved.sqrt() > 0.999 * charged, "{} of {charged}", moved.sqrt());
}
