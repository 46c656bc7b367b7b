//! A query asks a party for a noised sum; its terms bound what one unit of privacy adds to the sum, and so price it.

mod contribution;
mod terms;
#[cfg(test)]
mod tests;
pub(crate) mod vector;

pub use contribution::{Contribution, centre, contribution, is_centred};
pub use terms::{QueryError, QueryTerms};
