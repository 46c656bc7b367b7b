//! The mechanism against independent definitions.

#![allow(clippy::unwrap_used)]

mod clamp;
mod discrete_gaussian;
mod noise_scale;
mod sensitivity;

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
