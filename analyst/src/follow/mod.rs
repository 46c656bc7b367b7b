//! Follows a job to its end: reads the stream of statuses, shows progress, and reconnects after a broken connection.

mod chain_table;
mod json_lines;
mod observer;
mod pace;
mod screen;
mod stream;
mod text;

pub(crate) use observer::Observer;
pub(crate) use pace::RunHistory;
pub(crate) use stream::{follow, follow_with, has_ended};
