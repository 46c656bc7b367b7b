//! Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman 2018): parameters drawn from the prior, data drawn
//! given them, and the parameters' ranks among thinned posterior draws. A correct sampler gives uniform ranks, whatever the
//! model.

use std::ops::Range;

use crate::federation::{Federation, Noise, Shard};
use conclave_common::job::JobSpec;

/// Number of bins for ranks.
pub const BINS: usize = 20;
/// The 0.999 quantile of chi-square with [`BINS`] − 1 degrees of freedom.
pub const CHI_SQUARE_0_999: f64 = 43.82;
/// The 0.9999 quantile of the same distribution.
const CHI_SQUARE_0_9999: f64 = 50.80;

/// One run: parameters drawn from the prior, and a job of one chain on data drawn given them.
pub struct Replicate {
    /// The parameters, as drawn from the prior.
    pub truth: Vec<f64>,
    /// The job.
    pub spec: JobSpec,
    /// The data.
    pub shards: Vec<Shard>,
}

/// Numbers of replicates and draws behind each rank.
#[derive(Clone, Copy)]
pub struct Ranking {
    /// Number of replicates.
    pub runs: u64,
    /// Draws that each rank is taken among, one less than a multiple of [`BINS`].
    pub draws: usize,
    /// Steps between two of them: enough to make them independent.
    pub thin: usize,
}

impl Ranking {
    /// Returns the steps of a job's chain after its warm-up.
    pub fn steps(&self) -> usize {
        self.draws * self.thin
    }

    /// Returns the chi-square statistic of each parameter's ranks, from `replicate(seed)` for every seed, on two threads.
    pub fn chi_squares(&self, fault: Noise, replicate: impl Fn(u64) -> Replicate + Sync) -> Vec<f64> {
        statistics(&self.ranked(0..self.runs, fault, &replicate))
    }

    /// Returns true when the first parameter's ranks reveal a fault. Looks at a tenth of the replicates, two tenths and so on,
    /// and stops where the statistic exceeds a bound. A calibrated sampler exceeds that bound with probability 0.0001 per look,
    /// and the last look's [`CHI_SQUARE_0_999`] with 0.001: 0.0019 in total at most.
    pub fn detects(&self, fault: Noise, replicate: impl Fn(u64) -> Replicate + Sync) -> bool {
        let mut bins = Vec::new();
        let look = self.runs / 10;
        (1..=10).any(|looks| {
            bins.extend(self.ranked((looks - 1) * look..looks * look, fault, &replicate));
            statistics(&bins)[0] > if looks < 10 { CHI_SQUARE_0_9999 } else { CHI_SQUARE_0_999 }
        })
    }

    /// Returns the bins of each seed's parameters, computed on two threads.
    fn ranked(&self, seeds: Range<u64>, fault: Noise, replicate: &(impl Fn(u64) -> Replicate + Sync)) -> Vec<Vec<usize>> {
        let half = |first: u64| -> Vec<Vec<usize>> {
            (seeds.start + first..seeds.end).step_by(2).map(|seed| self.bins(replicate(seed), fault, seed)).collect()
        };
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|first| {
                let half = &half;
                scope.spawn(move || half(first))
            });
            threads.into_iter().flat_map(|t| t.join().expect("a half")).collect()
        })
    }

    /// Returns each parameter's bin.
    fn bins(&self, replicate: Replicate, fault: Noise, seed: u64) -> Vec<usize> {
        let mut federation = Federation::new(replicate.spec, replicate.shards, 5000 + seed).with_fault(fault);
        federation.budget = f64::INFINITY; // this test checks calibration, not cost
        let run = federation.run();
        let one = |(truth, chains): (&f64, &Vec<Vec<f64>>)| {
            let thinned = chains[0].iter().skip(self.thin - 1).step_by(self.thin);
            thinned.filter(|x| *x < truth).count() * BINS / (self.draws + 1)
        };
        replicate.truth.iter().zip(&run.draws).map(one).collect()
    }
}

/// Returns the chi-square statistic of each parameter's bins.
fn statistics(bins: &[Vec<usize>]) -> Vec<f64> {
    let expected = bins.len() as f64 / BINS as f64;
    let one = |j: usize| {
        let mut counts = [0u32; BINS];
        bins.iter().for_each(|bins| counts[bins[j]] += 1);
        let statistic = counts.iter().map(|b| (f64::from(*b) - expected).powi(2) / expected).sum();
        println!("parameter {j}: {counts:?}: chi-square {statistic:.1}");
        statistic
    };
    (0..bins.first().map_or(0, Vec::len)).map(one).collect()
}
