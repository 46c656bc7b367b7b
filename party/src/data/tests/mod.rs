//! Tests of reading, binding and fingerprinting records.

mod reading;
pub(crate) mod row_by_row;
