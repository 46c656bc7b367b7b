//! Privacy figures for planning and reports. No charge uses them: a ledger counts by [`conclave_privacy::accounting`] alone.

pub mod advanced_composition;
mod rounding;
mod search;
#[cfg(test)]
mod tests;
pub mod zcdp;

pub use rounding::rounded_up;
pub use search::largest_count;
