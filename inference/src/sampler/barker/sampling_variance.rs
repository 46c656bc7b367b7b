//! The contribution of hidden sampling to the variance of a step's log likelihood ratio.
//!
//! For a Poisson sample with probability q, scaled up by 1/q, the sum of the records' ratios has the variance
//! `(1 - q)/q sum r^2`. The records are not known. By the information identity, a short step d has approximately
//! `sum r^2 = tau d'(H - H_prior)d`, with H the posterior's precision and tau the likelihood's power. H is the search's result
//! from released numbers. The ratios are not centred: a centre c would make it `sum (r - c)^2`, which differs strongly if records
//! lie far from c.

use crate::sampler::Target;

/// The variances of single coordinates' moves.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SamplingVariance {
    /// `(1 - q)/q tau (H_j - H_prior_j)`: variance of a move of length 1 along each coordinate.
    per_square: Vec<f64>,
}

impl SamplingVariance {
    /// Computes the variances from the posterior's sd of each coordinate given the others.
    pub(super) fn new(target: &Target, sd: &[f64]) -> Self {
        let spec = &target.spec;
        let probability = spec.sampler.batch.get();
        let factor = (1.0 - probability) / probability * spec.power;
        let likelihood = |(sd, prior): (&f64, &f64)| factor * ((sd * sd).recip() - prior).max(0.0);
        Self { per_square: sd.iter().zip(&target.space.precision).map(likelihood).collect() }
    }

    /// Returns the variance of a move between these coordinates, along one of them.
    pub(super) fn of_move(&self, from: &[f64], to: &[f64]) -> f64 {
        self.per_square.iter().zip(from.iter().zip(to)).map(|(one, (a, b))| one * (b - a) * (b - a)).sum()
    }

    /// Returns the largest variance of moves of these lengths.
    pub(super) fn greatest(&self, lengths: &[f64]) -> f64 {
        self.per_square.iter().zip(lengths).map(|(one, length)| one * length * length).fold(0.0, f64::max)
    }
}
