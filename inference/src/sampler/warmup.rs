//! The end of the warm-up.

use crate::diagnostics::split_rhat;
use conclave_common::job::{JobSpec, Warmup};
use conclave_common::query::Draw;

/// First sweep at which convergence is checked.
const FIRST_LOOK: u64 = 50;
/// Looks grow by a quarter each, so that all of them together cost little more than the last.
const GROWTH: u64 = 4;

/// Sweeps after which radii are measured again if the first measurement was at the job's start, which may be far from the
/// posterior: in a warm-up of unknown length, and as divisors of a known one.
const REMEASURE_AFTER: [u64; 3] = [50, 200, 800];
const REMEASURE_SHARES: [u64; 2] = [4, 2];
/// Shortest known warm-up that is interrupted for a measurement.
const LEAST_SWEEPS: u64 = 20;

/// Returns true if radii are measured again after this many steps of a warm-up.
pub(super) fn remeasures(rule: Warmup, dimension: u64, steps: u64) -> bool {
    let due = |sweeps: u64| steps == sweeps * dimension;
    match rule {
        Warmup::Sweeps(n) => n >= LEAST_SWEEPS && REMEASURE_SHARES.iter().any(|share| due(n / share)),
        Warmup::UntilRhat { max, .. } => REMEASURE_AFTER.iter().any(|after| *after < max && due(*after)),
    }
}

/// Watches a warm-up that may end by split R-hat.
pub(super) struct WarmupWatch {
    rule: Warmup,
    pub(super) dimension: u64,
    next_look: u64,
    /// `history[parameter][chain]`, kept only if the rule needs it.
    history: Vec<Vec<Vec<f64>>>,
}

impl WarmupWatch {
    /// Creates the watch; `dimension` is the number of proposals of a sweep.
    pub(super) fn new(spec: &JobSpec, dimension: usize) -> Self {
        let chains = spec.sampler.chains as usize;
        Self {
            rule: spec.sampler.warmup,
            dimension: dimension as u64,
            next_look: FIRST_LOOK,
            history: vec![vec![Vec::new(); chains]; spec.dimension()],
        }
    }

    pub(super) fn push(&mut self, draw: &Draw) {
        if let Warmup::UntilRhat { .. } = self.rule {
            for (parameter, value) in self.history.iter_mut().zip(&draw.theta) {
                parameter[draw.chain as usize].push(*value);
            }
        }
    }

    /// Returns true if the warm-up is over after this many steps of every chain.
    pub(super) fn over(&mut self, steps: u64) -> bool {
        let sweeps = steps / self.dimension;
        let over = match self.rule {
            Warmup::Sweeps(n) => sweeps >= n,
            Warmup::UntilRhat { max, .. } if sweeps >= max => true,
            Warmup::UntilRhat { rhat, .. } if sweeps >= self.next_look => {
                self.next_look = sweeps + (sweeps / GROWTH).max(1);
                self.history.iter().all(|p| later_half_rhat(p) < rhat)
            }
            Warmup::UntilRhat { .. } => false,
        };
        if over {
            self.history = Vec::new();
        }
        over
    }
}

fn later_half_rhat(chains: &[Vec<f64>]) -> f64 {
    let halves: Vec<&[f64]> = chains.iter().map(|c| &c[c.len() / 2..]).collect();
    split_rhat(&halves)
}
