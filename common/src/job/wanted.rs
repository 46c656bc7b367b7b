//! The target precision of a run's draws.

/// Split R-hat above which a warning is given (Vehtari et al. 2021, section 4).
pub const RHAT: f64 = 1.01;
/// Bulk and tail effective sample size per chain below which a warning is given (Vehtari et al. 2021, section 4).
const ESS_PER_CHAIN: f64 = 100.0;
/// The minimum over all chains, even for few chains.
const ESS_LEAST: f64 = 400.0;
/// Monte Carlo error of the mean, as a share of the posterior sd, above which a warning is given.
const ERROR_SHARE: f64 = 0.1;
/// The permitted ratio of that error to the error of as many independent draws, if a small target makes this the larger limit.
const ERROR_EXCESS: f64 = 1.2;

/// Returns the bulk and tail effective sample size over all chains below which a warning is given.
#[must_use]
pub fn ess_wanted(chains: u32) -> f64 {
    (ESS_PER_CHAIN * f64::from(chains)).max(ESS_LEAST)
}

/// The target precision of a run's draws.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Wanted {
    /// Minimum bulk and tail effective sample size of each parameter.
    pub ess: f64,
    /// Maximum split R-hat.
    pub rhat: f64,
}

impl Wanted {
    /// The limits of a preliminary answer to a job that states no target of its own: the Monte Carlo error of a mean is at most 10% of
    /// the posterior sd.
    pub const PRELIMINARY: Self = Self { ess: 100.0, rhat: 1.05 };
    /// Largest split R-hat of a preliminary answer, however loose the job's own limit is.
    const RHAT_MOST: f64 = 1.1;

    /// Returns the limits of a preliminary answer to a job with this target: the target where it is looser than [`Self::PRELIMINARY`].
    #[must_use]
    pub fn or_preliminary(self) -> Self {
        let least = Self::PRELIMINARY;
        Self { ess: self.ess.min(least.ess), rhat: self.rhat.clamp(least.rhat, Self::RHAT_MOST) }
    }

    /// Returns the default target for a number of chains.
    #[must_use]
    pub fn usual(chains: u32) -> Self {
        Self { ess: ess_wanted(chains), rhat: RHAT }
    }

    /// Returns the Monte Carlo error of a mean, as a share of the posterior sd, above which a warning is given.
    #[must_use]
    pub fn error_share(self) -> f64 {
        ERROR_SHARE.max(ERROR_EXCESS / self.ess.sqrt())
    }
}
