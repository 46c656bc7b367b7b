//! The mechanism against definitions written down beside it.

#![allow(clippy::unwrap_used)]

mod clamp;
mod discrete_gaussian;
mod noise_scale;
mod sensitivity;

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
