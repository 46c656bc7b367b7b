//! `model.weights`: whether records with unusual predictors or residuals count less.

/// The rule by which records are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Every record counts alike: the posterior of the model.
    #[default]
    Never,
    /// As [`Weights::Never`] where the predicted noise of that is small, or hardly larger than that of [`Weights::Always`]; the
    /// releases decide.
    Auto,
    /// Records far out in their predictors count less, and residuals beyond a limit count as the limit: the posterior of a weighted
    /// fit, with less noise.
    Always,
}

impl Weights {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::Never, Self::Auto, Self::Always];

    /// Returns the rule as a job file states it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Auto => "auto",
            Self::Always => "always",
        }
    }
}
