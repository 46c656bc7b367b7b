//! SIGHUP: the configuration is read again. The log level changes while the coordinator runs. Certificates and revocation lists
//! are reloaded within a second, even without the signal. Everything else requires a restart, and the log names the keys.

use std::path::PathBuf;

use conclave_ops::{Level, Reloads};

use crate::config::Config;
use crate::server::Credentials;

/// Reads the configuration again at every signal, forever. `config` is the one that the coordinator was started with.
pub(crate) async fn watch(file: PathBuf, mut config: Config, mut reloads: Reloads, level: Level) {
    loop {
        reloads.next().await;
        let new = match Config::load(&file) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!("the configuration can't be used and is ignored: {error}");
                continue;
            }
        };
        let changed = restart_keys(&config, &new);
        if !changed.is_empty() {
            tracing::warn!("the configuration has been read again; these keys require a restart: {}", changed.join(", "));
        }
        level.reload("coordinator", &mut config.ops.level, new.ops.level);
        match Credentials::of(&config) {
            Ok(_) => tracing::info!("certificates and revocations can be read; changes take effect within a second"),
            Err(error) => tracing::error!("{error}"),
        }
        tracing::info!("the configuration has been read again");
    }
}

/// Keys whose values differ and that require a restart.
fn restart_keys(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = [
        ("listen", old.listen != new.listen),
        ("identity", old.identity != new.identity),
        ("store", old.store != new.store),
        ("draws", old.draws != new.draws),
        ("revoked", old.revoked != new.revoked),
        ("log", old.ops.log != new.ops.log),
        ("metrics", old.ops.metrics != new.ops.metrics),
        ("otlp", old.ops.otlp != new.ops.otlp),
        ("dashboard", old.dashboard != new.dashboard),
        ("dashboard_tls", old.dashboard_tls != new.dashboard_tls),
        ("dashboard_token", old.dashboard_token != new.dashboard_token),
        ("dashboard_hosts", old.dashboard_hosts != new.dashboard_hosts),
        ("running_jobs, unfinished_jobs_per_analyst, submissions_per_minute", old.bounds != new.bounds),
    ];
    differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}
