//! `conclave-coordinator run --check`: every check that changes nothing.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;

use conclave_ops::check::{Checks, check_port, check_writable};
use conclave_ops::files::check_regular;
use conclave_ops::private_files::with_suffix;
use conclave_proto::tls::IdentityDir;

use crate::config::Config;
use crate::server::Credentials;
use crate::store::{APPLICATION_ID, SCHEMA_VERSION};

/// Checks everything that the configuration at `path` names.
pub(crate) fn check(path: &Path) -> Checks {
    let mut checks = Checks::default();
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(fault) => {
            checks.fault("config", fault.to_string());
            return checks;
        }
    };
    checks.good("config", format!("{}: every key is known", path.display()));
    checks.add_result("identity", identity(&config));
    let running = is_running(&config.store);
    if running {
        checks.note("listen", format!("{} was not tried: a coordinator is running on this store", config.listen));
    } else {
        checks.add_result("listen", check_port(config.listen));
    }
    checks.add_result("store", store(&config.store, running));
    checks.add_result("draws", check_writable(&config.draws));
    checks.check_metrics(config.ops.metrics, running);
    checks.check_pages("dashboard", config.dashboard, running);
    if let Some(address) = config.dashboard.filter(|address| !address.ip().is_loopback()) {
        checks.note(
            "dashboard",
            format!("{address} is reachable by others: served over TLS, and opened by an analyst's certificate or the token"),
        );
    }
    checks
}

fn identity(config: &Config) -> Result<String, String> {
    Credentials::of(config).map_err(|fault| fault.to_string())?;
    let identity = IdentityDir::load(&config.identity).map_err(|fault| fault.to_string())?;
    Ok(format!("{}: {}", config.identity.display(), identity.identity().uri()))
}

/// Returns true if another process holds the store's lock.
fn is_running(store: &Path) -> bool {
    let file = File::open(with_suffix(store, ".lock"));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn store(path: &Path, running: bool) -> Result<String, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = check_writable(folder)?;
    if !path.exists() {
        return Ok(format!("{} will be created; {place}", path.display()));
    }
    // A write-ahead log that is not merged yet may hold the first page; the file alone is then inconclusive.
    if !running && !with_suffix(path, "-wal").exists() {
        let foreign = |what: &str| format!("{}: {what}: name another file in `store`", path.display());
        match header_ids(path).map_err(|e| format!("{}: {e}", path.display()))? {
            Some((application, _)) if i64::from(application) != APPLICATION_ID => {
                return Err(foreign("not a coordinator's store"));
            }
            Some((_, version)) if i64::from(version) != SCHEMA_VERSION => {
                return Err(foreign(&format!("written by another version (schema {version}, this one reads {SCHEMA_VERSION})")));
            }
            Some(_) => {}
            None => return Err(foreign("not an SQLite file")),
        }
    }
    Ok(format!("{} exists; {place}", path.display()))
}

/// Reads `application_id` and `user_version` from the file's header (sqlite.org/fileformat.html, 1.3). Opening a database, even
/// to read, may create files beside it.
fn header_ids(path: &Path) -> std::io::Result<Option<(u32, u32)>> {
    let mut header = Vec::new();
    check_regular(path)?;
    File::open(path)?.take(100).read_to_end(&mut header)?;
    let number = |at: usize| Some(u32::from_be_bytes(*header.get(at..at + 4)?.first_chunk()?));
    Ok(header.starts_with(b"SQLite format 3\0").then(|| Some((number(68)?, number(60)?))).flatten())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::store::Store;

    #[test]
    fn stores_are_distinguished_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.sqlite");
        assert!(store(&path, false).unwrap().contains("will be created"));
        let (open, _) = Store::open(&path).unwrap();
        assert!(is_running(&path));
        open.close();
        drop(open);
        assert!(!is_running(&path));
        assert_eq!(
            header_ids(&path).unwrap().map(|(id, version)| (i64::from(id), i64::from(version))),
            Some((APPLICATION_ID, SCHEMA_VERSION))
        );
        assert!(store(&path, false).unwrap().contains("exists"));
        std::fs::write(&path, "text").unwrap();
        assert!(store(&path, false).unwrap_err().contains("not an SQLite file"));
    }
}
