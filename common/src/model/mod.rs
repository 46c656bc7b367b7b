//! Statistical models: the kernels that turn a shard into a lattice sum, and the public bounds that
//! their privacy needs.
//!
//! One file per model. A model sees values on the scale that priors are declared on: numeric columns
//! scaled to `[-1, 1]` by their public bounds, binary columns 0 or 1.

mod assemble;
mod banana;
mod banana_law;
mod banana_scores;
mod bernoulli;
mod binomial_table;
mod blocks;
mod corners;
mod data;
mod elementary;
mod envelope;
mod exponential_family;
mod few;
mod frame;
mod fused;
mod gaussian_mean;
mod gaussian_mixture;
mod gradient;
mod held_vectors;
mod inert;
mod interface;
mod keeping;
mod kept_weights;
mod lattice_frame;
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
mod outcome_table;
mod pass;
mod persons;
mod poisson;
mod poisson_mean;
mod poisson_sampling;
mod products;
mod ratio_range;
mod reach;
mod registry;
mod regression;
mod regression_scores;
mod remainder;
mod row_sums;
mod sampled;
mod score;
mod shard;
mod slopes;
mod softplus;
mod statistic_grid;
mod step;
mod student_t;
mod summand;
mod table;
mod tempered;
#[cfg(test)]
mod tests;
mod tile;
mod times;
mod triangle;
mod vector_sums;
mod weibull;
mod weibull_scores;
mod weighted;

pub use assemble::assemble;
pub use blocks::vectorises;
pub use data::ModelData;
pub use exponential_family::ExponentialFamily;

pub use frame::Frame;
pub use interface::Model;
pub use keeping::Keeping;
pub use kept_weights::KeptWeights;
pub use lattice_frame::GRADIENT_SCALE;
pub use outcome_table::OutcomeTable;
pub use pass::Threads;
pub use persons::Persons;
pub use poisson_sampling::{HiddenSample, PoissonSampling};
pub use products::{DIAGONAL, products_sensitivity};
pub use ratio_range::RatioRange;
pub use registry::{build, in_original_units};
pub use score::{Remainder, ScoreModel};
pub use shard::{Block, BlockError, Blocks, Number};
pub(crate) use softplus::softplus;
pub use statistic_grid::StatisticGrid;
pub use step::{Step, Summed};
pub use summand::{Summand, block_sums, sums};
pub use table::Tables;
