//! SIGHUP: reads the configuration again and applies the changes that are possible while the party runs.
//!
//! The policy's limits and the log's level are applied. Certificates and lists of revoked ones are read again at every check
//! anyway. Settings fixed when the ledger, the records, a job's delay or an address was set up take a restart; the log names
//! their keys.

use std::path::PathBuf;

use conclave_ops::{Level, Reloads};
use conclave_proto::revoked::RevokedFile;

use crate::config::PartyConfig;
use crate::link::load_identity;
use conclave_vault::answer::thread::{AnswerHandle, Command};
use conclave_vault::config::Policy;

/// Inputs of a reload.
pub(crate) struct Reload {
    /// The configuration file.
    pub(crate) file: PathBuf,
    /// The signals that request a reload.
    pub(crate) signals: Reloads,
    /// The log's level.
    pub(crate) level: Level,
}

/// Reads the configuration again at every signal, indefinitely. `config` is the one that the party started with.
pub(crate) async fn watch(mut reload: Reload, mut config: PartyConfig, answers: AnswerHandle) {
    loop {
        reload.signals.next().await;
        let new = match PartyConfig::load(&reload.file) {
            Ok(new) => new,
            Err(e) => {
                tracing::error!("the configuration can't be used and is ignored: {e}");
                continue;
            }
        };
        let fixed = keys_for_restart(&config, &new);
        if !fixed.is_empty() {
            tracing::warn!("the configuration has been read again; these keys take effect after a restart: {}", fixed.join(", "));
        }
        let policy = Policy {
            columns: config.policy.columns.clone(),
            reply_delay: config.policy.reply_delay,
            max_epsilon_per_analyst: config.policy.max_epsilon_per_analyst,
            ..new.policy
        };
        if policy != config.policy {
            if answers.send(Command::Policy(Box::new(policy.clone()))).await.is_err() {
                return;
            }
            tracing::info!("the policy has been read again: its limits apply from now on");
            config.policy = policy;
        }
        reload.level.reload("party", &mut config.ops.level, new.ops.level);
        check_identity(&config);
        tracing::info!("the configuration has been read again");
    }
}

/// Logs whether certificate and revocations can be read: the link and the members' checks load them by themselves.
fn check_identity(config: &PartyConfig) {
    match load_identity(&config.identity, &config.key, &config.name) {
        Ok(_) => tracing::info!("the certificate can be read; a new one is loaded within a second"),
        Err(fault) => tracing::error!("{fault}"),
    }
    if let Some(path) = &config.revoked {
        match RevokedFile::at(path).read() {
            Ok(_) => tracing::info!("the list of revoked certificates can be read; it applies from now on"),
            Err(fault) => tracing::error!("{fault}"),
        }
    }
}

/// Returns the keys whose values differ and take effect only after a restart.
fn keys_for_restart(old: &PartyConfig, new: &PartyConfig) -> Vec<&'static str> {
    let differs = [
        ("name", old.name != new.name),
        ("coordinator", old.coordinator != new.coordinator),
        ("proxy", old.proxy != new.proxy),
        ("identity", old.identity != new.identity),
        ("key", old.key != new.key),
        ("revoked", old.revoked != new.revoked),
        ("ledger", old.ledger != new.ledger),
        ("head_file", old.head_file != new.head_file),
        ("durability", old.durability != new.durability),
        ("threads", old.threads != new.threads),
        ("data.precision", old.precision != new.precision),
        ("data", old.data != new.data),
        ("budget", old.budget != new.budget),
        ("log", old.ops.log != new.ops.log),
        ("metrics", old.ops.metrics != new.ops.metrics),
        ("otlp", old.ops.otlp != new.ops.otlp),
        ("page", old.page != new.page),
        ("organisation", old.organisation != new.organisation),
        ("other_releases", old.other_releases != new.other_releases),
        ("secure", old.secure != new.secure),
        ("policy.columns", old.policy.columns != new.policy.columns),
        ("policy.reply_delay_ms", old.policy.reply_delay != new.policy.reply_delay),
        ("policy.max_epsilon_per_analyst", old.policy.max_epsilon_per_analyst != new.policy.max_epsilon_per_analyst),
    ];
    differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    const TEXT: &str = "name = \"a\"\ncoordinator = \"https://c\"\nidentity = \"i\"\nledger = \"l\"\nthreads = 2\n[data]\npath = \"a.csv\"\n\
                        [budget]\nepsilon = 8.0\ndelta = 1e-6\n[policy]\nmax_epsilon_per_job = 3.0\nreply_delay_ms = 5\n";

    #[test]
    fn what_takes_a_restart_is_named() {
        let parse = |text: &str| PartyConfig::parse(text, Path::new("/etc")).unwrap();
        let changed = |from: &str, to: &str| {
            assert!(TEXT.contains(from));
            keys_for_restart(&parse(TEXT), &parse(&TEXT.replace(from, to)))
        };
        assert_eq!(changed("max_epsilon_per_job = 3.0", "max_epsilon_per_job = 1.0\nanalysts = [\"bob\"]"), [""; 0]);
        assert_eq!(changed("threads = 2", "threads = 1\nlog_level = \"warn\""), ["threads"]);
        assert_eq!(changed("epsilon = 8.0", "epsilon = 9.0"), ["budget"]);
        assert_eq!(changed("a.csv\"", "a.csv\"\nmissing = [\"NA\"]"), ["data"]);
        assert_eq!(
            changed("reply_delay_ms = 5", "reply_delay_ms = 6\ncolumns = [\"x\"]"),
            ["policy.columns", "policy.reply_delay_ms"]
        );
    }
}
