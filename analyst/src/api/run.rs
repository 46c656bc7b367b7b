//! A run that has ended.

use conclave_draws::Draws;

/// A run that has ended, with its draws.
#[derive(Debug)]
pub struct Run {
    /// The job as it ran.
    pub job: String,
    /// The run's object.
    pub json: String,
    /// The run's draws.
    pub draws: Draws,
}
