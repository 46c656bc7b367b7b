//! `conclave-party doctor`.

use conclave_ops::doctor::{object, table, verdict};

use super::common::Common;
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
    let private = findings.iter().any(|finding| finding.private);
    let warning =
        "\n\nThe rows data, columns and bounds reveal facts about your records: do not share them when you ask for help.";
    common.print(&object(&findings), &format!("{}{}", table(&findings).trim_end(), if private { warning } else { "" }))?;
    verdict(&findings).map_err(StartError::System)
}
