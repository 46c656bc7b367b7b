//! The Parquet reader: every flat column of a numeric physical type or of texts; nulls are missing values.

mod column;
mod read;

pub(super) use column::Column;
pub(super) use read::read;
