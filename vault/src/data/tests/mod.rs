//! Tests of reading, binding and fingerprinting records.

mod bounds;
mod formats;
mod lines;
mod readers;
mod reading;
pub(crate) mod row_by_row;
