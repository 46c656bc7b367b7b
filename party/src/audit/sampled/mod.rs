//! The audit of releases over hidden samples: a block's worth of them in both worlds, many times over, and the law of what is answered.
//!
//! A block claims that all of its releases together are covered, at every epsilon, by a Gaussian release of its `mu` and an event of its part
//! of the reserve. The best test of the two worlds bounds from below what was given, as for any audit. Beside it the answers' own law is
//! tried on records whose parts are known: a sample that is used in two releases, or whose size is told, shows there at once. And what one
//! record adds is measured to the last digit, under noise that is known: a length that is held to in floats alone shows there.

mod asked;
mod design;
mod exact;
mod law;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use asked::{Asked, SampledAudit};
pub(crate) use run::SampledReport;
