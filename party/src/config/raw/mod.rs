//! The configuration file as written, table by table, and its checks.

mod data;
mod file;
mod name;
mod policy;
mod secure;

pub(super) use file::Config;
pub use file::KEYS;
