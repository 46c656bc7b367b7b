//! No record that may be declared is longer than a step's frame: its vector is never shortened, and the bound on the remainder holds for it.

use proptest::prelude::*;

use crate::job::JobSpec;
use crate::mechanism::GRADIENT_UNITS;
use crate::model::{Block, Frame, GRADIENT_SCALE, ModelData};
use crate::sampler::hmc::coordinates::Coordinates;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::score_way::Found;
use crate::sampler::noisy_statistics::scores::frame_numbers;
use crate::sampler::target::Target;

/// The family's name, its outcome's column, and what else its model says.
const FAMILIES: [(&str, &str, &str); 4] = [
    ("logistic", "{ binary = true }", ""),
    ("poisson", "{ min = 0, max = 6 }", ""),
    ("linear", "{ min = -1, max = 1 }", "sd = 0.3"),
    ("student_t", "{ min = -1, max = 1 }", "df = 4.0"),
];

fn job((kind, outcome, more): (&str, &str, &str), predictors: usize) -> JobSpec {
    let names: Vec<String> = (0..predictors).map(|j| format!("x{j}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    JobSpec::parse(&format!(
        "name = \"f\"\nparties = [\"a\"]\nalgorithm = \"hmc\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = {names:?}\n{more}\n\
         [columns]\ny = {outcome}\n{columns}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// An outcome of a family, of a number in [0, 1].
fn outcome(kind: &str, u: f64) -> f64 {
    match kind {
        "logistic" => f64::from(u8::from(u > 0.5)),
        "poisson" => (6.0 * u).round() / 3.0 - 1.0,
        _ => 2.0 * u - 1.0,
    }
}

/// The farthest that a record's image lies from 0 in the frame of a point, where 1 is what is charged.
fn farthest(spec: &JobSpec, at: &[f64], seed: f64, centred: f64, records: &[(Vec<f64>, f64)]) -> f64 {
    let target = Target::new(spec);
    let scores = target.model.scores().unwrap();
    let d = scores.parameters();
    let mixed = Matrix::from_fn(d, |i, j| 0.1 * ((1 + i * 7 + j * 13) as f64 * seed).sin() + if i == j { 0.2 } else { 0.0 });
    let covariance = mixed.times(&mixed.transposed()).symmetrised();
    let coding = Coding::new(&scores.coding(), d);
    let near: Vec<f64> = at.iter().map(|t| 0.9 * t).collect();
    let found = Found {
        sharp: true,
        mean: coding.coded(&near),
        coding: coding.clone(),
        centred,
        error: covariance.clone(),
        covariance: covariance.clone(),
    };
    let coordinates = Coordinates::new(&target, scores.as_ref(), found);
    let theta = target.space.theta(at);
    // Twice as wide as it is asked: what is too long is seen whole.
    let wide = coordinates.at(scores.as_ref(), &theta).unwrap().frame.shrunk(2.0);
    let numbers = frame_numbers(&coding, &wide);
    let length = |(x, y): &(Vec<f64>, f64)| {
        let data = ModelData { outcome: vec![*y], predictors: x.iter().map(|x| vec![*x]).collect(), ..ModelData::default() };
        let frame = Frame::new(&numbers, d).unwrap();
        let sum = scores.gradient_sum(&Block::lent(&data), &theta, frame).open_components_for_test();
        2.0 * sum.iter().map(|units| (*units as f64 / GRADIENT_SCALE).powi(2)).sum::<f64>().sqrt()
    };
    assert!(GRADIENT_SCALE < GRADIENT_UNITS as f64);
    records.iter().map(length).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Few predictors and many, inner points and corners, with the frame's own centre and around 0.
    #[test]
    fn no_record_is_longer_than_a_frame(
        which in 0..4_usize,
        predictors in prop_oneof![Just(1_usize), Just(3), Just(8), Just(9)],
        coefficients in prop::collection::vec(-1.2..1.2_f64, 11),
        u in prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 10), 150),
        seed in 0.1..3.0_f64,
        centred in prop_oneof![Just(0.0), Just(1e4)],
    ) {
        let family = FAMILIES[which];
        let spec = job(family, predictors);
        let mut at: Vec<f64> = coefficients[..spec.dimension()].to_vec();
        if family.0 == "student_t" {
            at[predictors + 1] -= 1.5;
        }
        // A third of the numbers at either end: edges are where records lie farthest.
        let number = |u: &f64| (3.0 * (u - 0.5)).clamp(-1.0, 1.0);
        let records: Vec<(Vec<f64>, f64)> =
            u.iter().map(|u| (u[..predictors].iter().map(number).collect(), outcome(family.0, 0.5 + 0.5 * number(&u[9])))).collect();
        let farthest = farthest(&spec, &at, seed, centred, &records);
        prop_assert!(farthest <= 1.0, "{} of {predictors}: {farthest}", family.0);
        // Nor is it much wider than it has to be.
        if predictors == 1 && centred == 0.0 && family.0 != "student_t" {
            prop_assert!(farthest > 0.97, "{} of {predictors}: {farthest}", family.0);
        }
    }
}
