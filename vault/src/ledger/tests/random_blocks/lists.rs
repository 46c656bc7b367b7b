//! Events of a ledger with blocks: jobs, their queries, and random lists of them.

use conclave_privacy::accounting::{BlockTerms, Honest, Priced, PrivacyUnit, SamplingProbability, SubsampledRelease};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use proptest::prelude::*;

use super::books::Asked;
use crate::testing::key;

/// Initial reserve of the data set, units of 2^-60: about 1e-7 of delta.
pub(super) const RESERVE: u64 = 100_000_000_000;
/// Queries for which charge is written ahead, in reserve mode.
pub(super) const AHEAD: u32 = 4;
/// Amount that an owner adds to the reserve.
pub(super) const ADDED: u64 = RESERVE / 3;

/// Jobs: name, epsilon of the cap, share of the reserve. The last one's share exceeds the initial reserve.
pub(super) const JOBS: [(&str, f64, u64); 4] =
    [("one", 2.5, RESERVE), ("two", 1.2, RESERVE / 2), ("none", 2.0, 0), ("more", 2.5, RESERVE + ADDED)];

/// Returns the possible queries: ratios over all records, from the minimal price to an eighth of the budget, and ratios and
/// gradients over samples.
pub(super) fn queries() -> Vec<(Priced, Option<BlockTerms>)> {
    let noise = NoiseScale::from_sd(1.0).unwrap();
    let whole = [1, 1 << 28, 3 << 28].map(|k_t| (key(0, 0, k_t).priced, None));
    let sampled = |kind: QueryKind, probability: f64, k: u64, releases: u64, reserve_units: u64| {
        let sensitivity = Sensitivity::from_units(k).unwrap();
        let release = SubsampledRelease {
            probability: SamplingProbability::at_least(probability).unwrap(),
            sensitivity,
            noise,
            honest: Honest::ALONE,
            components: kind.length() as u32,
            adjacency: PrivacyUnit::default().adjacency,
        };
        (Priced::new(kind, sensitivity, noise, Honest::ALONE), Some(BlockTerms { release, releases, reserve_units }))
    };
    let blocks = [
        sampled(QueryKind::SampledRatio, 0.5, 1 << 28, 3, RESERVE / 5),
        sampled(QueryKind::SampledRatio, 0.02, 1 << 28, 2, RESERVE / 3),
        sampled(QueryKind::SampledGradient { parameters: 2 }, 0.5, 1 << 28, 2, RESERVE / 6),
    ];
    whole.into_iter().chain(blocks).collect()
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A job, a round, its queries, and the number of due answers that are recorded.
    Ask(usize, u64, Vec<Asked>, usize),
    /// A kill (true) or a clean end, followed by a restart.
    Restart(bool),
    Close(usize),
    Open(usize),
    /// The owner's addition to the reserve of a party that was killed (true) or has ended cleanly.
    Add(bool),
}

/// Few ids, of each mostly one query and one content, so that much is asked again and some of it otherwise.
pub(super) fn step() -> impl Strategy<Value = Step> {
    let altered = prop::collection::vec((prop::bool::weighted(0.08), prop::option::weighted(0.08, 0..6_usize)), 4);
    let chains = prop_oneof![
        30 => prop::sample::subsequence(vec![0_u32, 1, 2], 1..=3),
        1 => Just(vec![1, 0, 1]),
    ];
    let job = prop_oneof![3 => Just(0_usize), 3 => Just(1), 2 => Just(2), 1 => Just(3)];
    let ask = (job, 0..6_u64, chains, altered, prop_oneof![3 => Just(9_usize), 1 => 0..3_usize]);
    let ask = ask.prop_map(|(job, round, chains, altered, answered)| {
        // A job has blocks of one kind: its queries over samples are mostly the same.
        let usual = |chain: u32| match job + round as usize + chain as usize {
            even if even.is_multiple_of(2) => even / 2 % 3,
            _ => 3 + job % 3,
        };
        let one = |(chain, (altered, other)): (u32, (bool, Option<usize>))| Asked {
            chain,
            content: u8::from(altered),
            what: other.unwrap_or_else(|| usual(chain)),
        };
        Step::Ask(job, round, chains.into_iter().zip(altered).map(one).collect(), answered)
    });
    prop_oneof![
        30 => ask,
        2 => any::<bool>().prop_map(Step::Restart),
        1 => (0..JOBS.len()).prop_map(Step::Close),
        12 => (0..JOBS.len()).prop_map(Step::Open),
        2 => any::<bool>().prop_map(Step::Add),
    ]
}
