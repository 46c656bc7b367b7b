//! Screening of an owner's records for mistakes that no answer shows, such as a code for "unknown" read as a number, or a level
//! spelt differently than in the job.
//!
//! The findings depend on the records and are not noised, so they are shown only to the owner, on the owner's terminal and page.
//! The daemon never screens: no finding affects what is answered, refused or logged, and no command's exit code leaves the
//! machine. The modules that communicate with the coordinator or answer it therefore don't import this one, which a test
//! enforces. For the same reason `approve` warns and never refuses: the analyst learns whether a job was approved, and that may
//! depend on the owner's judgement but must not be a function of the records.

mod bounds;
mod columns;
mod concern;
mod design;
mod outcome;
mod records;
mod screen;
mod separation;

pub use concern::Concern;
pub use records::Records;
pub use screen::{screen_columns, screen_job};
