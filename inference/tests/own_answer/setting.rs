//! Simulated regressions of several owners: records of the model itself, and the jobs about them.

use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal, StudentT};

/// Greatest declared count.
const MOST: f64 = 60.0;

/// A model with an intercept and three predictors in [-1, 1], and an own parameter in some.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Setting {
    Logistic,
    NegativeBinomial,
    StudentT,
}

impl Setting {
    /// Returns the true parameters.
    pub(crate) fn truth(self) -> Vec<f64> {
        match self {
            Self::Logistic => vec![-1.0, 0.5, -0.3, 0.8],
            Self::NegativeBinomial => vec![0.8, -0.3, 0.5, 0.2, 0.8],
            Self::StudentT => vec![0.1, -0.2, 0.15, 0.1, 0.1],
        }
    }

    /// Returns a parameter on the scale of its normal approximation: the logarithm of an own parameter.
    pub(crate) fn scaled(self, j: usize, value: f64) -> f64 {
        if j < 4 { value } else { value.ln() }
    }

    /// Returns one owner's records as its job reads them.
    pub(crate) fn records(self, n: usize, rng: &mut ChaCha20Rng) -> ModelData {
        let truth = self.truth();
        let mut data = ModelData { predictors: vec![Vec::new(); 3], ..ModelData::default() };
        for _ in 0..n {
            let normal: f64 = StandardNormal.sample(rng);
            let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
            let x = [sign, rng.random_range(-1.0..1.0), (0.5 * normal).clamp(-1.0, 1.0)];
            let eta = truth[0] + x.iter().zip(&truth[1..]).map(|(x, t)| x * t).sum::<f64>();
            data.outcome.push(self.outcome(eta, &truth, rng));
            data.predictors.iter_mut().zip(x).for_each(|(column, x)| column.push(x));
        }
        data
    }

    /// Draws an outcome, scaled to its declared bounds.
    fn outcome(self, eta: f64, truth: &[f64], rng: &mut ChaCha20Rng) -> f64 {
        let count = |mean: f64, rng: &mut ChaCha20Rng| -> f64 {
            let y: f64 = if mean > 1e-9 { Poisson::new(mean).unwrap().sample(rng) } else { 0.0 };
            2.0 * y.min(MOST) / MOST - 1.0
        };
        match self {
            Self::Logistic => f64::from(u8::from(rng.random_bool(1.0 / (1.0 + (-eta).exp())))),
            Self::NegativeBinomial => {
                let frailty: f64 = Gamma::new(1.0 / truth[4], truth[4]).unwrap().sample(rng);
                count(eta.exp() * frailty, rng)
            }
            Self::StudentT => {
                let error: f64 = StudentT::new(4.0).unwrap().sample(rng);
                (eta + truth[4] * error).clamp(-1.0, 1.0)
            }
        }
    }

    /// Returns a job of this many owners; `more` holds its further keys.
    pub(crate) fn spec(self, owners: usize, epsilon: f64, more: &str) -> JobSpec {
        let (kind, outcome, key) = match self {
            Self::Logistic => ("logistic", "{ binary = true }", "weights = \"never\""),
            Self::NegativeBinomial => ("negative_binomial", "{ min = 0, max = 60 }", "weights = \"never\""),
            Self::StudentT => ("student_t", "{ min = -1, max = 1 }", "df = 4.0"),
        };
        let parties: Vec<String> = (0..owners).map(|i| format!("p{i}")).collect();
        let prior: String = ["intercept", "x0", "x1", "x2"].iter().map(|name| format!("{name} = \"normal(0, 2.5)\"\n")).collect();
        let columns: String = (0..3).map(|j| format!("x{j} = {{ min = -1, max = 1 }}\n")).collect();
        let text = format!(
            "name = \"r\"\nalgorithm = \"noisy-statistics\"\nparties = {parties:?}\n{more}[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
             predictors = [\"x0\", \"x1\", \"x2\"]\n{key}\n[columns]\ny = {outcome}\n{columns}[prior]\n{prior}\
             [sampler]\ndraws = 200\nforce = true\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
        );
        JobSpec::parse(&text).unwrap()
    }
}
