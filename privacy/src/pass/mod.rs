//! The pass over a shard: blocks of records, units of privacy, hidden samples, and the holds that bound a unit's contribution.

pub mod binomial_table;
pub mod blocks;
pub mod bounded_vectors;
pub mod cached_blocks;
pub mod data;
pub mod frame;
mod guarded;
pub mod hold;
pub mod lattice_frame;
#[allow(clippy::module_inception)]
pub mod pass;
pub mod persons;
pub mod poisson_sampling;
pub mod row_sums;
pub mod sampled;
pub mod shard;
pub mod small_tile;
pub mod statistic_grid;
pub mod step;
pub mod tile;
pub mod triangle;
pub mod vector_sums;
pub mod weight_cache;

pub use blocks::has_fused_multiply_add;
pub use cached_blocks::CachedBlocks;
pub use data::ModelData;
pub use frame::Frame;
pub use hold::{BlockPass, Hold, Kernels, LatticeSum, SumCache, log_weights};
pub use lattice_frame::GRADIENT_SCALE;
pub use pass::{NoSum, Threads};
pub use persons::Persons;
pub use poisson_sampling::{HiddenSample, PoissonSampling};
pub use shard::{Block, BlockError, Blocks, Number};
pub use statistic_grid::StatisticGrid;
pub use step::{Step, Summed};
pub use weight_cache::WeightCache;

#[cfg(test)]
mod tests;
