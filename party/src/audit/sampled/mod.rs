//! The audit of subsampled releases: a block of them in both worlds, many times over, and the distribution of the answers.
//!
//! A block claims that all of its releases are covered, at every epsilon, by a Gaussian release of its `mu` and an event with its
//! share of the reserve. The best test of the two worlds bounds the actual loss from below, as in any audit. In addition, the
//! distribution of answers is tested on records with known contributions: it shows a sample used twice, or a revealed sample
//! size. The contribution of one record is measured exactly under known noise: it shows a length checked in floats only.

mod design;
mod exact;
mod law;
mod run;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use run::SampledReport;
pub(crate) use settings::{SampledAudit, SampledKind};
