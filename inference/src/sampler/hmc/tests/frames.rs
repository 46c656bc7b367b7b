//! No record within the declared bounds is longer than a step's frame: its vector is never shortened, and the bound on the
//! remainder holds for it.

use proptest::prelude::*;

use crate::sampler::hmc::coordinates::Coordinates;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::frame::Frame as Shape;
use crate::sampler::noisy_statistics::score_strategy::Found;
use crate::sampler::noisy_statistics::scores::frame_numbers;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::{Block, Frame, GRADIENT_SCALE, ModelData};

/// Name of the family, column of its outcome, and further lines of its model.
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

/// Returns an outcome of a family from a number in [0, 1].
fn outcome(kind: &str, u: f64) -> f64 {
    match kind {
        "logistic" => f64::from(u8::from(u > 0.5)),
        "poisson" => (6.0 * u).round() / 3.0 - 1.0,
        _ => 2.0 * u - 1.0,
    }
}

/// Returns a frame at a point, for coordinates around a place near it.
fn frame_at(spec: &JobSpec, at: &[f64], seed: f64, centred: f64) -> (Coding, Shape) {
    let target = Target::new(spec);
    let scores = target.model.scores().unwrap();
    let d = scores.parameters();
    let mixed = Matrix::from_fn(d, |i, j| 0.1 * ((1 + i * 7 + j * 13) as f64 * seed).sin() + if i == j { 0.2 } else { 0.0 });
    let covariance = mixed.times(&mixed.transposed()).symmetrised();
    let coding = Coding::new(&scores.coding(), 1, d);
    let near: Vec<f64> = at.iter().map(|t| 0.9 * t).collect();
    let found = Found {
        sharp: true,
        frame: None,
        mean: coding.coded(&near),
        coding: coding.clone(),
        centred,
        error: covariance.clone(),
        covariance: covariance.clone(),
    };
    let coordinates = Coordinates::new(&target, scores.as_ref(), found);
    let frame = coordinates.at(scores.as_ref(), &target.space.theta(at)).unwrap().frame;
    (coding, frame)
}

/// Returns the distance of each record's image from 0 in a frame `wider` times as wide; 1 is the charged length in the frame
/// itself.
fn lengths(spec: &JobSpec, at: &[f64], (coding, frame): &(Coding, Shape), wider: f64, records: &[(Vec<f64>, f64)]) -> Vec<f64> {
    assert!(GRADIENT_SCALE < GRADIENT_UNITS as f64);
    let target = Target::new(spec);
    let scores = target.model.scores().unwrap();
    let numbers = frame_numbers(coding, &frame.clone().shrunk(wider));
    let length = |(x, y): &(Vec<f64>, f64)| {
        let data = ModelData { outcome: vec![*y], predictors: x.iter().map(|x| vec![*x]).collect(), ..ModelData::default() };
        let frame = Frame::new(&numbers, scores.parameters()).unwrap();
        let sum = scores.gradient_sum(&Block::lent(&data), &target.space.theta(at), frame).open_components_for_test();
        wider * sum.iter().map(|units| (*units as f64 / GRADIENT_SCALE).powi(2)).sum::<f64>().sqrt()
    };
    records.iter().map(length).collect()
}

/// Many levels beside a number, many binary columns, and rates far above the counts: the arithmetic's margin for lengths is
/// widest there. A vector that it shortens is shorter than in a frame so wide that none is shortened.
#[test]
fn no_record_is_shortened_by_the_arithmetic() {
    let levels: Vec<String> = (0..30).map(|j| format!("\"{j}\"")).collect();
    let binaries: Vec<String> = (0..10).map(|j| format!("x{j}")).collect();
    let text = |kind: &str, outcome: &str, predictors: &str, columns: &str| {
        JobSpec::parse(&format!(
            "name = \"f\"\nparties = [\"a\"]\nalgorithm = \"hmc\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = {predictors}\n\
             [columns]\ny = {outcome}\n{columns}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        ))
        .unwrap()
    };
    let number = "{ min = -1, max = 1 }";
    let of_levels = |level: usize, x: f64| (0..29).map(|k| f64::from(u8::from(k + 1 == level))).chain([x]).collect::<Vec<f64>>();
    let columns: String = binaries.iter().map(|name| format!("{name} = {{ binary = true }}\n")).collect();
    let both = |x: Vec<f64>| [(x.clone(), 0.0), (x, 1.0)];
    let cases = [
        (
            text(
                "logistic",
                "{ binary = true }",
                "[\"w\", \"x\"]",
                &format!("w = {{ levels = [{}] }}\nx = {number}", levels.join(", ")),
            ),
            (0..60).flat_map(|k| both(of_levels(k / 2, f64::from(2 * (k as u8 % 2)) - 1.0))).collect::<Vec<_>>(),
            0.3,
        ),
        (
            text("logistic", "{ binary = true }", &format!("{binaries:?}"), &columns),
            (0..1024_u32).flat_map(|k| both((0..10).map(|j| f64::from(k >> j & 1)).collect())).collect(),
            0.4,
        ),
        (
            text("poisson", "{ min = 0, max = 8 }", "[\"x\", \"z\"]", &format!("x = {number}\nz = {number}")),
            (0..81)
                .flat_map(|k| [-1.0, 1.0].map(|y| (vec![f64::from(k % 9) / 4.0 - 1.0, f64::from(k / 9) / 4.0 - 1.0], y)))
                .collect(),
            2.2,
        ),
    ];
    for (spec, records, steep) in cases {
        for (seed, centred) in [(0.4, 0.0), (1.7, 1e4), (2.9, 0.0)] {
            let at: Vec<f64> = (0..spec.dimension()).map(|j| steep * (seed + 1.9 * j as f64).cos()).collect();
            let frame = frame_at(&spec, &at, seed, centred);
            let [here, wide] = [1.0, 16.0].map(|wider| lengths(&spec, &at, &frame, wider, &records));
            for (here, wide) in here.iter().zip(&wide) {
                assert!(*wide <= 1.0 && (here - wide).abs() < 1e-4, "{} at {seed}: {here}, not {wide}", spec.model.kind());
            }
        }
    }
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
        // A third of the numbers at either end: records lie farthest at the edges.
        let number = |u: &f64| (3.0 * (u - 0.5)).clamp(-1.0, 1.0);
        let mut records: Vec<(Vec<f64>, f64)> =
            u.iter().map(|u| (u[..predictors].iter().map(number).collect(), outcome(family.0, 0.5 + 0.5 * number(&u[9])))).collect();
        if predictors == 1 {
            // At random, one list in 300 has none at the farthest corner.
            records.extend([(-1.0, 0.0), (-1.0, 1.0), (1.0, 0.0), (1.0, 1.0)].map(|(x, y)| (vec![x], outcome(family.0, y))));
        }
        let frame = frame_at(&spec, &at, seed, centred);
        // Twice as wide as needed, so that a vector that is too long is not shortened.
        let farthest = lengths(&spec, &at, &frame, 2.0, &records).into_iter().fold(0.0, f64::max);
        prop_assert!(farthest <= 1.0, "{} of {predictors}: {farthest}", family.0);
        // The frame is not much wider than necessary either.
        if predictors == 1 && centred == 0.0 && family.0 != "student_t" {
            prop_assert!(farthest > 0.97, "{} of {predictors}: {farthest}", family.0);
        }
    }
}
