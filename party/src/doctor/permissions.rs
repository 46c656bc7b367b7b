//! Permissions of keys, ledger and records.

use std::path::{Path, PathBuf};

use crate::config::PartyConfig;
use conclave_ops::doctor::Finding;
#[cfg(unix)]
use conclave_ops::files::mode;
use conclave_vault::consent::ConsentStore;
#[cfg(unix)]
use conclave_vault::secure::MaskKeys;

const CODE: &str = "permissions";

#[cfg(not(unix))]
pub(super) fn check(_config: &PartyConfig) -> Vec<Finding> {
    vec![Finding::skipped(CODE, "file modes are checked on Unix only")]
}

#[cfg(unix)]
pub(super) fn check(config: &PartyConfig) -> Vec<Finding> {
    let secret = config.ledger_settings().secret;
    let mut findings = Vec::new();
    for key in [&config.key, &secret] {
        findings.extend(mode(key).filter(|mode| mode & 0o077 != 0).map(|mode| {
            let path = key.display();
            Finding::fail(
                CODE,
                format!("{path} can be read or replaced by others (mode {mode:03o})"),
                format!("chmod 600 {path}"),
            )
        }));
    }
    let masks = MaskKeys::folder_beside(&secret);
    findings.extend(mode(&masks).filter(|mode| mode & 0o077 != 0).map(|mode| {
        let path = masks.display();
        Finding::fail(
            CODE,
            format!("others may look into {path}, the mask keys' folder (mode {mode:03o})"),
            format!("chmod 700 {path}"),
        )
    }));
    for (file, what) in [
        (config.ledger.clone(), "the ledger"),
        (ConsentStore::path_of(&config.ledger), "the file of decisions"),
        (config.data.path.clone(), "the records"),
    ] {
        findings.extend(mode(&file).filter(|mode| mode & 0o007 != 0).map(|mode| {
            let path = file.display();
            let found = format!("{what}, {path}, can be read by every user of this machine (mode {mode:03o})");
            Finding::warn(CODE, found, format!("chmod o= {path}"))
        }));
    }
    for folder in folders(config, &secret) {
        findings.extend(mode(&folder).filter(|mode| mode & 0o002 != 0).map(|mode| {
            let path = folder.display();
            let found = format!("every user of this machine may replace files in {path} (mode {mode:03o})");
            Finding::fail(CODE, found, format!("chmod o-w {path}"))
        }));
    }
    findings.extend(owners(config, &secret));
    if findings.is_empty() {
        findings.push(Finding::ok(CODE, "keys are readable by their owner only, and ledger and records are closed to others"));
    }
    findings
}

#[cfg(unix)]
fn folders(config: &PartyConfig, secret: &Path) -> Vec<PathBuf> {
    let parents = [&config.ledger, &config.key, &config.head_file].map(|path| path.parent().map(Path::to_owned));
    let mut all: Vec<PathBuf> =
        parents.into_iter().flatten().chain([config.identity.clone()]).chain(secret.parent().map(Path::to_owned)).collect();
    all.iter_mut().filter(|path| path.as_os_str().is_empty()).for_each(|path| *path = PathBuf::from("."));
    all.sort();
    all.dedup();
    all
}

/// Checks that files written by the daemon belong to the same user as its key.
#[cfg(unix)]
fn owners(config: &PartyConfig, secret: &Path) -> Option<Finding> {
    use std::os::unix::fs::MetadataExt;
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    let key = owner(&config.key)?;
    let other = [config.ledger.as_path(), secret, &config.head_file]
        .into_iter()
        .find(|path| owner(path).is_some_and(|uid| uid != key))?;
    Some(Finding::warn(
        CODE,
        format!("{} and {} belong to different users", config.key.display(), other.display()),
        format!("chown both to the user that runs the party; `ls -ln {}` shows the owner", other.display()),
    ))
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use conclave_ops::doctor::Outcome;

    #[test]
    fn open_keys_fail_and_open_ledgers_warn() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let set = |name: &str, mode| std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        let text = "name = \"a\"\ncoordinator = \"https://c\"\nidentity = \".\"\nledger = \"l\"\n[data]\npath = \"a.csv\"\n[budget]\n\
                    epsilon = 1\ndelta = 1e-6\n";
        let config = PartyConfig::parse(text, folder.path()).unwrap();
        for (name, mode) in [("key.pem", 0o600), ("ledger-secret.key", 0o600), ("l", 0o640), ("a.csv", 0o600)] {
            std::fs::write(path(name), "").unwrap();
            set(name, mode);
        }
        let results =
            || check(&config).iter().map(|f| (f.result, f.remedy.split(' ').next().unwrap_or("").to_owned())).collect::<Vec<_>>();
        assert_eq!(results(), [(Outcome::Ok, String::new())]);
        set("l", 0o644);
        assert_eq!(results(), [(Outcome::Warn, "chmod".to_owned())]);
        set("key.pem", 0o640);
        set("l", 0o600);
        assert_eq!(results(), [(Outcome::Fail, "chmod".to_owned())]);
        set("key.pem", 0o600);
        std::fs::create_dir(path("mask-keys")).unwrap();
        set("mask-keys", 0o750);
        assert_eq!(results(), [(Outcome::Fail, "chmod".to_owned())]);
        set("mask-keys", 0o700);
        set("", 0o777);
        assert_eq!(results()[0].0, Outcome::Fail);
        set("", 0o1777);
        assert_eq!(results()[0].0, Outcome::Ok);
    }
}
