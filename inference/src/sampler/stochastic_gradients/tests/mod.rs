#![allow(clippy::unwrap_used)]

mod laws;
mod polish;
mod runs;
mod sampled;
mod schedule;
mod start;
