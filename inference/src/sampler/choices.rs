//! What is told of the choices that a run's draws are.

/// The choices of a run by `ops`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ChoiceDiagnostics {
    /// How many candidates each draw was one of.
    pub candidates: u32,
    /// Choices made: independent draws.
    pub draws: u64,
    /// Range of a choice's log probabilities between neighbouring data sets, in log-likelihood units; the greatest of all.
    pub range: f64,
    /// Gaussian-DP parameter of one choice; the greatest of all. Squares add.
    pub mu_per_draw: f64,
}
