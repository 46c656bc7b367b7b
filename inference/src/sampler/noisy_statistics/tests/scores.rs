#![allow(clippy::unwrap_used)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::sampler::noisy_statistics::starting_point::StartingPoint;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::{Block, Frame, ModelData};

fn job(kind: &str, outcome: &str, more: &str) -> JobSpec {
    let predictors = if kind == "weibull" { "event = \"b\"" } else { "predictors = [\"x\", \"b\"]" };
    JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n{predictors}\n\
         {more}\n[columns]\ny = {outcome}\nx = {{ min = -1, max = 1 }}\nb = {{ binary = true }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Returns a record within its declared bounds, mostly at an edge.
fn record(spec: &JobSpec, rng: &mut ChaCha20Rng) -> ModelData {
    let mut number =
        || if rng.random_bool(0.3) { [-1.0, 1.0][usize::from(rng.random_bool(0.5))] } else { rng.random_range(-1.0..1.0) };
    let (y, x) = (number(), number());
    let b = f64::from(u8::from(rng.random_bool(0.5)));
    let (outcome, predictors, auxiliary) = match spec.model.kind() {
        "weibull" => (y, vec![], vec![vec![b]]),
        "logistic" => (f64::from(u8::from(y > 0.0)), vec![vec![x], vec![b]], vec![]),
        _ => (y, vec![vec![x], vec![b]], vec![]),
    };
    ModelData { outcome: vec![outcome], predictors, auxiliary, persons: None }
}

/// A frame is built from some of the possible records. No other record may lie outside it: it would be shortened, and the sum
/// would belong to another posterior.
#[test]
fn no_record_within_its_bounds_is_shortened() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for spec in [
        job("logistic", "{ binary = true }", ""),
        job("poisson", "{ min = 0, max = 20 }", ""),
        job("negative_binomial", "{ min = 0, max = 20 }", ""),
        job("negative_binomial", "{ min = 2, max = 300 }", ""),
        job("student_t", "{ min = -1, max = 1 }", "df = 4.0"),
        job("weibull", "{ min = 0.1, max = 12 }", ""),
    ] {
        let target = Target::new(&spec);
        let scores = target.model.scores().unwrap();
        let parties = [PartyMetadata::rows(900)];
        let starting_point = StartingPoint::of(&target, scores.as_ref(), &parties);
        let order = target.space.dimension();
        for case in 0..60 {
            let at: Vec<f64> = (0..order).map(|_| rng.random_range(-1.5..1.5)).collect();
            let theta = target.space.theta_inside(&spec, &starting_point.coding.plain(&at));
            let root = Matrix::from_fn(order, |_, _| rng.random_range(-1.0..1.0));
            let weight = root.times(&root.transposed()).plus(&Matrix::identity(order), 0.05).symmetrised().scaled(0.01);
            let gradient_query = GradientQuery::new(scores.as_ref(), &starting_point.coding, (theta, at), &weight, case % 2 == 0);
            let frame = Frame::new(&gradient_query.frame, order).unwrap();
            for _ in 0..200 {
                let data = record(&spec, &mut rng);
                let vector = scores.gradient_sum(&Block::lent(&data), &gradient_query.theta, frame).open_components_for_test();
                let length = vector.iter().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt() / GRADIENT_UNITS as f64;
                // A shortened record has length 1 up to rounding.
                assert!(
                    length < 0.999_99,
                    "{} at {:?}: y {:?} x {:?} has length {length}",
                    spec.model.kind(),
                    gradient_query.theta,
                    data.outcome,
                    data.predictors
                );
            }
        }
    }
}
