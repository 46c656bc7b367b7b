//! The configuration file as written, table by table, and its checks.

mod data;
mod file;
mod policy;
mod secure;
mod unknown;

pub(super) use file::Config;
pub use file::KEYS;
