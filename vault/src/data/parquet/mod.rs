//! Reads Parquet: every flat column of numbers, decimals or texts, and of dates where the owner declares them; nulls are missing values.

mod column;
mod kind;
mod read;

pub(super) use column::Column;
pub(super) use kind::ColumnReading;
pub(super) use read::read;
