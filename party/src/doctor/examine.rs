//! The doctor makes every check, one after the other.

use std::path::Path;

use super::{disk, identity, ledger, network, permissions, records};
use crate::config::PartyConfig;
use conclave_ops::doctor::Finding;

/// Looks at everything that a party depends on.
pub(crate) async fn examine(file: &Path) -> Vec<Finding> {
    let config = match PartyConfig::load(file) {
        Ok(config) => config,
        Err(e) => {
            return vec![Finding::fail("config", e.to_string(), "mend the configuration: nothing else can be looked at before")];
        }
    };
    let mut findings = vec![Finding::ok("config", format!("{} is in order", file.display()))];
    let (own, identity) = identity::check(&config);
    findings.extend(own);
    findings.extend(network::check(&config, identity).await);
    // What follows reads files and may take its time; nothing else runs on this thread.
    findings.extend(records::check(&config));
    findings.extend(ledger::check(&config));
    findings.extend(disk::check(&config));
    findings.extend(permissions::check(&config));
    let apart = config.head_apart().err();
    findings
        .extend(apart.map(|beside| Finding::fail("secure", beside, "move the head file away: the party does not start before")));
    findings.extend(
        config
            .secure
            .concerns()
            .into_iter()
            .map(|concern| Finding::warn("secure", concern, "docs/how-to/data-owner/take-part-in-secure-jobs.md says what to set under [secure]")),
    );
    findings
}
