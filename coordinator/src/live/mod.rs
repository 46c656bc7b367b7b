//! What the dashboard and `conclave watch` show of running chains: kept as draws come, on the draws' way to disk, and small however many there are.

mod cached;
mod chains;
mod stored;
mod summary;
mod traces;

pub(crate) use cached::{Cached, CachedByKey};
pub(crate) use chains::{Live, ParameterView, RoundTime, View};
pub(crate) use stored::{Found, Request, Stored};
pub(crate) use traces::traces;
