//! The report on the posterior sample at which chains start.

use serde::Serialize;

/// Power below which the draw is reported as wide.
const WIDE: f64 = 0.5;

/// The draw by the exponential mechanism at which all chains started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StartingDraw {
    /// Number of candidates.
    pub candidates: u32,
    /// Power of likelihood and prior in the draw, in addition to that of the job's likelihood: 1 where its share of the budget holds the
    /// draw as it is.
    pub power: f64,
    /// Range of the draw's log probabilities between neighbouring data sets, in log-likelihood units.
    pub range: f64,
    /// Gaussian-DP parameter of the draw.
    pub mu: f64,
    /// Price as a share of the job's budget.
    pub budget_share: f64,
}

impl StartingDraw {
    /// Returns a warning about a draw that is much wider than the posterior.
    pub(super) fn words(self) -> Option<String> {
        (self.power < WIDE).then(|| {
            format!(
                "the chains start at a draw from the posterior to the power {:.3}, about {:.1} times as wide as the posterior in each direction: \
                 its share of the budget holds no sharper one, and the first steps still lead to the posterior; set sampler.warmup, or raise \
                 epsilon or sampler.start_share",
                self.power,
                self.power.sqrt().recip()
            )
        })
    }
}
