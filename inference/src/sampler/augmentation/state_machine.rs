//! Data augmentation as a state machine: one round of queries, and then draws without further queries.

use std::sync::Arc;

use rayon::prelude::*;

use super::chain::Swept;
use super::ensemble::chains;
use super::{PartyRelease, Release, Sweep};
use crate::sampler::warmup::WarmupWatch;
use crate::sampler::{Messages, Next, RunReport, Sampler, SamplerError, Target, Totals};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase};
use conclave_privacy::mechanism::NoiseScale;

/// Maximum number of latent records of all parties, unless the job forces more. Beyond it the records' law is practically normal,
/// and other algorithms infer theta without imputing records.
const MOST_RECORDS: u64 = 100_000;
/// Approximate number of record updates of all chains in one slice of work, which takes a fraction of a second.
const SLICE: usize = 1 << 20;
/// Maximum number of sweeps of a chain in one slice.
const MOST_SWEEPS: usize = 1 << 12;

/// The sampler of `algorithm = "augmentation"`.
pub(crate) struct Augmentation {
    target: Arc<Target>,
    release: Release,
    noise: NoiseScale,
    /// Number of records of each party, if public; of all parties together if only their sum is opened.
    records: Vec<Option<usize>>,
    messages: Messages,
    /// Empty before the release is known.
    chains: Vec<Box<dyn Sweep>>,
    warmup: WarmupWatch,
    phase: Phase,
    /// Number of sweeps of every chain in the present phase.
    sweeps: u64,
    /// Numbers of proposed and accepted records in the present phase.
    proposed: u64,
    accepted: u64,
    draws: Vec<Draw>,
}

impl Augmentation {
    /// Returns the sampler before its first round. Errors: augmentation does not support the model; a party does not protect what
    /// the release needs; there are more records than is sensible, unless the job forces them; the budget is too small.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Arc::new(Target::new(spec));
        let release = Release::new(&target, parties)?;
        let noise = release.noise(&target, parties)?;
        let known = |party: &PartyMetadata| party.records().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let records: Vec<Option<usize>> = if spec.aggregation.is_secure() {
            vec![parties.iter().map(known).try_fold(0_usize, |sum, n| Some(sum.saturating_add(n?)))]
        } else {
            parties.iter().map(known).collect()
        };
        sensible(spec, records.iter().flatten())?;
        let warmup = WarmupWatch::new(spec, 1);
        let mut sampler = Self {
            target,
            release,
            noise,
            records,
            messages: Messages::new(spec),
            chains: Vec::new(),
            warmup,
            phase: Phase::Warmup,
            sweeps: 0,
            proposed: 0,
            accepted: 0,
            draws: Vec::new(),
        };
        sampler.enter_sampling_when_due();
        Ok(sampler)
    }

    fn finished(&self) -> bool {
        self.phase == Phase::Sampling && self.sweeps >= self.target.spec.sampler.draws
    }

    fn enter_sampling_when_due(&mut self) {
        if self.phase == Phase::Warmup && self.warmup.over(self.sweeps) {
            (self.phase, self.sweeps, self.proposed, self.accepted) = (Phase::Sampling, 0, 0, 0);
        }
    }

    /// Returns the number of sweeps of every chain in the next slice. The slicing changes no draw.
    fn slice(&self) -> usize {
        let records: usize = self.chains.iter().map(|chain| chain.records().max(1)).sum();
        let left = if self.phase == Phase::Sampling {
            usize::try_from(self.target.spec.sampler.draws - self.sweeps).unwrap_or(usize::MAX)
        } else {
            MOST_SWEEPS
        };
        (SLICE / records.max(1)).clamp(1, MOST_SWEEPS).min(left)
    }

    /// Processes one sweep of every chain.
    fn take(&mut self, swept: impl Iterator<Item = Swept>) {
        let warmup = self.phase == Phase::Warmup;
        for (chain, swept) in (0..).zip(swept) {
            self.proposed += swept.proposed;
            self.accepted += swept.accepted;
            let draw = Draw {
                chain,
                warmup,
                theta: swept.theta,
                accepted: swept.moved,
                // Theta is drawn from its law given the records.
                log_alpha: 0.0,
                iteration: self.messages.last(),
            };
            if warmup {
                self.warmup.push(&draw);
            }
            self.draws.push(draw);
        }
        self.sweeps += 1;
        self.enter_sampling_when_due();
    }
}

/// Refuses to impute very many records, unless the job forces it.
pub(super) fn sensible<'a>(spec: &JobSpec, counts: impl Iterator<Item = &'a usize>) -> Result<(), SamplerError> {
    let records = counts.fold(0_u64, |sum, n| sum.saturating_add(*n as u64));
    if records > MOST_RECORDS && !spec.sampler.force {
        return Err(SamplerError::ManyRecords { records, most: MOST_RECORDS });
    }
    Ok(())
}

impl Sampler for Augmentation {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        if self.chains.is_empty() {
            if self.messages.pending().is_none() {
                self.messages.ask(self.phase, self.release.queries(self.noise));
            }
            return Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask));
        }
        while self.work()? {}
        Ok(Next::Done)
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        self.messages.answer(totals)?;
        self.release.learn(totals.components(), self.noise);
        let of_party = |(number, records): (usize, &Option<usize>)| PartyRelease {
            answers: totals.opened(number).to_vec(),
            records: *records,
        };
        let parties: Vec<PartyRelease> = self.records.iter().enumerate().map(of_party).collect();
        let counts: Vec<usize> = parties.iter().map(|party| self.release.count(party)).collect();
        sensible(&self.target.spec, counts.iter())?;
        self.chains = chains(&self.target, &self.release, self.noise, &parties)?;
        Ok(())
    }

    fn work(&mut self) -> Result<bool, SamplerError> {
        if self.chains.is_empty() || self.finished() {
            return Ok(false);
        }
        let sweeps = self.slice();
        let run = |chain: &mut Box<dyn Sweep>| (0..sweeps).map(|_| chain.sweep()).collect::<Vec<_>>().into_iter();
        let mut swept: Vec<_> = self.chains.par_iter_mut().map(run).collect();
        for _ in 0..sweeps {
            let one: Vec<Swept> = swept.iter_mut().filter_map(Iterator::next).collect();
            if self.finished() {
                break; // The warm-up ended within this slice.
            }
            self.take(one.into_iter());
        }
        Ok(!self.finished())
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        std::mem::take(&mut self.draws)
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn report(&self) -> RunReport {
        let shifts: Vec<Vec<f64>> = self.chains.iter().filter_map(|chain| chain.shift_of_clamped()).collect();
        let mean = |j: usize| shifts.iter().map(|shift| shift[j]).sum::<f64>() / shifts.len() as f64;
        let shift_of_clamped = shifts.first().map(|first| (0..first.len()).map(mean).collect());
        RunReport { shift_of_clamped, ..RunReport::default() }
    }

    /// Returns the share of latent records whose replacement was accepted.
    fn acceptance_rate(&self) -> Option<f64> {
        Some(if self.proposed == 0 { 0.0 } else { self.accepted as f64 / self.proposed as f64 })
    }
}
