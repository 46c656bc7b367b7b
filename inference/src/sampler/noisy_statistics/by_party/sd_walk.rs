//! Draws of the sds over parties: slices along their logarithms (Neal 2003), with stepping out.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

/// Width of a slice's first interval, in logarithms.
const WIDTH: f64 = 1.0;
/// Maximum number of widths by which a slice is stepped out, over both sides.
const STEPS_OUT: usize = 16;
/// Maximum number of narrowings, after which the walk does not move.
const NARROWINGS: usize = 100;

/// The log density of the logarithms of the sds, as a function of the sds.
pub(super) type SdDensity<'a> = &'a dyn Fn(&[f64]) -> f64;

/// Moves the sds by one slice per coordinate forwards and one backwards, so that the whole move is reversible.
pub(super) fn advance(sds: &mut [f64], density: SdDensity<'_>, rng: &mut ChaCha20Rng) {
    for at in (0..sds.len()).chain((0..sds.len()).rev()) {
        slice(sds, at, density, rng);
    }
}

fn slice(sds: &mut [f64], at: usize, density: SdDensity<'_>, rng: &mut ChaCha20Rng) {
    let from = libm::log(sds[at]);
    let mut place = sds.to_vec();
    let mut log_at = |x: f64| {
        place[at] = libm::exp(x);
        let log = density(&place);
        if log.is_nan() { f64::NEG_INFINITY } else { log }
    };
    let level = log_at(from) + libm::log(1.0 - rng.random::<f64>());
    let mut low = from - WIDTH * rng.random::<f64>();
    let mut high = low + WIDTH;
    // The limit of the steps is split between the sides at random, so that the move is reversible.
    let down = (rng.random::<f64>() * STEPS_OUT as f64) as usize;
    for _ in 0..down {
        if log_at(low) < level {
            break;
        }
        low -= WIDTH;
    }
    for _ in 0..STEPS_OUT - 1 - down.min(STEPS_OUT - 1) {
        if log_at(high) < level {
            break;
        }
        high += WIDTH;
    }
    for _ in 0..NARROWINGS {
        let to = low + (high - low) * rng.random::<f64>();
        if log_at(to) >= level {
            sds[at] = libm::exp(to);
            return;
        }
        if to < from {
            low = to;
        } else {
            high = to;
        }
    }
}
