//! One chain: theta, and every party's latent records.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::law::Complete;
use super::records::LatentRecords;
use super::{Conditional, Count, NoiseLaw, RecordLaw, Residuals};
use crate::sampler::Target;

/// Number of latent records from which a chain's parties are processed in parallel: with fewer, waking a thread takes as long.
const PARALLEL_RECORDS: usize = 20_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Swept {
    pub(super) theta: Vec<f64>,
    pub(super) moved: bool,
    /// Number of proposed and accepted records.
    pub(super) proposed: u64,
    pub(super) accepted: u64,
}

/// A chain of any model.
pub(super) trait Sweep: Send {
    /// Updates every latent record of every party once given theta, then theta given the records.
    fn sweep(&mut self) -> Swept;

    /// Returns the number of latent records.
    fn records(&self) -> usize;

    /// Returns [`RecordLaw::shift_of_clamped`] of the present records.
    fn shift_of_clamped(&self) -> Option<Vec<f64>>;
}

/// A chain of records of this law.
pub(super) struct Chain<L: RecordLaw, N: NoiseLaw> {
    law: Arc<L>,
    target: Arc<Target>,
    theta: Vec<f64>,
    nuisance: L::Nuisance,
    parties: Vec<LatentRecords<L, N>>,
    steps: Arc<[f64]>,
    rng: ChaCha20Rng,
    summary: Vec<f64>,
}

pub(super) struct Start {
    pub(super) id: u32,
    pub(super) theta: Vec<f64>,
    /// Typical step lengths of a walk, one per unconstrained coordinate.
    pub(super) steps: Arc<[f64]>,
}

impl<L: RecordLaw, N: NoiseLaw> Chain<L, N> {
    /// Starts a chain at `start` with records drawn from the law there. `parties` holds each party's residuals before any latent
    /// record, and its count.
    pub(super) fn new(law: Arc<L>, target: Arc<Target>, start: Start, parties: Vec<(Residuals<N>, Count)>) -> Self {
        let nuisance = law.nuisance();
        let prepared = law.prepare(&start.theta, &nuisance);
        let rng = |party| stream(target.spec.sampler.seed, start.id, party);
        let records = |(at, (residuals, count))| LatentRecords::new(law.as_ref(), &prepared, residuals, count, rng(1 + at));
        let parties = (0_u64..).zip(parties).map(records).collect();
        let (rng, summary) = (rng(0), vec![0.0; law.summary()]);
        Self { law, target, theta: start.theta, nuisance, parties, steps: start.steps, rng, summary }
    }

    fn decisions(&self) -> (u64, u64) {
        let add = |(a, b), (c, d)| (a + c, b + d);
        self.parties.iter().map(LatentRecords::decisions).fold((0, 0), add)
    }
}

/// Returns the random stream of a chain's theta (`part` 0) or of its records of a party (from 1).
fn stream(seed: u64, chain: u32, part: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(part << 32 | u64::from(chain));
    rng
}

impl<L: RecordLaw, N: NoiseLaw> Sweep for Chain<L, N> {
    fn sweep(&mut self) -> Swept {
        let before = self.decisions();
        let law = self.law.as_ref();
        let prepared = law.prepare(&self.theta, &self.nuisance);
        // Each party has its own stream, so the order of the parties does not matter.
        if self.parties.len() > 1 && self.parties.iter().map(LatentRecords::count).sum::<usize>() >= PARALLEL_RECORDS {
            self.parties.par_iter_mut().for_each(|party| party.sweep(law, &prepared));
        } else {
            self.parties.iter_mut().for_each(|party| party.sweep(law, &prepared));
        }
        self.summary.fill(0.0);
        for party in &self.parties {
            self.summary.iter_mut().zip(party.summary()).for_each(|(sum, part)| *sum += part);
        }
        let mut conditional = Conditional::new(&self.target, &self.steps, &mut self.rng);
        let records: Vec<&[L::Value]> = self.parties.iter().map(LatentRecords::values).collect();
        let complete = Complete { summary: &self.summary, records: &records };
        let moved = law.step(&complete, &mut self.theta, &mut self.nuisance, &mut conditional);
        let (proposed, accepted) = self.decisions();
        Swept { theta: self.theta.clone(), moved, proposed: proposed - before.0, accepted: accepted - before.1 }
    }

    fn records(&self) -> usize {
        self.parties.iter().map(LatentRecords::count).sum()
    }

    fn shift_of_clamped(&self) -> Option<Vec<f64>> {
        let width = self.law.width();
        self.law.shift_of_clamped(&self.theta, &mut self.parties.iter().flat_map(|party| party.records(width)))
    }
}
