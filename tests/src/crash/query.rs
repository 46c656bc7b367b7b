//! The script's queries and their prices, computed without the party's code.
//!
//! A price is `(2 K_t)² / s²` of mu², in units of 2^-48, rounded up (MATH.md section 2), and at least 2^-24.

use conclave_common::job::JobSpec;
use conclave_common::query::contribution;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::NoiseScale;

use super::jobs::{self, spec};
use super::session::points;

/// A query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Index of the job.
    pub job: usize,
    /// Round.
    pub iteration: u64,
    /// Chain.
    pub chain: u32,
}

/// Returns the price of one release; 0 for a subsampled release, whose block is charged.
pub fn price(id: Id) -> u64 {
    if id.job == jobs::SAMPLED {
        return 0;
    }
    let spec = JobSpec::parse(&spec(id.job)).expect("a job");
    let (from, to) = points(id.iteration, id.chain);
    let model = spec.build_model();
    let part = contribution(model.as_ref(), &spec.privacy, PrivacyUnit::default(), &[from], &[to]).expect("a bound");
    price_of(part.sensitivity.units(), NoiseScale::from_sd(1.0).expect("a scale").units(), jobs::honest(id.job))
}

/// Returns the price where the opened sum carries the noise of `honest` parties.
pub(super) fn price_of(k_t: u64, s: u64, honest: u64) -> u64 {
    // 2^50 K² / (h s²), with K below 2^38 here; s is a multiple of 2^16.
    let j = u128::from(s >> 16);
    let units = ((u128::from(k_t) * u128::from(k_t)) << 18).div_ceil(u128::from(honest) * j * j);
    u64::try_from(units).expect("a small price").max(1 << 24)
}
