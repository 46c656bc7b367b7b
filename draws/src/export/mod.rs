//! Export of draws to other programs.

mod cmdstan;
#[cfg(feature = "parquet")]
mod parquet_table;
#[cfg(not(feature = "parquet"))]
mod without_parquet;

pub use cmdstan::write as write_cmdstan;
#[cfg(feature = "parquet")]
pub use parquet_table::write as write_parquet;
#[cfg(not(feature = "parquet"))]
pub use without_parquet::write as write_parquet;
