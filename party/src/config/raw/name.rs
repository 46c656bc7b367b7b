//! Names of parties and analysts.

use conclave_common::settings::{Fault, Setting, Value};
use conclave_proto::identity::valid_name;

pub(super) fn name(value: &Value) -> Result<String, Fault> {
    let name = String::read(value)?;
    if valid_name(&name) { Ok(name) } else { Err(Fault::of(format!("is {name:?}: a name is 1 to 63 of a-z, 0-9 and -"))) }
}
