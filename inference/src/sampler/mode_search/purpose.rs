//! The purpose of a search before the chains, and its share of the budget.

use conclave_common::job::{CALIBRATE_SHARE, JobSpec, Radius};

/// The purpose of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Move to the mode and measure the curvature there.
    Mode,
    /// Stay at the given start and measure the curvature.
    Curvature,
}

impl Purpose {
    /// Returns the purpose of the job's search and its share of the budget; `None` if starting values and radii are given.
    pub(crate) fn of(spec: &JobSpec) -> Option<(Self, f64)> {
        match spec.sampler.locate_share {
            share if share > 0.0 => Some((Self::Mode, share)),
            _ if spec.sampler.radius == Radius::Auto => Some((Self::Curvature, CALIBRATE_SHARE)),
            _ => None,
        }
    }
}
