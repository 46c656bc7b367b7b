//! The report on the choices that are a run's draws.

/// The choices of an `ops` run.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ChoiceDiagnostics {
    /// Number of candidates of each draw.
    pub candidates: u32,
    /// Number of choices, which are independent draws.
    pub draws: u64,
    /// Largest range of a choice's log probabilities between neighbouring data sets, in log-likelihood units.
    pub range: f64,
    /// Largest Gaussian-DP parameter of one choice. Squares add.
    pub mu_per_draw: f64,
}
