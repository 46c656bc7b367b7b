//! The configuration file as written, table by table, and its checks.

mod data;
mod file;
mod policy;
mod secure;

use conclave_common::settings::{Fault, Setting, Value};
use conclave_proto::identity::valid_name;

pub(super) use file::Config;
pub use file::KEYS;

/// Reads the name of a party or an analyst.
fn name(value: &Value) -> Result<String, Fault> {
    let name = String::read(value)?;
    if valid_name(&name) { Ok(name) } else { Err(Fault::of(format!("is {name:?}: a name is 1 to 63 of a-z, 0-9 and -"))) }
}
