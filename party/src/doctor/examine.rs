//! Runs all checks of the doctor in sequence.

use std::path::Path;

use super::{disk, identity, ledger, network, permissions, records};
use crate::config::{PartyConfig, secure_concerns};
use conclave_ops::doctor::Finding;

pub(crate) async fn examine(file: &Path) -> Vec<Finding> {
    let config = match PartyConfig::load(file) {
        Ok(config) => config,
        Err(e) => {
            return vec![Finding::fail("config", e.to_string(), "correct the configuration: nothing else can be checked before")];
        }
    };
    let mut findings = vec![Finding::ok("config", format!("{} is valid", file.display()))];
    let (own, identity) = identity::check(&config);
    findings.extend(own);
    findings.extend(network::check(&config, identity).await);
    // The following checks read files and may take long; nothing else runs on this thread.
    findings.extend(records::check(&config));
    findings.extend(ledger::check(&config));
    findings.extend(disk::check(&config));
    findings.extend(permissions::check(&config));
    let misplaced = config.check_head_location().err();
    findings
        .extend(misplaced.map(|message| Finding::fail("secure", message, "move the head file: the party does not start before")));
    findings.extend(secure_concerns(&config.secure).into_iter().map(|concern| {
        Finding::warn(
            "secure",
            concern,
            "docs/how-to/data-owner/take-part-in-secure-jobs.md describes the settings under [secure]",
        )
    }));
    findings
}
