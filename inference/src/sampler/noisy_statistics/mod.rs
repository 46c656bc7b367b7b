//! `noisy-statistics`: from what the parties released once to draws of the posterior given exactly that.
//!
//! Nothing here asks anybody anything. Everything is a deterministic function of released numbers, of what
//! is public of the job, and of the job's seed.
//!
//! | file | what it is |
//! |---|---|
//! | [`gaussian`] | a Gaussian stand-in for the prior, and what a Gaussian fit says |
//! | [`information`] | a noisy information matrix, and several of them together |
//! | [`stage`] | a score and an expected information, released at public points: likelihood and fit |
//! | [`adequacy`] | whether such a stage may be called an answer |
//! | [`intercept`] | the intercept's own equation |
//! | [`locate`] | where the answer lies, by all stages so far |
//! | [`schedule`] | which question is next, and with which share of the budget |
//! | [`search`] | from one released stage to the next question, and to the answer |
//! | [`frame`] | in which coordinates a score is released, so that noise lies where it does least harm |
//! | [`grouped`] | the same where corners are too many to list |
//! | [`moments`] | a noisy matrix of second moments |
//! | [`moments_noise`] | which entries of that matrix share noise, and what it adds to a residual |
//! | [`linear`] | linear regression from that matrix, and from a score of residuals after it |
//! | [`family`] | one-parameter families and shares, from noisy totals of clamped records |
//! | [`walk`] | draws of any density that costs nothing to look at |
//! | `coding` | coordinates in which predictors of 0 and 1 count as -1 and 1 |
//! | `allotment` | the budget in charges, and the noise that a share of it buys |
//! | `expected` | what error can be expected before anything is asked, and how much of it is too much |
//! | `design` | what is assumed of records that nobody has looked at |
//! | `expected_moments`, `expected_family` | the error that moments and statistics can be expected to leave |
//! | `outlook` | the error of any way, in the best case and in a worse one |
//! | `without_privacy` | the posterior's sds without privacy, as far as they can be expected |
//! | `scores` | what a score stage asks of the parties, and what the totals say |
//! | `beginning` | where score stages begin |
//! | `public` | what is public of a model at a point |
//! | `moments_form` | which entries of released moments follow from others, and how many records are in them |
//! | `moments_units` | the coordinates that second moments are in |
//! | `refit` | what a posterior from stored releases keeps of the job that they were asked for |
//! | `way` | what the ways below have in common |
//! | `score_way`, `moments_way`, `family_way` | from a model to its posterior by score stages, second moments, a family's statistic |
//! | `answer` | what a run says beside its draws |
//! | `algorithm` | the sampler |

pub(crate) mod adequacy;
mod algorithm;
mod allotment;
mod answer;
mod beginning;
pub(crate) mod coding;
pub(crate) mod counts;
mod design;
pub(crate) mod expected;
mod expected_family;
mod expected_moments;
mod expected_table;
pub(crate) mod family;
mod family_way;
pub(crate) mod frame;
pub(crate) mod gaussian;
pub(crate) mod grouped;
pub(crate) mod information;
pub(crate) mod intercept;
pub(crate) mod linear;
pub(crate) mod locate;
pub(crate) mod moments;
mod moments_form;
pub(crate) mod moments_noise;
mod moments_units;
mod moments_way;
mod outlook;
mod public;
mod refit;
pub(crate) mod schedule;
pub(crate) mod score_way;
pub(crate) mod scores;
pub(crate) mod search;
pub(crate) mod stage;
mod table_way;
pub(crate) mod walk;
pub(crate) mod way;
mod without_privacy;

use crate::sampler::engine::{Engine, ErrorSource};

pub(super) use algorithm::NoisyStatistics;
pub(super) use allotment::Allotment;
pub use answer::{Check, Inference, Stage};
pub(crate) use design::Case;
pub(super) use design::predictor_moments;
pub use expected::Expected;
pub(crate) use expected::Outlook;
pub(super) use expected_family::expected_law;
pub(crate) use outlook::{of_scores, outlook};
pub use refit::{RefitError, Refitted};
pub(crate) use scores::as_released;
pub(crate) use without_privacy::{Beforehand, beforehand};

/// The algorithm as it is planned and run.
pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Release { note: "as wide as the noise of one release makes it", refusable: true },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    expectation: |spec, parties| outlook::expectation(spec, parties).map(Some),
    refit_obstacle: None,
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(NoisyStatistics::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
