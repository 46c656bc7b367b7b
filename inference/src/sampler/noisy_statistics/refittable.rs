//! The interface of samplers whose releases give other posteriors too.

use super::refit::{RefitError, Refitted};
use crate::sampler::interface::Sampler;
use conclave_common::job::JobSpec;

/// A sampler whose releases give other posteriors too.
pub(in crate::sampler) trait Refittable: Sampler {
    /// Returns true once everything is released.
    fn released(&self) -> bool;

    /// Returns the posterior of another job given the releases so far.
    ///
    /// # Errors
    /// [`RefitError`].
    fn refit(&self, spec: &JobSpec) -> Result<Refitted, RefitError>;
}
