//! `noisy-statistics`: draws from the posterior given exactly what the parties released once.
//!
//! This module sends no query itself. It is a deterministic function of the released numbers, the job's public facts and the
//! job's seed.
//!
//! | file | content |
//! |---|---|
//! | [`gaussian`] | the Gaussian stand-in for the prior, and Gaussian fits |
//! | [`information`] | a noisy information matrix, and the combination of several |
//! | [`stage`] | a score and an expected information, released at public points: likelihood and fit |
//! | `bend` | the difference of a stage's likelihood from one that is straight in the step |
//! | `times_shape` | the shape of a Weibull likelihood |
//! | [`adequacy`] | checks that decide whether such a stage is an adequate answer |
//! | [`intercept`] | the intercept's own equation |
//! | [`landscape`] | the public facts about a model that a search rests on |
//! | `last_stage` | its information's share of the budget, and its fit |
//! | [`locate`] | the location of the answer, estimated from all stages so far |
//! | [`schedule`] | the next query and its share of the budget |
//! | `guide` | the location by another search's releases, from which a search continues |
//! | [`search`] | the search from one released stage to the next query, and to the answer |
//! | [`frame`] | the coordinates in which a score is released, chosen so that its noise harms the posterior least |
//! | [`grouped`] | the same where the corners are too many to list |
//! | `histogram` | the start of survival models, from a released histogram of times |
//! | [`moments`] | a noisy matrix of second moments |
//! | [`moments_noise`] | the entries of that matrix that share noise, and the effect of the noise on a residual |
//! | [`linear`] | linear regression from that matrix, and from a score of residuals released after it |
//! | `residual_queries` | its queries about residuals |
//! | `residual_tails` | the tails of its residuals, and the clip that they allow |
//! | `sum_of_squares` | its sum of squared residuals |
//! | [`family`] | one-parameter families and shares, from noisy totals of clamped records |
//! | [`walk`] | draws from a density that is cheap to evaluate |
//! | `coding` | coordinates in which predictors of 0 and 1 count as -1 and 1 |
//! | `allotment` | the budget in charges, and the noise that a share of it buys |
//! | `expected` | the error to expect before the first query, and its limits |
//! | `design` | the assumptions about records before the first release |
//! | `expected_moments`, `expected_family` | the expected error of moments and of a family's statistic |
//! | `outlook` | the expected error of every strategy, in the best case and in a worse one |
//! | `without_privacy` | the expected posterior sds without privacy |
//! | `scores` | the queries of a score stage, and the estimates from their totals |
//! | `starting_point` | the starting point of the score stages |
//! | `public` | the public facts about a model at a point |
//! | `moments_form` | the entries of released moments that follow from others, and the number of records in them |
//! | `moments_units` | the coordinates of second moments |
//! | `own_answer` | one owner's posterior: its records without noise beside the other owners' releases |
//! | `refit`, `refittable` | the part of a job's releases that a posterior of another job can use, and the samplers with such releases |
//! | `strategy` | the interface of the strategies below |
//! | `score_strategy`, `moments_strategy`, `family_strategy` | the strategies: score stages, second moments, a family's statistic |
//! | `life_counts`, `life_table_strategy` | the probabilities of a life table from noisy counts, and its strategy |
//! | `obstacle` | reasons why a run ends after its first stages |
//! | `table_choice` | the choice between a table and score stages |
//! | `answer` | the report of a run beside its draws |
//! | `draws` | draws from the posterior given the releases |
//! | `weighted` | the strategy of weighted regressions |
//! | `by_party` | parameters by party: a search per party, and a hierarchy over them |
//! | `algorithm` | the sampler |

pub(crate) mod adequacy;
mod algorithm;
mod allotment;
mod answer;
mod bend;
mod by_party;
mod cell_noise;
pub(crate) mod coding;
pub(crate) mod counts;
mod design;
pub(crate) mod draws;
pub(crate) mod expected;
mod expected_family;
mod expected_moments;
mod expected_table;
pub(crate) mod family;
mod family_strategy;
pub(crate) mod frame;
pub(crate) mod gaussian;
pub(crate) mod grouped;
mod guide;
mod histogram;
pub(crate) mod information;
pub(crate) mod intercept;
pub(crate) mod landscape;
mod last_stage;
mod life_counts;
mod life_table_strategy;
pub(crate) mod linear;
mod linear_releases;
pub(crate) mod locate;
pub(crate) mod moments;
mod moments_form;
pub(crate) mod moments_noise;
mod moments_strategy;
mod moments_units;
mod obstacle;
mod outlook;
mod own_answer;
mod public;
mod refit;
mod refittable;
mod residual_queries;
mod residual_tails;
pub(crate) mod schedule;
pub(crate) mod score_strategy;
pub(crate) mod scores;
pub(crate) mod search;
pub(crate) mod stage;
mod starting_point;
pub(crate) mod strategy;
mod sum_of_squares;
mod table_choice;
mod table_strategy;
mod times_shape;
pub(crate) mod walk;
mod weighted;
mod without_privacy;

use crate::sampler::engine::{Engine, ErrorSource};

pub(super) use algorithm::NoisyStatistics;
pub(super) use allotment::Allotment;
pub use answer::{Check, Inference, Stage, Weighted};
pub(super) use by_party::ByParty;
pub(super) use design::predictor_moments;
pub(crate) use design::{Case, FIFTH};
pub use expected::Expected;
pub(crate) use expected::Outlook;
pub(super) use expected_family::expected_law;
pub use obstacle::Obstacle;
pub(crate) use outlook::{of_scores, outlook, small_parties};
pub use own_answer::{Estimate, OwnAnswer, OwnAnswerError, OwnRecords, OwnReleases, OwnRow};
pub use refit::{RefitError, Refitted};
pub(super) use refittable::Refittable;
pub(crate) use scores::as_released;
pub use table_choice::with_chosen_table;
pub(crate) use weighted::{ChainFrame, WeightedStrategy, outlook as weighted_outlook};
pub(crate) use without_privacy::{Beforehand, beforehand};

/// The algorithm as it is planned and run.
pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Release { note: "as wide as the noise of one release makes it", refusable: true },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    expectation: |spec, parties| outlook::expectation(spec, parties).map(Some),
    refit_obstacle: None,
    ..Engine::of_ratios(|spec, parties| match spec.sites {
        Some(_) => Ok(Box::new(ByParty::new(spec, parties)?)),
        None => Ok(Box::new(NoisyStatistics::new(spec, parties)?)),
    })
};

#[cfg(test)]
mod tests;
