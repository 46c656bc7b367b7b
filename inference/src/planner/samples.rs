//! Samples of the records: what they take from the effective draws, and when they save reading.
//!
//! In posterior sds a sample of the part `q` of the records adds the variance `V_s = tau (1 - q)/q` to a gradient, `tau` the power that the likelihood
//! is raised to. A chain walks at some noise `v`, to which the parties may add what is left: at one budget `kappa = 1 - V_s/v` of the effective
//! draws are left. As the noise is `v` all the same, a draw takes as many steps, and each reads the part `q` of the records; but for `sgnht`, whose thermostat
//! takes the samples' noise up beside the parties' and so makes more steps of a draw. Without tempering, `kappa` is soon gone. Where
//! the likelihood is tempered, the least `q` whose samples add a tenth of `v` at most is `tau / (tau + v/10)`.

use crate::sampler::engine;
use conclave_common::job::{Algorithm, JobSpec};

/// The part of a chain's noise that samples may add.
const ADDED: f64 = 0.1;
/// The power of a likelihood below which samples are worth a word.
const TEMPERED: f64 = 0.1;

/// The least part of the records whose samples add no more than a tenth of this noise.
fn least(power: f64, noise: f64) -> f64 {
    power / (power + ADDED * noise)
}

/// What is left of the effective draws over samples of this part of the records.
fn kappa(power: f64, noise: f64, q: f64) -> f64 {
    1.0 - power * (1.0 - q) / q / noise
}

/// What a job's samples save, or what samples would.
pub(super) fn advice(spec: &JobSpec) -> Option<String> {
    if spec.aggregation.is_secure() {
        return None;
    }
    let (noise, power, q) = ((engine(spec.algorithm).noise_over_samples)(spec)?, spec.power, spec.sampler.batch.get());
    let reads = |q: f64| if spec.algorithm == Algorithm::Sgnht { q / kappa(power, noise, q) } else { q };
    let beside = "before what is lost with the public centre, and by blocks, whose releases all have one bound";
    if q < 1.0 {
        let left = kappa(power, noise, q);
        return (left > 0.0).then(|| {
            format!(
                "samples leave {left:.2} of a budget's effective draws (kappa), {beside}; a draw reads {:.3} times the records that it would read without \
                 them. They buy no privacy.",
                reads(q)
            )
        });
    }
    let q = least(power, noise);
    let clip = if spec.algorithm == Algorithm::Barker { ", a clip per record" } else { "" };
    (power < TEMPERED && q < 0.5).then(|| {
        format!(
            "at this power batch = {q:.1e} would leave {:.2} of a budget's effective draws (kappa), {beside}, and a draw would read {:.0} times fewer records: worth it \
             where a pass over all of them takes long. It buys no privacy, and needs a delta_reserve at every owner{clip}.",
            kappa(power, noise, q),
            reads(q).recip()
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sampler::gradient_noise;

    fn job(algorithm: &str, more: &str) -> JobSpec {
        JobSpec::parse(&format!(
            "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n{more}"
        ))
        .unwrap()
    }

    /// A power of 1e-4 at a noise of 3.9: samples of 2.6e-4 (GRADIENTS 5.3).
    #[test]
    fn the_least_samples_add_a_tenth() {
        let q = least(1e-4, 3.9);
        assert!((q / 2.564e-4 - 1.0).abs() < 1e-3, "{q}");
        assert!((kappa(1e-4, 3.9, q) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn samples_are_advised_where_the_likelihood_is_tempered() {
        for algorithm in ["sgld", "sghmc", "sgnht", "sgfs", "barker"] {
            assert_eq!(advice(&job(algorithm, "")), None);
            let words = advice(&job(algorithm, "power = 1e-3\n")).unwrap();
            assert!(
                words.contains("leave 0.90 of") && words.contains("times fewer records") && words.contains("no privacy"),
                "{words}"
            );
        }
        // The usual step of sgld is 0.1: a noise of 40.
        assert!(advice(&job("sgld", "power = 1e-3\n")).unwrap().contains("batch = 2.5e-4 would"));
        assert_eq!(advice(&job("penalty", "power = 1e-3\n")), None);
    }

    #[test]
    fn what_samples_save_is_told() {
        // 1 - (0.5/0.5)/40.
        let words = advice(&job("sgld", "[sampler]\nbatch = 0.5\n")).unwrap();
        assert!(words.contains("leave 0.97 of") && words.contains("reads 0.500 times"), "{words}");
        // Of a noise of 40, samples of a fiftieth add 49.
        assert_eq!(advice(&job("sgld", "[sampler]\nbatch = 0.02\n")), None);
        // Momenta of sgnht at a friction of 1 take what samples add beside the parties' noise.
        let spec = job("sgnht", "[sampler]\nbatch = 0.05\n");
        let (all, theirs) = gradient_noise(&spec);
        assert!((all - theirs - 19.0).abs() < 1e-3);
        let words = advice(&spec).unwrap();
        assert!(words.contains(&format!("reads {:.3} times", 0.05 * all / theirs)), "{words}");
    }

    #[test]
    fn nothing_is_advised_that_would_be_refused() {
        let walk = "power = 1e-3\n[sampler]\nproposal = { kind = \"random_walk\" }\n";
        assert_eq!(advice(&job("barker", walk)), None);
        assert_eq!(advice(&job("barker", "power = 1e-3\n[sampler]\nproposal = { radius = 0.1 }\n")), None);
    }
}
