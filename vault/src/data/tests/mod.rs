//! Tests of reading, binding and fingerprinting records.

mod bounds;
mod formats;
mod reading;
pub(crate) mod row_by_row;
