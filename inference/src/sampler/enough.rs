//! The job's stopping rule for the draws.

use crate::diagnostics::summarise;
use conclave_common::job::{JobSpec, Until};
use conclave_common::query::Draw;

/// Number of kept draws of a chain at the first look.
const FIRST_LOOK: u64 = 100;
/// Looks grow by a quarter each, so that all of them together cost little more than the last, and few of them can end a run by
/// chance.
const GROWTH: u64 = 4;

/// Watches the kept draws of a job that states a stopping rule.
pub(super) struct Enough {
    until: Option<Until>,
    next_look: u64,
    /// `history[parameter][chain]`, kept only if there is a rule.
    history: Vec<Vec<Vec<f64>>>,
    pub(super) reached: bool,
}

impl Enough {
    pub(super) fn new(spec: &JobSpec) -> Self {
        let chains = spec.sampler.chains as usize;
        let history = vec![vec![Vec::new(); chains]; spec.dimension()];
        Self { until: spec.sampler.until, next_look: FIRST_LOOK, history, reached: false }
    }

    pub(super) fn push(&mut self, draw: &Draw) {
        if self.until.is_some() {
            for (parameter, value) in self.history.iter_mut().zip(&draw.theta) {
                parameter[draw.chain as usize].push(*value);
            }
        }
    }

    /// Checks the rule, if a look is due after this number of draws of every chain.
    pub(super) fn look(&mut self, draws: u64) {
        let Some(until) = self.until.filter(|_| !self.reached && draws >= self.next_look) else { return };
        self.next_look = draws + (draws / GROWTH).max(1);
        self.reached = self.history.iter().all(|parameter| {
            let chains: Vec<&[f64]> = parameter.iter().map(Vec::as_slice).collect();
            let summary = summarise(&chains);
            summary.ess_bulk >= until.ess && summary.ess_tail >= until.ess && summary.rhat <= until.rhat
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn watch(until: &str) -> Enough {
        let job = format!(
            "name = \"m\"\nalgorithm = \"penalty\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\n\
             y = {{ binary = true }}\n[sampler]\n{until}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        Enough::new(&JobSpec::parse(&job).unwrap())
    }

    /// Returns the number of draws of a chain at which the rule is satisfied, for four chains of this autocorrelation, the first
    /// of them displaced.
    fn enough(watch: &mut Enough, correlation: f64, displaced: f64) -> Option<u64> {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut at = [0.0; 4];
        for draws in 1..=20_000 {
            for (chain, x) in at.iter_mut().enumerate() {
                let z: f64 = StandardNormal.sample(&mut rng);
                *x = correlation * *x + (1.0 - correlation * correlation).sqrt() * z;
                let value = *x + if chain == 0 { displaced } else { 0.0 };
                let theta = vec![value];
                watch.push(&Draw { chain: chain as u32, warmup: false, theta, accepted: true, log_alpha: 0.0, iteration: draws });
            }
            watch.look(draws);
            if watch.reached {
                return Some(draws);
            }
        }
        None
    }

    /// An ESS of 400 from four chains: 100 draws of each if they are independent. With an autocorrelation of .9 it takes 19 times
    /// that number, and up to a quarter more because of the looks. Standard errors of an ESS are about 10%.
    #[test]
    fn it_is_enough_where_every_figure_is() {
        let independent = enough(&mut watch("until = { ess = 300, rhat = 1.05 }"), 0.0, 0.0).unwrap();
        assert!((100..=195).contains(&independent), "{independent}");
        let slow = enough(&mut watch("until = { ess = 400, rhat = 1.02 }"), 0.9, 0.0).unwrap();
        assert!((1_300..=4_000).contains(&slow), "{slow}");
        // Chains at different places never satisfy the rule, for any number of draws.
        assert_eq!(enough(&mut watch("until = { ess = 10, rhat = 1.01 }"), 0.0, 1.0), None);
        assert_eq!(enough(&mut watch(""), 0.0, 0.0), None);
    }
}
