//! A job's draws as a Zarr v3 store, laid out as ArviZ and xarray read it and written while the chains run.
//!
//! ```text
//! JOB.zarr/
//!   posterior/            one float64 array (chain, draw) per parameter, on the scale that priors are declared on
//!   sample_stats/         accepted (bool), log_alpha (float64), iteration (int64), each (chain, draw)
//!   warmup_posterior/     the same for the warm-up
//!   warmup_sample_stats/
//!   posterior_original/   of a store that is complete: the kept draws in the data's own units
//! ```
//! Each group carries int64 coordinates `chain` and `draw`, and as attributes who made it; the root's attributes tell job, seed,
//! noise and spending. There is no `lp`: nobody knows the log density, which is what the noise is for. `log_alpha` is what a
//! decision was made on, the noisy log acceptance ratio with penalty and prior.
//!
//! While chains run the store is a folder. One that is complete may be one file, [`DrawStore::pack`].

mod array;
mod element;
mod files;
mod layout;
mod original;
mod packed;
mod read;
mod row;
mod section;
mod store;

#[cfg(test)]
mod tests;

pub use conclave_proto::array_name::encode;
pub use element::Element;
pub use files::StoreFiles;
pub use layout::made_by;
pub(crate) use original::{GROUP as ORIGINAL, columns};
pub use packed::pack_folder;
pub use read::{KeptDraws, Part, ReadError, StoredArray, metadata, open};
pub use row::Row;
pub use store::DrawStore;
