//! The release mechanism: a lattice, a clamp, an integer sum and exact discrete Gaussian noise.
//!
//! One record's log likelihood ratio becomes an integer multiple of [`STEP`], held to a public [`Sensitivity`] by a [`Clamp`].
//! The integers of a shard are added without rounding. The release is that sum plus a sample from the discrete Gaussian of
//! Canonne, Kamath & Steinke (2020). No float is released, so attacks on the low-order bits of floating-point noise (Mironov
//! 2012; Haney et al. 2022) do not apply.
//!
//! The step and the noise scale are chosen so that the penalty acceptance (`sampler::penalty`) keeps detailed balance *exactly*
//! on the lattice. This requires `sigma^2 / STEP` to be an integer, hence noise scales that are multiples of 2^16 units of 2^-32.

mod clamp;
mod coins;
mod components;
mod discrete_gaussian;
mod error;
mod exponential;
mod kind;
mod noise_sample;
mod noise_scale;
mod quantiser;
mod sensitivity;
mod step;

pub use clamp::Clamp;
pub use components::Components;
pub use discrete_gaussian::DiscreteGaussian;
pub use error::MechanismError;
pub use exponential::{LogWeights, TRIALS_PER_CANDIDATE};
pub use kind::{GRADIENT_UNITS, Points, QueryKind};
pub use noise_sample::{NoiseSample, NoiseStock};
pub use noise_scale::NoiseScale;
pub use quantiser::Quantiser;
pub use sensitivity::{Clip, MAX_SENSITIVITY, Sensitivity, sensitivity, sum_fits};
pub use step::{FRACTION, STEP};

#[cfg(test)]
mod tests;
