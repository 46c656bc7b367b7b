//! One task per running job: it asks every party, waits for all answers, absorbs the round and continues.

mod answers;
pub(crate) mod attributes;
mod chain;
mod conclude;
mod context;
mod deadline;
mod draw_writer;
mod job;
mod masking;
mod members;
mod messages;
mod order;
mod refusal;
mod report;
mod round_terms;
mod run;
mod spending;
mod stop;
mod stopwatch;

#[cfg(test)]
mod tests;

pub(crate) use context::DriverContext;
pub(crate) use deadline::Limits;
pub(crate) use job::Job;
pub(crate) use report::queued_status;
pub(crate) use run::{Driver, Requeued};
pub(crate) use stop::StopRequest;
