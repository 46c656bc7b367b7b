//! One job: where it stands, what it spends, how its chains mix.

mod page;
mod parts;
mod result;
mod times;

pub(super) use page::{ask_to_cancel, cancel, events, page};
