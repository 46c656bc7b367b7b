//! The report of a run: everything an algorithm states beside its draws.

use super::{BarkerDiagnostics, FittedPosterior, GradientDiagnostics, Inference, StochasticGradients, Weighted};
use serde::Serialize;

/// A run's report. Each algorithm fills in the sections it has; the serialised ones stand in the result under their own names.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunReport {
    /// Proposal radii as a job file gives them, one per parameter on the unconstrained scale; `None` before there are any, and where moves
    /// follow no single parameter.
    #[serde(skip)]
    pub radii: Option<Vec<f64>>,
    /// The noise's part in the posterior, for a run that infers from what was released once; `None` before its end.
    #[serde(skip)]
    pub inference: Option<Inference>,
    /// The change of each parameter's estimate if predictors that are imputed beyond their bounds lay on them; `None` where none are
    /// imputed.
    #[serde(skip)]
    pub shift_of_clamped: Option<Vec<f64>>,
    /// The posterior by a quadratic fitted to all released log ratios; absent where none are released. It has no part in any draw: it
    /// rests on the same releases as the draws do, so the two check each other and must not be averaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surrogate: Option<FittedPosterior>,
    /// The weights of the records; absent where every record counts alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted: Option<Weighted>,
    /// Moves of the chains, and the gradients' evidence on them and on the parties' noise; absent where gradients drive no chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<GradientDiagnostics>,
    /// Candidates of each draw and its price; absent where draws are no choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<ChoiceDiagnostics>,
    /// Moves of chains that follow stochastic gradients without a test, and what is known of their bias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stochastic_gradients: Option<StochasticGradients>,
    /// Exactness of the decisions by `barker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barker: Option<BarkerDiagnostics>,
}

impl RunReport {
    /// The names of the serialised sections, in their order.
    pub const SECTIONS: [&str; 6] = ["surrogate", "weighted", "gradients", "ops", "stochastic_gradients", "barker"];
}

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
