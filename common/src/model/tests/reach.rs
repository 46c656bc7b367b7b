//! Reach of records' gradients: never beyond the stated bound, and close to it.

use proptest::prelude::*;

use super::super::ScoreModel;
use super::scores::{job, records};
use crate::job::JobSpec;
use conclave_privacy::pass::{Block, Frame, GRADIENT_SCALE, ModelData};

fn jobs() -> Vec<JobSpec> {
    vec![
        job("logistic", "{ binary = true }", "offset = \"o\""),
        job("linear", "{ min = -1, max = 1 }", "sd = 0.4"),
        job("linear", "{ min = -1, max = 1 }", "offset = \"o\""),
        job("poisson", "{ min = 0, max = 8 }", "power = 0.25\noffset = \"o\""),
        job("student_t", "{ min = -1, max = 1 }", "df = 4.0"),
        job("student_t", "{ min = -1, max = 1 }", "df = 1.5\noffset = \"o\""),
        job("logistic", "{ binary = true }", "intercept = false"),
        job("student_t", "{ min = -1, max = 1 }", "df = 3000.0"),
        // The following tests count products of columns as if they were free.
        with_products(),
    ]
}

fn with_products() -> JobSpec {
    JobSpec::parse(
        "name = \"s\"\nparties = [\"a\"]\n[model]\nkind = \"student_t\"\noutcome = \"y\"\npredictors = [\"x\", \"b\", \"w\", \"x:w\", \"x:b\"]\ndf = 4.0\n\
         [columns]\ny = { min = -1, max = 1 }\nx = { min = -1, max = 1 }\nb = { binary = true }\nw = { levels = [\"p\", \"q\", \"r\"] }\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
    )
    .unwrap()
}

/// Returns the lengths of records' images, of rows and a shift small enough that none is shortened.
fn lengths(scores: &dyn ScoreModel, data: &ModelData, theta: &[f64], numbers: &[f64]) -> Vec<f64> {
    let of = |i: usize| {
        let one = |columns: &[Vec<f64>]| columns.iter().map(|column| vec![column[i]]).collect::<Vec<_>>();
        let data = ModelData {
            outcome: vec![data.outcome[i]],
            predictors: one(&data.predictors),
            auxiliary: one(&data.auxiliary),
            persons: None,
        };
        let frame = Frame::new(numbers, theta.len()).unwrap();
        let sum = scores.gradient_sum(&Block::lent(&data), theta, frame).open_components_for_test();
        sum.iter().map(|units| (*units as f64 / GRADIENT_SCALE).powi(2)).sum::<f64>().sqrt()
    };
    (0..data.outcome.len()).map(of).collect()
}

/// Replaces the data's own columns with a design that includes interactions.
fn designed(spec: &JobSpec, data: ModelData) -> ModelData {
    let [x, b, q, r] = [0, 1, 2, 3].map(|j| data.predictors[j].clone());
    let times = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f64>>();
    let by_levels = [times(&x, &q), times(&x, &r)];
    let more = if spec.dimension() == 9 { [&by_levels[..], &[times(&x, &b)]].concat() } else { vec![] };
    ModelData { predictors: data.predictors.into_iter().chain(more).collect(), ..data }
}

/// Images of gradients.
trait Images: Fn(&[f64]) -> Vec<f64> {}
impl<F: Fn(&[f64]) -> Vec<f64>> Images for F {}
/// A frame's numbers, times a factor.
trait Numbers: Fn(f64) -> Vec<f64> {}
impl<F: Fn(f64) -> Vec<f64>> Numbers for F {}

/// Returns affine images of a gradient, and the frame's numbers for them, scaled by `by`.
fn image(d: usize, seed: f64, shift: f64) -> (impl Images, impl Numbers) {
    let entry = move |i: usize| (1.0 + i as f64 * (seed + 0.37)).sin() + if i.is_multiple_of(d + 1) { 0.5 } else { 0.0 };
    let moved = move |k: usize| shift * (2.0 + k as f64 * seed).cos();
    let of = move |g: &[f64]| (0..d).map(|k| (0..d).map(|j| entry(k * d + j) * g[j]).sum::<f64>() + moved(k)).collect();
    let numbers = move |by: f64| (0..d * d).map(entry).chain((0..d).map(moved)).map(|x| by * x).collect();
    (of, numbers)
}

/// Returns random records and records at the ends; a third of each number at either end.
fn data(spec: &JobSpec, u: &[[f64; 6]]) -> ModelData {
    let ends: Vec<[f64; 6]> = u.iter().map(|u| u.map(|u| (3.0 * u - 1.0).clamp(0.0, 1.0))).collect();
    designed(spec, records(spec, &ends))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_record_exceeds_the_reach(
        which in 0..9_usize,
        u in prop::collection::vec(prop::array::uniform6(0.0..1.0_f64), 200),
        at in prop::collection::vec(-1.5..1.5_f64, 9),
        seed in 0.1..3.0_f64,
        shift in prop_oneof![Just(0.0), 0.0..3.0_f64],
    ) {
        let spec = &jobs()[which];
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        let d = scores.parameters();
        let mut theta = at[..d].to_vec();
        if d > scores.coefficients() {
            theta[d - 1] = (theta[d - 1] - 1.0).exp();
        }
        let (of, numbers) = image(d, seed, shift);
        let reach = scores.reach(&theta, &of).unwrap();
        let longest = lengths(scores.as_ref(), &data(spec, &u), &theta, &numbers(0.5 / reach)).into_iter().fold(0.0, f64::max);
        prop_assert!(longest <= 0.5 * (1.0 + 1e-5), "{} of {which}", 2.0 * longest);
    }
}

/// Over a fine grid of all records of one numeric predictor, some come close to the stated reach.
#[test]
fn some_record_nearly_reaches_the_bound() {
    for (which, spec) in jobs().iter().take(8).enumerate() {
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        let d = scores.parameters();
        let grid = |k: usize| k as f64 / 40.0;
        let levels = [0.1, 0.5, 0.9];
        let records: Vec<[f64; 6]> = (0..41)
            .flat_map(|y| (0..41).map(move |x| (y, x)))
            .flat_map(|(y, x)| {
                (0..12).map(move |k| [grid(y), grid(x), f64::from(k as u8 % 2), levels[k / 2 % 3], f64::from(k as u8 / 6), 0.0])
            })
            .collect();
        let data = designed(spec, super::scores::records(spec, &records));
        for seed in [0.3, 1.1, 2.3] {
            let mut theta: Vec<f64> = (0..d).map(|j| 1.3 * (seed * (j + 1) as f64).sin()).collect();
            if d > scores.coefficients() {
                theta[d - 1] = 0.3;
            }
            let (of, numbers) = image(d, seed, seed - 0.3);
            let reach = scores.reach(&theta, &of).unwrap();
            let longest = lengths(scores.as_ref(), &data, &theta, &numbers(0.5 / reach)).into_iter().fold(0.0, f64::max);
            // Half a per cent for the halving, one for the body of slopes, and the gaps between the grid's records.
            assert!((0.98..=1.0 + 1e-5).contains(&(2.0 * longest)), "{} of {which} at {seed}", 2.0 * longest);
        }
    }
}
