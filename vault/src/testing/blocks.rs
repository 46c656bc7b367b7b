//! Blocks of subsampled releases, as the tests of ledgers and of their views open them.
#![allow(clippy::unwrap_used)]

use conclave_privacy::accounting::{BlockTerms, Budget, Honest, Priced, PrivacyUnit, SamplingProbability, SubsampledRelease};
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity};

use super::{budget, key};
use crate::ledger::QueryKey;

/// A tenth of a delta of 1e-6, in units of 2^-60.
pub const RESERVE: u64 = 115_292_150_460;

/// Returns the budget that tests spend, with a reserve of delta.
pub fn reserving() -> Budget {
    budget().reserving(RESERVE)
}

/// Returns the terms of a block of `releases` ratios over one record in a hundred, with noise of twice a unit's contribution.
pub fn terms(releases: u64, reserve_units: u64) -> BlockTerms {
    let release = SubsampledRelease {
        probability: SamplingProbability::at_least(0.01).unwrap(),
        sensitivity: Sensitivity::from_units(1 << 31).unwrap(),
        noise: NoiseScale::from_sd(1.0).unwrap(),
        honest: Honest::ALONE,
        components: 1,
        adjacency: PrivacyUnit::default().adjacency,
    };
    BlockTerms { release, releases, reserve_units }
}

/// Returns a query of a subsampled ratio that takes a place in a block of these terms.
pub fn sampled(chain: u32, content: u8, terms: &BlockTerms) -> QueryKey {
    let priced = Priced::new(QueryKind::SampledRatio, terms.release.sensitivity, terms.release.noise, Honest::ALONE);
    QueryKey { priced, block: Some(*terms), ..key(chain, content, 1) }
}

/// Returns a query of this kind; one over samples has blocks of three.
pub fn asked(chain: u32, content: u8, kind: QueryKind) -> QueryKey {
    let gradient = matches!(kind, QueryKind::SampledGradient { .. });
    let units = if gradient { GRADIENT_UNITS } else { 1 << 28 };
    let (sensitivity, noise) = (Sensitivity::from_units(units).unwrap(), NoiseScale::from_units(1 << 33).unwrap());
    let release = SubsampledRelease {
        probability: SamplingProbability::at_least(0.01).unwrap(),
        sensitivity,
        noise,
        honest: Honest::ALONE,
        components: kind.length() as u32,
        adjacency: PrivacyUnit::default().adjacency,
    };
    let block = kind.is_sampled().then_some(BlockTerms { release, releases: 3, reserve_units: 1 << 30 });
    QueryKey { priced: Priced::new(kind, sensitivity, noise, Honest::ALONE), block, ..key(chain, content, 1) }
}
