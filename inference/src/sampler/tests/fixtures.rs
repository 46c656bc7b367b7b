//! Samplers of parties that hold rows, and their answers.

#![allow(clippy::unwrap_used)]

use crate::sampler::{Next, Sampler, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Round};

/// Returns the sampler of a job over parties with these numbers of rows.
pub(in crate::sampler) fn sampler_of(spec: &JobSpec, records: &[u64]) -> Box<dyn Sampler> {
    build(spec, &PartyMetadata::of_rows(records)).unwrap()
}

/// Returns a sampler's pending round; `None` when all draws are made. No clip stops these runs.
pub(in crate::sampler) fn asked(sampler: &mut dyn Sampler) -> Option<Round> {
    match sampler.next_round().unwrap() {
        Next::Ask(round) => Some(round),
        Next::Done => None,
        Next::Stopped(why) => panic!("{why}"),
    }
}

/// Gives a sampler the parties' releases for the pending round.
pub(in crate::sampler) fn give(sampler: &mut dyn Sampler, round: &Round, releases: &[Vec<i64>]) {
    sampler.absorb(&Totals::of(round, releases).unwrap()).unwrap();
}
