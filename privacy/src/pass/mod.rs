//! The pass over a shard: blocks of records, units of privacy, hidden samples, and the holds that bound what a unit contributes.

pub mod binomial_table;
pub mod blocks;
pub mod data;
pub mod few;
pub mod frame;
pub mod held_vectors;
pub mod hold;
pub mod keeping;
pub mod kept_weights;
pub mod lattice_frame;
#[allow(clippy::module_inception)]
pub mod pass;
pub mod persons;
pub mod poisson_sampling;
pub mod row_sums;
pub mod sampled;
pub mod shard;
pub mod statistic_grid;
pub mod step;
pub mod tile;
pub mod triangle;
pub mod vector_sums;

pub use blocks::vectorises;
pub use data::ModelData;
pub use frame::Frame;
pub use hold::{LatticeSum, SumCache, log_weights};
pub use keeping::Keeping;
pub use kept_weights::KeptWeights;
pub use lattice_frame::GRADIENT_SCALE;
pub use pass::Threads;
pub use persons::Persons;
pub use poisson_sampling::{HiddenSample, PoissonSampling};
pub use shard::{Block, BlockError, Blocks, Number};
pub use statistic_grid::StatisticGrid;
pub use step::{Step, Summed};

#[cfg(test)]
mod tests;
