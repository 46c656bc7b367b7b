//! The law of each algorithm, and its usual step.

use super::law::{Law, Pace};
use super::sgfs::{self, Sgfs};
use super::sghmc::{self, Sghmc};
use super::sgld::{self, Sgld};
use super::sgnht::{self, Sgnht};
use conclave_common::job::Algorithm;

/// The law of an algorithm; `None` of one that is none of the four.
pub(crate) fn law(algorithm: Algorithm, Pace { step, friction }: Pace) -> Option<Box<dyn Law>> {
    Some(match algorithm {
        Algorithm::Sgld => Box::new(Sgld { step }),
        Algorithm::Sghmc => Box::new(Sghmc { step, friction }),
        Algorithm::Sgnht => Box::new(Sgnht { step, friction }),
        Algorithm::Sgfs => Box::new(Sgfs { step }),
        _ => return None,
    })
}

/// The step of a job that names none.
pub(crate) fn usual_step(algorithm: Algorithm) -> f64 {
    match algorithm {
        Algorithm::Sghmc => sghmc::STEP,
        Algorithm::Sgnht => sgnht::STEP,
        Algorithm::Sgfs => sgfs::STEP,
        _ => sgld::STEP,
    }
}
