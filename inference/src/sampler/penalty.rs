//! Algorithm 2 of Yıldırım, *On the use of penalty MCMC for differential privacy*: chains on noisy log likelihood ratios, for any
//! number of owners. Algorithm 1 is Algorithm 2 with one owner.
//!
//! Every party releases the log likelihood ratio of every chain's proposal with Gaussian noise. Half of the noise's variance,
//! subtracted from the noisy log ratio, is the penalty (Ceperley & Dewing 1999) that keeps the chains' target exact although the
//! ratio is noisy.

use super::acceptance::log_alpha;
use super::ratio_walk::Decision;
use super::weighted_walk::foresee;
use super::{Chain, Engine, RatioWalk, Target};

/// Accepts or rejects a chain's pending proposal (Algorithm 2, step 2; also Algorithm 3). `log_ratio` is the noisy log likelihood
/// ratio over all parties, `total_variance` that of its noise.
pub(super) fn decide(chain: &mut Chain, target: &Target, log_ratio: f64, total_variance: f64) {
    let Some(log_prior_ratio) = chain.log_prior_ratio(target) else { return };
    let log_alpha = log_alpha(log_ratio, total_variance, log_prior_ratio);
    // `libm` makes a replay on another machine decide in the same way.
    let accepted = libm::log(chain.uniform()) < log_alpha;
    chain.settle(accepted, log_alpha);
}

/// The decision rule of Algorithm 2.
pub(super) struct Penalty;

pub(super) const ENGINE: Engine =
    Engine { foresee, ..Engine::of_ratios(|spec, parties| Ok(Box::new(RatioWalk::new(spec, parties, Penalty)?))) };

impl Decision for Penalty {
    fn decide(&mut self, chain: &mut Chain, target: &Target, log_ratio: f64, variance: f64) {
        decide(chain, target, log_ratio, variance);
    }
}
