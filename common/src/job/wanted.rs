//! The precision that a run's draws are to reach.

/// Split R-hat above this earns a warning (Vehtari et al. 2021, section 4).
pub const RHAT: f64 = 1.01;
/// Bulk and tail effective sample size per chain below which a warning is due (Vehtari et al. 2021,
/// section 4).
const ESS_PER_CHAIN: f64 = 100.0;
/// The same in all, however few the chains.
const ESS_LEAST: f64 = 400.0;
/// A Monte Carlo error of the mean above this share of the posterior sd earns a warning.
const ERROR_SHARE: f64 = 0.1;
/// Of draws that are to be so few that their error is greater: how far above that of so many independent ones it may be.
const ERROR_EXCESS: f64 = 1.2;

/// Bulk and tail effective sample size over all chains below which a warning is due.
#[must_use]
pub fn ess_wanted(chains: u32) -> f64 {
    (ESS_PER_CHAIN * f64::from(chains)).max(ESS_LEAST)
}

/// What a run's draws are to come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Bulk and tail effective sample size of each parameter, at least.
    pub ess: f64,
    /// Split R-hat, at most.
    pub rhat: f64,
}

impl Wanted {
    /// What is usual for so many chains.
    #[must_use]
    pub fn usual(chains: u32) -> Self {
        Self { ess: ess_wanted(chains), rhat: RHAT }
    }

    /// The Monte Carlo error of a mean, as a share of the posterior sd, above which a warning is due.
    #[must_use]
    pub fn error_share(self) -> f64 {
        ERROR_SHARE.max(ERROR_EXCESS / self.ess.sqrt())
    }
}
