//! One run of a job against the stand-in: the cost of its rounds and the draws of its chains.

use crate::diagnostics;
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, Phase, Round};

/// Number of draws per chain that are analysed if the chain mixes slowly.
const THINNED: usize = 4096;
/// Largest effective share of the draws for which a chain counts as slow.
const SLOW: f64 = 0.1;

pub(super) struct Walk {
    /// Units of 2^-48 of mu^2 that a party has spent after each round.
    cumulative: Vec<u64>,
    /// Number of rounds before the first sampling round, so far.
    pub(super) before: u64,
    /// Number of sampling rounds and of their queries.
    sampled: (u64, u64),
    /// Cost of the mode search in units of 2^-48 of mu^2.
    pub(super) searched: u64,
    /// Number of queries in all phases.
    pub(super) asked: u64,
    /// Sampling draws, `[parameter][chain][draw]`.
    draws: Vec<Vec<Vec<f64>>>,
    pub(super) acceptance: f64,
    /// Sum over the sampling queries of each coordinate's squared move, unconstrained.
    pub(super) moved: Vec<f64>,
}

impl Walk {
    pub(super) fn new(spec: &JobSpec, coordinates: usize) -> Self {
        Self {
            cumulative: Vec::new(),
            before: 0,
            sampled: (0, 0),
            searched: 0,
            asked: 0,
            draws: vec![vec![Vec::new(); spec.sampler.chains as usize]; spec.dimension()],
            acceptance: f64::NAN,
            moved: vec![0.0; coordinates],
        }
    }

    /// Records a sampling round; to be called before [`Self::asks`].
    pub(super) fn samples(&mut self, round: &Round, unconstrain: impl Fn(&[f64]) -> Vec<f64>) {
        self.sampled = (self.sampled.0 + 1, self.sampled.1 + round.queries.len() as u64);
        for query in round.queries.iter().filter(|query| !query.from.is_empty()) {
            let (from, to) = (unconstrain(&query.from), unconstrain(&query.to));
            self.moved.iter_mut().zip(from.iter().zip(&to)).for_each(|(sum, (from, to))| *sum += (to - from).powi(2));
        }
    }

    /// Records a round of any phase, and a party's total charge before and after it.
    pub(super) fn asks(&mut self, round: &Round, before: u64, spent: u64) {
        if round.phase == Phase::Locate {
            self.searched += spent - before;
        }
        self.asked += round.queries.len() as u64;
        self.cumulative.push(spent);
        if self.sampled.0 == 0 {
            self.before += 1;
        }
    }

    pub(super) fn takes(&mut self, draws: &[Draw]) {
        for draw in draws.iter().filter(|draw| !draw.warmup) {
            draw.theta.iter().zip(&mut self.draws).for_each(|(x, chains)| chains[draw.chain as usize].push(*x));
        }
    }

    pub(super) fn forget_draws(&mut self) {
        self.acceptance = f64::NAN;
        self.draws.iter_mut().for_each(Vec::clear);
    }

    pub(super) fn parameters(&self) -> usize {
        self.draws.len()
    }

    pub(super) fn queries(&self) -> u64 {
        self.sampled.1
    }

    /// True if the first sampling round stays within a sum of charges.
    pub(super) fn reaches_sampling(&self, units: u64) -> bool {
        self.sampled.0 > 0 && self.cumulative.get(self.before as usize).is_some_and(|spent| *spent <= units)
    }

    pub(super) fn rounds_within(&self, units: u64) -> u64 {
        let within = self.cumulative.partition_point(|spent| *spent <= units);
        let Some(last) = self.cumulative.last().filter(|_| within == self.cumulative.len()) else { return within as u64 };
        let (rounds, cost) = self.sampling();
        within as u64 + u64::try_from(u128::from(units - last) * u128::from(rounds) / u128::from(cost.max(1))).unwrap_or(u64::MAX)
    }

    /// Cost of a number of rounds, in units of 2^-48 of mu^2.
    pub(super) fn cost_of(&self, rounds: u64) -> f64 {
        let at = usize::try_from(rounds).unwrap_or(usize::MAX).min(self.cumulative.len());
        let walked = at.checked_sub(1).map_or(0.0, |last| self.cumulative[last] as f64);
        let (sampled, cost) = self.sampling();
        walked + (rounds - at as u64) as f64 * cost as f64 / sampled.max(1) as f64
    }

    pub(super) fn mean_price(&self) -> f64 {
        self.sampling().1 as f64 / self.queries().max(1) as f64
    }

    fn sampling(&self) -> (u64, u64) {
        let before = (self.before as usize).checked_sub(1).map_or(0, |last| self.cumulative[last]);
        (self.sampled.0, self.cumulative.last().map_or(0, |all| all - before))
    }

    /// Returns the effective draws of a parameter's mean in the first `kept` draws of each chain. Beyond the walked draws the
    /// rate is assumed constant.
    pub(super) fn effective(&self, parameter: usize, kept: u64) -> f64 {
        let Some(walked) = self.draws[parameter].first().map(Vec::len) else { return f64::NAN };
        let length = usize::try_from(kept).unwrap_or(usize::MAX).min(walked).max(1);
        // Each stretch counts as a run of its own. Their mean is more accurate.
        let of = |stretch: usize| {
            let chains = self.draws[parameter].iter().map(|chain| &chain[stretch * length..(stretch + 1) * length]);
            effective(&chains.collect::<Vec<&[f64]>>())
        };
        let stretches = walked / length;
        let found = (0..stretches).map(of).sum::<f64>() / stretches.max(1) as f64;
        found * kept as f64 / length as f64
    }

    /// Long-run effective draws per draw of each chain.
    pub(super) fn efficiency(&self, parameter: usize) -> f64 {
        let walked = self.draws[parameter].first().map_or(0, Vec::len);
        let draws = (walked * self.draws[parameter].len()) as f64;
        // If the chains mix slowly, thinning keeps their effective draws and needs far fewer lags.
        let stride = walked / THINNED + 1;
        let thinned = self.draws[parameter].iter().map(|chain| chain.iter().step_by(stride).copied().collect());
        let few = effective(&slices(&thinned.collect::<Vec<Vec<f64>>>()));
        if few < SLOW * draws / stride as f64 { few / draws } else { effective(&slices(&self.draws[parameter])) / draws }
    }

    /// Number of draws of all chains; 0 if they were discarded.
    pub(super) fn drawn(&self) -> usize {
        self.draws.first().map_or(0, |chains| chains.iter().map(Vec::len).sum())
    }
}

/// Effective draws of a parameter's mean; 0 for fewer than four draws, and for chains that never move.
fn effective(chains: &[&[f64]]) -> f64 {
    let moved = chains.iter().any(|chain| chain.iter().any(|x| *x != chain[0]));
    Some(diagnostics::ess(chains)).filter(|ess| moved && ess.is_finite()).unwrap_or(0.0)
}

fn slices(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    chains.iter().map(Vec::as_slice).collect()
}
