//! The complete party: its link, its command line, its death.
#![allow(clippy::unwrap_used)]
#![forbid(unsafe_code)]

mod cli;
mod kill;
mod link;
mod race;
mod renewal;
mod town;
