//! The screening of an owner's records: mistakes that no answer shows, such as a code for "unknown" taken for a number, or a level spelt
//! otherwise than the job's.
//!
//! What is found depends on the records and is under no noise, so it is for the owner's eyes, on the owner's terminal and page. The daemon
//! never screens: nothing found here decides what is answered, refused or logged, and no command's exit code leaves the machine. So the
//! modules that speak to the coordinator or answer it don't import this one, and a test holds them to it. For the same reason `approve` tells and
//! never refuses: whether a job was approved is known to its analyst, and that may be the owner's own judgement but not a function of the records.

mod bounds;
mod columns;
mod concern;
mod design;
mod screen;
mod separation;

pub use concern::Concern;
pub use screen::{screen_columns, screen_job};
