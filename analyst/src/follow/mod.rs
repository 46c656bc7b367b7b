//! Following a job to its end: the stream of statuses, the progress shown, the broken connection survived.

mod chain_table;
mod pace;
mod screen;
mod stream;
mod text;

pub(crate) use stream::follow;
