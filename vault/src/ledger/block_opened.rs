//! The event that opens a block of subsampled releases, as it stands in `events.body`.

use conclave_privacy::accounting::{BlockTerms, Honest, PrivacyUnit, SamplingProbability, Spent, SubsampledRelease};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use serde::{Deserialize, Serialize};

use super::events::event;
use super::wrong::Wrong;

/// Event: a block of subsampled releases is opened and charged in full, and never refunded.
///
/// The first entry states the unit of privacy, and each release is opened by itself: with both, these are all of the block's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockOpened {
    /// Kind of its releases, a [`QueryKind::code`].
    pub(super) kind: u32,
    /// Probability with which a unit is in the sample of a release, in parts of 2^-20.
    pub(super) probability: u32,
    /// Bound on one unit's contribution to any of its releases, in L2; lattice units.
    pub(super) k: u64,
    /// Noise scale, lattice units.
    pub(super) s: u64,
    /// Integers in an answer.
    pub(super) components: u32,
    /// Number of places.
    pub releases: u64,
    /// Cost: units of 2^-48 of mu².
    pub units: u64,
    /// Units of 2^-80 of the allowance for discrete noise, of all its releases.
    pub(super) slack: u64,
    /// Integers of all its releases.
    pub(super) draws: u64,
    /// Units of 2^-60 of the reserve of delta.
    pub reserve: u64,
}
event!(BlockOpened, "block");

impl BlockOpened {
    /// Makes the event that opens a block of this kind and these terms at this cost.
    pub(super) fn of(kind: QueryKind, terms: &BlockTerms, cost: Spent) -> Self {
        Self {
            kind: kind.code(),
            probability: terms.release.probability.parts(),
            k: terms.release.sensitivity.units(),
            s: terms.release.noise.units(),
            components: terms.release.components,
            releases: terms.releases,
            units: cost.units,
            slack: cost.slack_units,
            draws: cost.draws,
            reserve: cost.reserve_units,
        }
    }

    /// Returns its kind and its terms, in a ledger that protects `unit`.
    pub(super) fn terms(&self, unit: PrivacyUnit) -> Result<(QueryKind, BlockTerms), Wrong> {
        let kind = QueryKind::from_code(self.kind).filter(|kind| kind.is_sampled()).ok_or(Wrong::Kind)?;
        let (k, s) = (Sensitivity::from_units(self.k), NoiseScale::from_units(self.s));
        let (Ok(sensitivity), Ok(noise)) = (k, s) else { return Err(Wrong::Scales) };
        let release = SubsampledRelease {
            probability: SamplingProbability::from_parts(self.probability).map_err(|_| Wrong::BlockTerms)?,
            sensitivity,
            noise,
            honest: Honest::ALONE,
            components: self.components,
            adjacency: unit.adjacency,
        };
        Ok((kind, BlockTerms { release, releases: self.releases, reserve_units: self.reserve }))
    }

    /// Returns the cost that it states.
    pub(super) fn cost(&self) -> Spent {
        Spent { units: self.units, slack_units: self.slack, draws: self.draws, reserve_units: self.reserve }
    }
}
