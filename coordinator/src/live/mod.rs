//! Live views of running chains for the dashboard and `conclave watch`: updated as draws are written, in bounded memory.

mod cached;
mod chains;
mod stored;
mod summary;
mod traces;

pub(crate) use cached::{Cached, CachedByKey};
pub(crate) use chains::{Live, ParameterView, RoundTime, View};
pub(crate) use stored::{ReadRequest, ReadState, StoredChains};
pub(crate) use traces::traces;
