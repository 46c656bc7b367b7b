//! All jobs of this coordinator.

mod jobs;
mod stored;
mod view;

pub(crate) use jobs::JobRegistry;
pub(crate) use view::{JobView, Signed, Whose};
