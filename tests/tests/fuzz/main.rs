//! Every decoder, and every reader of configuration and job files, on inputs that nobody meant them to have: they refuse
//! or accept, and never panic, hang or take what they should not.
//!
//! `CONCLAVE_FUZZ_SECONDS=60 cargo test -p conclave-tests --test fuzz -- --nocapture` runs each for a minute.

mod answers;
mod certificates;
mod files;
mod frames;
mod harness;
mod jobs;
