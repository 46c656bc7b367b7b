//! Statistical models: kernels that turn a shard into a lattice sum, and public bounds that price queries.
//!
//! There is one file per model. A model sees values on the scale of the priors: numeric columns scaled to `[-1, 1]` by their
//! public bounds, binary columns as 0 or 1.

mod assemble;
mod banana;
mod banana_law;
mod banana_scores;
mod bernoulli;
mod bounded;
mod cell_moments;
mod combinations;
mod corners;
mod count_residual;
mod counts;
mod envelope;
mod exponential_family;
mod fused;
mod gaussian_mean;
mod gaussian_mixture;
mod gradient;
mod inert;
mod influence;
mod interface;
mod leverage;
mod leverage_ratio;
mod life_table;
mod life_table_model;
mod likelihood;
mod line;
mod linear;
mod linear_predictor;
mod linear_statistic;
mod logistic;
mod moves;
mod multinomial;
mod naive_bayes;
mod negative_binomial;
mod observed;
mod outcome_table;
mod poisson;
mod poisson_mean;
mod products;
mod ratio_range;
mod reach;
mod registry;
mod regression;
mod regression_scores;
mod remainder;
mod score;
mod slope_table;
mod slopes;
mod softplus;
mod student_t;
mod summand;
mod survival;
mod table;
mod tempered;
#[cfg(any(test, feature = "test-util"))]
mod testing;
#[cfg(test)]
mod tests;
mod times;
mod times_table;
mod weibull;
mod weibull_scores;
mod weighted;

pub use assemble::{Assembly, Scaling, Stored, assemble};
pub use combinations::Combinations;
pub use exponential_family::{BoundedStatistic, ExponentialFamily, statistic_noise};
pub use influence::Influence;
pub use interface::Model;
pub use leverage::Leverage;
pub use life_table::{FollowUpEnd, LifeTable};
pub use observed::ObservedForm;
pub use outcome_table::{OutcomeTable, TableLaw};
pub use ratio_range::RatioRange;
pub use registry::{BuildOptions, build};
pub use score::{Remainder, ScoreModel};
pub use slope_table::SlopeTable;
pub use softplus::softplus;
pub use summand::Summand;
#[cfg(any(test, feature = "test-util"))]
pub use summand::{block_sums, sums};
pub use table::Tables;
pub use times_table::TimesTable;
