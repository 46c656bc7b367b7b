//! Holds the shard: the owner's records, read once at start into columns of numbers and of texts, in memory or in a snapshot on disk.
//!
//! Only needed columns are read: those that `policy.columns` names, or all. The messages of this module (counts of dropped rows, places of
//! bad values) go to the owner's own log only, and never hold a value.

mod bind;
mod chosen;
mod csv;
mod dates;
mod error;
mod fingerprint;
mod format;
mod input;
mod load;
mod parquet;
mod persons;
mod piece;
mod place;
mod rows;
mod scaled;
mod settings;
mod shard;
mod snapshot;
mod stamp;
mod words;

pub use bind::{BindError, Binding, bind};
pub use dates::DateScale;
pub use error::{DataError, Flaw};
pub use format::Format;
pub(crate) use load::MAX_UNPUBLISHED_UNITS;
pub(crate) use scaled::Scaled;
pub use settings::{BadRows, DataConfig, Memory, Precision};
pub use shard::Kind;
pub use shard::{Column, Shard};
pub use stamp::Stamp;

#[cfg(test)]
pub mod tests;
