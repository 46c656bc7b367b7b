//! The law of each algorithm, and its default step.

use super::law::{Law, Pace};
use super::sgfs::{self, Sgfs};
use super::sghmc::{self, Sghmc};
use super::sgld::{self, Sgld};
use super::sgnht::{self, Sgnht};
use conclave_common::job::Algorithm;

/// Returns the law of an algorithm; `None` for any other than the four.
pub(crate) fn law(algorithm: Algorithm, Pace { step, friction }: Pace) -> Option<Box<dyn Law>> {
    Some(match algorithm {
        Algorithm::Sgld => Box::new(Sgld { step }),
        Algorithm::Sghmc => Box::new(Sghmc { step, friction }),
        Algorithm::Sgnht => Box::new(Sgnht { step, friction }),
        Algorithm::Sgfs => Box::new(Sgfs { step }),
        _ => return None,
    })
}

/// Returns the default step.
pub(crate) fn usual_step(algorithm: Algorithm) -> f64 {
    match algorithm {
        Algorithm::Sghmc => sghmc::STEP,
        Algorithm::Sgnht => sgnht::STEP,
        Algorithm::Sgfs => sgfs::STEP,
        _ => sgld::STEP,
    }
}
