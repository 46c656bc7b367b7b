//! A Zarr v3 store of a job's draws in the layout of ArviZ and xarray, written while the chains run.
//!
//! ```text
//! JOB.zarr/
//!   posterior/            one float64 array (chain, draw) per parameter, on the scale that priors are declared on
//!   sample_stats/         accepted (bool), log_alpha (float64), iteration (int64), each (chain, draw)
//!   warmup_posterior/     the same for the warm-up
//!   warmup_sample_stats/
//!   posterior_original/   in a complete store: the kept draws in the data's own units
//! ```
//! Each group has int64 coordinates `chain` and `draw`, and attributes that name the software. The root's attributes hold job,
//! seed, noise and cost. There is no `lp`: the log density is unknown because of the noise. `log_alpha` is the quantity behind
//! each decision, the noisy log acceptance ratio with penalty and prior.
//!
//! While chains run the store is a folder. A complete store may be a single file, see [`DrawStore::pack`].

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
pub use layout::maker_attributes;
pub(crate) use original::{GROUP as ORIGINAL, columns};
pub use packed::pack_folder;
pub use read::{DrawsChunk, KeptDraws, ReadError, StoredArray, metadata, open};
pub use row::Row;
pub use store::DrawStore;
