//! Samples of the records: their cost in effective draws, and when they save reading.
//!
//! In posterior sds, a sample with rate `q` adds the variance `V_s = tau (1 - q)/q` to a gradient, where `tau` is the power of
//! the likelihood. A chain tolerates a noise variance `v`, and the parties add the remainder. At a given budget, the share
//! `kappa = 1 - V_s/v` of the effective draws remains.
//!
//! The total noise is still `v`, so a draw takes the same number of steps, and each step reads the share `q` of the records. The
//! exception is `sgnht`: its thermostat absorbs the sampling noise in addition to the parties' noise, and a draw takes more
//! steps.
//!
//! Without tempering, `kappa` falls to 0 quickly. For a tempered likelihood, the least `q` whose samples add at most a tenth of
//! `v` is `tau / (tau + v/10)`.

use crate::sampler::engine;
use conclave_common::job::{Algorithm, JobSpec};

/// Share of a chain's noise that samples may add.
const ADDED: f64 = 0.1;
/// Advice mentions samples for a power of the likelihood below this.
const TEMPERED: f64 = 0.1;

/// The least part of the records whose samples add no more than a tenth of this noise.
fn least(power: f64, noise: f64) -> f64 {
    power / (power + ADDED * noise)
}

/// Share of the effective draws that remains at the sampling rate `q`.
fn kappa(power: f64, noise: f64, q: f64) -> f64 {
    1.0 - power * (1.0 - q) / q / noise
}

/// Returns the least number of two digits that is not below a positive one.
fn with_two_digits(x: f64) -> f64 {
    let unit = libm::pow(10.0, libm::log10(x).floor() - 1.0);
    let up = format!("{:.1e}", (x / unit - 1e-9).ceil() * unit);
    up.parse().unwrap_or(x)
}

/// Returns advice on the reading that a job's samples save, or that samples would save.
pub(super) fn advice(spec: &JobSpec) -> Option<String> {
    if spec.aggregation.is_secure() {
        return None;
    }
    let (noise, power, q) = ((engine(spec.algorithm).noise_over_samples)(spec)?, spec.power, spec.sampler.batch.get());
    let reads = |q: f64| if spec.algorithm == Algorithm::Sgnht { q / kappa(power, noise, q) } else { q };
    let beside = "before the loss of the public centre, and in blocks, whose releases all have one bound";
    if q < 1.0 {
        let left = kappa(power, noise, q);
        return (left > 0.0).then(|| {
            format!(
                "samples leave {left:.2} of a budget's effective draws (kappa), {beside}; a draw reads {:.3} times the records that it would read without \
                 them. Samples do not improve privacy.",
                reads(q)
            )
        });
    }
    // Rounded up as it is printed, so that the figures are those of the batch that is set.
    let q = with_two_digits(least(power, noise));
    let clip = if spec.algorithm == Algorithm::Barker { ", a clip per record" } else { "" };
    (power < TEMPERED && q < 0.5).then(|| {
        format!(
            "at this power batch = {q:.1e} would leave {:.2} of a budget's effective draws (kappa), {beside}, and a draw would read {:.0} times fewer records. Use it \
             if a pass over all records takes long. It has no privacy benefit, and needs a delta_reserve at every owner{clip}.",
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

    /// A power of 1e-4 at a noise of 3.9 gives a rate of 2.6e-4 (GRADIENTS 5.3).
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
                words.contains("leave 0.90 of") && words.contains("times fewer records") && words.contains("no privacy benefit"),
                "{words}"
            );
        }
        // The default step of sgld is 0.1: a noise of 40.
        assert!(advice(&job("sgld", "power = 1e-3\n")).unwrap().contains("batch = 2.5e-4 would"));
        assert_eq!(advice(&job("penalty", "power = 1e-3\n")), None);
    }

    #[test]
    fn the_savings_of_samples_are_reported() {
        // 1 - (0.5/0.5)/40.
        let words = advice(&job("sgld", "[sampler]\nbatch = 0.5\n")).unwrap();
        assert!(words.contains("leave 0.97 of") && words.contains("reads 0.500 times"), "{words}");
        // At a noise of 40, samples with a rate of a fiftieth add 49.
        assert_eq!(advice(&job("sgld", "[sampler]\nbatch = 0.02\n")), None);
        // At a friction of 1, the momenta of sgnht absorb the sampling noise in addition to the parties' noise.
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
