//! `conclave-party doctor`.

use serde_json::json;

use super::common::{Common, print, print_json};
use conclave_ops::doctor::{Outcome, table};

use crate::doctor::examine;
use crate::error::StartError;

pub(super) fn doctor(common: &Common) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| StartError::System(format!("no runtime: {e}")))?;
    let findings = runtime.block_on(examine(&common.config));
    // A name lookup may occupy a thread for long.
    runtime.shutdown_background();
    let count = |result| findings.iter().filter(|f| f.result == result).count();
    let (failed, warned) = (count(Outcome::Fail), count(Outcome::Warn));
    if common.json {
        print_json(&json!({ "good": failed == 0, "failed": failed, "warnings": warned, "checks": findings }))?;
    } else {
        print(table(&findings).trim_end())?;
        if findings.iter().any(|f| f.private) {
            print(
                "\nThe rows data, columns and bounds reveal facts about your records: do not share them when you ask for help.",
            )?;
        }
    }
    match failed {
        0 => Ok(()),
        1 => Err(StartError::System("one check failed; see the table".into())),
        n => Err(StartError::System(format!("{n} checks failed; see the table"))),
    }
}
