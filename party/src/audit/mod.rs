//! The audit of the claimed privacy: a repeatable experiment.
//!
//! Two simulated shards differ in one extreme record. The real answer path spends a whole budget on each, many times over.
//! The error rates of the best test between the two bound the actual privacy loss from below (Jagielski, Ullman & Oprea 2020;
//! Nasr et al. 2023). A bound above the claim is a fault. A bound far below it is no evidence against the claim, but the
//! queries are the worst possible, so the bound comes close.

mod checks;
mod forms;
mod kinds;
mod known_noise;
mod others;
mod plot;
mod report;
mod run;
mod sampled;
mod statistics;
mod world;

pub(crate) use plot::svg;
pub(crate) use report::Report;
pub(crate) use run::{Audit, LEAST};
pub(crate) use sampled::{SampledAudit, SampledKind, SampledReport};
pub(crate) use world::NoiseParties;

#[cfg(test)]
mod tests;
