#![allow(clippy::unwrap_used)]

mod laws;
mod runs;
mod sampled;
