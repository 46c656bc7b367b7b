//! `noisy-statistics`: from what the parties released once to draws of the posterior given exactly that.
//!
//! Nothing here asks anybody anything. Everything is a deterministic function of released numbers, of what
//! is public of the job, and of the job's seed.
//!
//! | file | what it is |
//! |---|---|
//! | [`gaussian`] | a Gaussian stand-in for the prior, and what a Gaussian fit says |
//! | [`stage`] | a score and an expected information, released at one public point: likelihood and fit |
//! | [`adequacy`] | whether such a stage may be called an answer |
//! | [`schedule`] | where the next stage is asked, and with which share of the budget |
//! | [`frame`] | in which coordinates a score is released, so that noise lies where it does least harm |
//! | [`moments`] | a noisy matrix of second moments |
//! | [`moments_noise`] | which entries of that matrix share noise, and what it adds to a residual |
//! | [`linear`] | linear regression from that matrix, and from a score of residuals after it |
//! | [`family`] | one-parameter families and shares, from noisy totals of clamped records |
//! | [`walk`] | draws of any density that costs nothing to look at |

// Removed as soon as the state machine of the algorithm calls what is here.
#![allow(dead_code)]

pub(crate) mod adequacy;
pub(crate) mod family;
pub(crate) mod frame;
pub(crate) mod gaussian;
pub(crate) mod linear;
pub(crate) mod moments;
pub(crate) mod moments_noise;
pub(crate) mod schedule;
pub(crate) mod stage;
pub(crate) mod walk;

#[cfg(test)]
mod tests;
