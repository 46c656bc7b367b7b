//! Chains of ratios that may weight records: a search for a frame, the choice between the plain posterior and a weighted one, and the
//! moves of the chains.
//!
//! The weights follow theta' in every query of a chain. They are fixed before the first of them, so that all ratios are of one
//! likelihood. Moves go along vectors in which the posterior that the search found is standard normal. A ratio informs of one direction
//! alone, but its bound in the frame is the length of a whole step: where the declared bounds do not limit it further, chains of gradients
//! have `2 d` times the effective draws from the same frame in `d` dimensions.

mod choice;
mod forecast;
mod law;
mod weighting;

pub(super) use forecast::foresee;
pub(super) use weighting::{Next, Weighting};
