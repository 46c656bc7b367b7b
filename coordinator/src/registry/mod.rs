//! Registry of all jobs of this coordinator.

mod ending;
mod fair_order;
mod jobs;
mod lookup;
mod queue;
mod scheduling;
mod stored;
mod submissions;
mod view;

pub(crate) use jobs::JobRegistry;
pub(crate) use view::{JobFilter, JobView, SignedSubmission};
