//! Samplers are state machines without input or output: each returns queries, receives the totals of the parties' releases, and
//! yields posterior draws.
//!
//! A sampler is a deterministic function of the job, the parties' public metadata, and the totals. After a crash, a coordinator
//! replays the logged releases through a fresh sampler and continues the same chains. Each algorithm has its own file, named as
//! in the papers, behind the [`Sampler`] interface; [`build`] selects it.

pub mod acceptance;
mod adequacy;
mod augmentation;
mod barker;
mod chain;
mod clip_watch;
mod driven;
mod engine;
mod enough;
mod ensemble;
mod error;
mod futility;
mod gradient_search;
mod hmc;
mod interface;
mod matrix;
mod messages;
mod mode_search;
mod noisy_statistics;
mod ops;
mod penalty;
mod penalty_exp_family;
mod proposal;
mod quadratic_fit;
mod ratio_walk;
mod record_bounds;
mod refit;
mod registry;
mod replay;
mod report;
mod rotation;
mod search;
mod space;
mod starting_draw;
mod statistic;
mod stochastic_gradients;
mod surrogate;
mod target;
mod totals;
mod warmup;
mod weighted_walk;

use acceptance::expected_acceptance;
pub use adequacy::Adequacy;
pub use barker::{BarkerDiagnostics, CheckedVariance};
use chain::Chain;
pub(crate) use engine::{Engine, ErrorSource};
pub use error::SamplerError;
pub use futility::Forecast;
pub(crate) use futility::LEAST_PLANNED;
pub(crate) use futility::round_price;
use gradient_search::{GradientSearch, Located, Means};
pub(crate) use hmc::Foreseen;
use hmc::{Coordinates, normals};
pub use hmc::{GradientDiagnostics, Identity, RepeatedAnswers};
pub use interface::{Next, Sampler};
pub(crate) use matrix::Matrix;
use matrix::dot;
use messages::Messages;
use noisy_statistics::Allotment;
use noisy_statistics::gaussian::factor;
use noisy_statistics::score_strategy::Found;
use noisy_statistics::scores::frame_numbers;
pub(crate) use noisy_statistics::{Beforehand, Case, Outlook, as_released, beforehand, small_parties};
pub use noisy_statistics::{Check, Expected, Inference, Obstacle, RefitError, Refitted, Stage, Weighted, with_chosen_table};
pub use noisy_statistics::{Estimate, OwnAnswer, OwnAnswerError, OwnRecords, OwnReleases, OwnRow};
use ops::Start;
pub(crate) use ops::foreseen as foreseen_choice;
use proposal::ProposalScale;
pub use quadratic_fit::{FittedParameter, FittedPosterior};
use ratio_walk::RatioWalk;
use record_bounds::centred_records;
pub use refit::{StoredReleases, refittable};
pub use registry::{build, settled};
pub(crate) use registry::{engine, outlook};
pub use replay::ReplayError;
pub use report::{ChoiceDiagnostics, RunReport};
pub use starting_draw::StartingDraw;
use statistic::ReleasedStatistic;
#[cfg(test)]
pub(crate) use stochastic_gradients::noise as gradient_noise;
pub use stochastic_gradients::{DecreasingSteps, Polished, StochasticGradients};
use surrogate::Mode;
use target::Target;
pub use totals::Totals;

#[cfg(test)]
mod tests;
