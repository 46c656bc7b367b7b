//! Malformed inputs for every decoder and every reader of configuration and job files. They must refuse or accept, and never
//! panic, hang or accept an invalid value.
//!
//! `CONCLAVE_FUZZ_SECONDS=60 cargo test -p conclave-tests --test fuzz -- --nocapture` runs each for a minute.

mod answers;
mod certificates;
mod files;
mod frames;
mod harness;
mod jobs;
