//! A job converted to another algorithm.

use super::{batch, sampler, sites};
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::privacy_spec::ReleaseSpec;
use crate::job::sampler_spec::{BarkerSpec, HmcSpec, StochasticSpec};
use crate::job::spec::JobSpec;
use crate::job::weights::Weights;
use conclave_privacy::mechanism::NoiseScale;

impl JobSpec {
    /// Returns the same job for this algorithm, with algorithm-specific settings at their defaults. Returns the job itself if the
    /// algorithm is its own.
    ///
    /// # Errors
    /// The reason why the algorithm does not support the job's model. `penalty-exp-family` is always refused, since its noise
    /// requires a job of its own.
    pub fn by(&self, algorithm: Algorithm) -> Result<Self, JobError> {
        if algorithm == self.algorithm {
            return Ok(self.clone());
        }
        if algorithm == Algorithm::PenaltyExpFamily {
            return Err(JobError::new(
                "algorithm",
                "the noise of its sums can only be derived for a job that names this algorithm",
            ));
        }
        let mut spec = Self { algorithm, chosen: None, extends: None, release: ReleaseSpec::default(), ..self.clone() };
        if algorithm != Algorithm::NoisyStatistics {
            spec.weights = Weights::Never;
        }
        (spec.sampler.hmc, spec.sampler.barker, spec.sampler.stochastic) =
            (HmcSpec::default(), BarkerSpec::default(), StochasticSpec::default());
        batch::forget(&mut spec);
        sampler::forget_locate(&mut spec.sampler);
        if algorithm.declaration().usual_length != self.algorithm.declaration().usual_length {
            sampler::usual_length(&mut spec.sampler, algorithm);
        }
        if !algorithm.proposes() || algorithm.follows_gradients() {
            (spec.privacy.clip, spec.privacy.clip_watch_share) = (None, 0.0);
        }
        if self.algorithm != Algorithm::Penalty {
            let sd = spec.sampler.proposal.total_noise_sd() / (spec.parties.len() as f64).sqrt();
            spec.privacy.noise = NoiseScale::from_sd(sd).map_err(|e| JobError::new("privacy.noise_sd", e.to_string()))?;
        }
        sites::check(&spec)?;
        (algorithm.declaration().check)(&spec)?;
        (algorithm.declaration().resolve)(spec, true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(model: &str, more: &str) -> JobSpec {
        JobSpec::parse(&format!(
            "name = \"o\"\n{more}parties = [\"a\", \"b\"]\n[model]\n{model}\n[columns]\ny = {{ min = 0, max = 8 }}\nu = {{ min = 0, max = 1 }}\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        ))
        .unwrap()
    }

    #[test]
    fn another_algorithm_is_one_that_the_model_allows() {
        let allowed = |spec: &JobSpec| {
            let all = [Algorithm::NoisyStatistics, Algorithm::Augmentation, Algorithm::Penalty];
            all.map(|algorithm| spec.by(algorithm).is_ok())
        };
        let linear = "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"u\"]\n";
        assert_eq!(allowed(&job("kind = \"poisson_mean\"\noutcome = \"y\"", "")), [true, true, true]);
        assert_eq!(allowed(&job(linear, "")), [true, true, true]);
        assert_eq!(allowed(&job(&format!("{linear}sd = 1.0"), "algorithm = \"penalty\"\n")), [true, true, true]);
        assert_eq!(
            allowed(&job("kind = \"gaussian_mixture\"\noutcome = \"y\"\nsd = 1.0", "algorithm = \"penalty\"\n")),
            [false, false, true]
        );
    }

    /// The result is the same as if the job file had named the algorithm.
    #[test]
    fn the_defaults_are_those_of_a_job_that_names_it() {
        let model = "kind = \"poisson_mean\"\noutcome = \"y\"";
        let named = |name: &str| job(model, &format!("algorithm = \"{name}\"\n"));
        let regression = "kind = \"poisson\"\noutcome = \"y\"\npredictors = [\"u\"]";
        for (from, to) in [("penalty", "hmc"), ("hmc", "penalty"), ("noisy-statistics", "hmc"), ("hmc", "noisy-statistics")] {
            let named = |name: &str| job(regression, &format!("algorithm = \"{name}\"\n"));
            let to = named(to);
            assert_eq!(named(from).by(to.algorithm).unwrap(), to, "{from}");
        }
        for from in ["penalty", "noisy-statistics", "augmentation", "penalty-exp-family"] {
            for to in ["penalty", "noisy-statistics", "augmentation"] {
                let to = named(to);
                assert_eq!(named(from).by(to.algorithm).unwrap(), to, "{from}");
            }
        }
    }
}
