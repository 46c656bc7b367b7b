//! All jobs of this coordinator.

mod arrivals;
mod jobs;
mod queue;
mod stored;
mod turning;
mod turns;
mod view;

pub(crate) use jobs::JobRegistry;
pub(crate) use view::{JobView, Signed, Whose};
