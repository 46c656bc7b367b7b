//! The audit tries the claimed privacy: an experiment that anyone can repeat.
//!
//! Two made-up shards differ in one extreme record. The real answer path spends a whole budget on each, many times over;
//! the best test that tells the two apart has error rates, and these bound from below what privacy was really given
//! (Jagielski, Ullman & Oprea 2020; Nasr et al. 2023). A bound above the claim is a fault; one far below it says nothing
//! against the claim, but the questions asked here are the worst that there are, so it comes close.

mod checks;
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
pub(crate) use sampled::{Asked, SampledAudit, SampledReport};
pub(crate) use world::Company;

#[cfg(test)]
mod tests;
