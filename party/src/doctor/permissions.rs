//! Permissions of keys, ledger and records.

use std::path::{Path, PathBuf};

use crate::config::PartyConfig;
use conclave_ops::doctor::Finding;
#[cfg(unix)]
use conclave_ops::files::{mode, parent_folder};
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
    // The findings of paths whose mode has one of these bits set.
    let mut findings = Vec::new();
    let mut check = |path: &Path, bits: u32, finding: &dyn Fn(&str) -> Finding| {
        let mode = mode(path).filter(|mode| mode & bits != 0);
        findings.extend(mode.map(|mode| finding(&format!("(mode {mode:03o})"))));
    };
    for key in [&config.key, &secret] {
        let path = key.display();
        check(key, 0o077, &|mode| {
            Finding::fail(CODE, format!("{path} can be read or replaced by others {mode}"), format!("chmod 600 {path}"))
        });
    }
    let masks = MaskKeys::folder_beside(&secret);
    let path = masks.display();
    check(&masks, 0o077, &|mode| {
        let found = format!("others may look into {path}, the mask keys' folder {mode}");
        Finding::fail(CODE, found, format!("chmod 700 {path}"))
    });
    let decisions = ConsentStore::path_of(&config.ledger);
    for (file, what) in
        [(&config.ledger, "the ledger"), (&decisions, "the file of decisions"), (&config.data.path, "the records")]
    {
        let path = file.display();
        check(file, 0o007, &|mode| {
            let found = format!("{what}, {path}, can be read by every user of this machine {mode}");
            Finding::warn(CODE, found, format!("chmod o= {path}"))
        });
    }
    for folder in folders(config, &secret) {
        let path = folder.display();
        check(&folder, 0o002, &|mode| {
            let found = format!("every user of this machine may replace files in {path} {mode}");
            Finding::fail(CODE, found, format!("chmod o-w {path}"))
        });
    }
    findings.extend(owners(config, &secret));
    if findings.is_empty() {
        findings.push(Finding::ok(CODE, "keys are readable by their owner only, and ledger and records are closed to others"));
    }
    findings
}

#[cfg(unix)]
fn folders(config: &PartyConfig, secret: &Path) -> Vec<PathBuf> {
    let certificate = config.identity.join("certificate.pem");
    let files = [&config.ledger, &config.key, &config.head_file, secret, &certificate];
    let mut all = files.map(|file| parent_folder(file).to_owned()).to_vec();
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
