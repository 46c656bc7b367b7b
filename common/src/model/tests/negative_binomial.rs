use super::poisson::{COLUMNS, count, eta};
use super::*;

fn density(r: &Record, theta: &[f64]) -> f64 {
    let (y, a) = (count(r), theta[theta.len() - 1]);
    let eta = eta(r, &theta[..theta.len() - 1]);
    let rising: f64 = (0..y as u32).map(|i| (a * f64::from(i)).ln_1p()).sum();
    let log_a_mu = a.ln() + eta;
    rising + y * eta - (y + 1.0 / a) * (log_a_mu.max(0.0) + (-log_a_mu.abs()).exp().ln_1p())
}

pub(super) fn case() -> Case {
    let text = "kind = \"negative_binomial\"\noutcome = \"y\"\npredictors = [\"a\", \"c\"]\nexposure = \"days\"";
    let case = Case::new("negative_binomial", text, COLUMNS, density);
    Case { scales: [0.1, 1.0, 2.0, 6.0], ..case }
}

#[test]
fn a_small_dispersion_is_a_poisson_regression() {
    let model = case().model;
    let plain =
        job("kind = \"poisson\"\noutcome = \"y\"\npredictors = [\"a\", \"c\"]\nexposure = \"days\"", COLUMNS, "").build_model();
    let mut rng = ChaCha20Rng::seed_from_u64(51);
    let rows: Vec<Record> = (0..50).map(|_| case().record(&mut rng)).collect();
    let ratio =
        |model: &dyn Model, a: &[f64], b: &[f64]| model.log_likelihood(&shard(&rows), b) - model.log_likelihood(&shard(&rows), a);
    let negative = ratio(&*model, &[1.0, 0.3, 0.2, 1e-9], &[1.2, 0.1, 0.3, 1e-9]);
    assert!((negative - ratio(&*plain, &[1.0, 0.3, 0.2], &[1.2, 0.1, 0.3])).abs() < 1e-4);
    assert_eq!(model.parameter_names()[3], "dispersion");
    assert_eq!(model.to_original(&[1.0, 0.3, 0.2, 0.7])[3], 0.7);
}
