//! One job's page: its state, its spending, the mixing of its chains.

mod head;
mod page;
mod parts;
mod progress;
mod result;
mod times;

pub(super) use page::{ask_to_cancel, cancel, events, page};
