//! Jobs: an analyst's requests to the data owners, parsed and validated in one place.
//!
//! Coordinator and parties derive every public constant (bounds, noise scale, box) from the same bytes with this code, so they
//! always agree on the meaning of a release.

mod aggregation;
mod algorithm;
mod algorithms;
pub mod budget_words;
mod chosen;
mod chosen_weights;
mod draw_values;
mod edit;
mod error;
mod extension;
mod limits;
mod message;
mod original_units;
mod parse;
mod possible;
mod privacy_spec;
mod raw;
mod refit;
mod sampler_spec;
mod samples;
mod scale_prior;
mod sites;
mod spec;
#[cfg(test)]
mod tests;
mod wanted;
mod weak_privacy;
mod weights;

pub use aggregation::{Aggregation, KeyFingerprint, NoFingerprint, Secure};
pub use algorithm::Algorithm;
pub use algorithms::{ANY_MODEL, ReleasedQuantity};
pub use edit::with_lines;
pub use error::JobError;
pub use extension::{Continuation, Extension};
pub use limits::{
    CALIBRATE_SHARE, DEFAULT_BOX, LEAST_POSITIVE, MAX_BOUND, MAX_BOX, MAX_BYTES, MAX_CHAINS, MAX_COLUMNS, MAX_NAME,
};
pub use message::{LongestMessage, MAX_MESSAGE, MAX_QUERIES};
pub use privacy_spec::{Clamping, ClipRule, PrivacySpec, ReleaseSpec};
pub use raw::KEYS;
pub use refit::Refit;
pub use sampler_spec::{
    BarkerSpec, HmcSpec, HmcTest, Locate, OpsSpec, ProposalKind, Radius, SamplerSpec, StochasticSpec, Until, Warmup,
};
pub use samples::STOCHASTIC_WARMUP;
pub use sites::{SiteParameter, Sites};
pub use spec::{JobSpec, Moments, PlanSpec, StudySpec};
pub use wanted::{RHAT, Wanted, ess_wanted};
pub use weak_privacy::MOST_EPSILON;
pub use weights::Weights;
