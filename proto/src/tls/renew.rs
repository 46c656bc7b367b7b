//! Renewal of an identity in its folder: a new request, and the installation of the certificate returned for it.
//!
//! Each file is replaced atomically, so that a daemon that rereads its folder at every dial always finds complete files. If the
//! key is replaced too, the certificate is replaced first and the pending key directly after it. A dial in between is refused
//! for a key that does not match its certificate, and is retried. If the machine stops in between, repeating the installation
//! completes it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::folder::{CA, CERTIFICATE, IdentityDir};
use crate::ca;
use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// File name of the signing request in an identity folder.
pub const REQUEST: &str = "request.pem";

/// Returns the path of the pending key, which waits for its certificate beside the current key: `key.next.pem` beside `key.pem`.
pub fn next_key(key: &Path) -> PathBuf {
    key.with_extension("next.pem")
}

/// Writes a new `request.pem`, signed by the current key, or with `new_key` by a pending key beside it. Returns the request's
/// path.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] naming the file that can't be read or written.
pub fn request(folder: &Path, key: &Path, identity: &PeerIdentity, hosts: &[String], new_key: bool) -> Result<PathBuf, Fault> {
    let waiting = next_key(key);
    let pem = match (new_key, waiting.exists()) {
        (true, false) => {
            let made = ca::make_request(identity, hosts)?;
            create_private(&waiting, &made.key_pem)?;
            made.pem
        }
        // The key of a lost request is as good as a newer one.
        (true, true) => ca::request_with_key(identity, hosts, &read(&waiting)?).map_err(|e| in_file(&waiting, &e))?,
        (false, _) => ca::request_with_key(identity, hosts, &read(key)?).map_err(|e| in_file(key, &e))?,
    };
    let path = folder.join(REQUEST);
    replace(&path, &pem)?;
    Ok(path)
}

/// The result of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Expiry of the certificate.
    pub expiry: SystemTime,
    /// True if the pending key has become the current key.
    pub new_key: bool,
    /// True if the folder had no CA before.
    pub new_ca: bool,
}

/// Checks a returned certificate and installs it, with its pending key if there is one, and with `ca_pem` in a folder without a
/// `ca.pem`. Nothing is changed unless all checks pass: the key is here, the name is `identity`'s, the CA signed the
/// certificate, and it is valid at `now`.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] naming the failed check.
pub fn install(
    folder: &Path,
    key: &Path,
    identity: &PeerIdentity,
    certificate_pem: &str,
    ca_pem: Option<&str>,
    now: SystemTime,
) -> Result<Installation, Fault> {
    let (ca_pem, new_ca) = trusted_ca(folder, ca_pem)?;
    let waiting = next_key(key);
    let (key_in_use, new_key) = matching_key(certificate_pem, key, &waiting)?;
    let found = IdentityDir::assemble(folder, &key_in_use, certificate_pem.to_owned(), read(&key_in_use)?, ca_pem.clone())?;
    if found.identity() != identity {
        return Err(input(format!(
            "the certificate belongs to {}, but this folder belongs to {}",
            found.identity().uri(),
            identity.uri()
        )));
    }
    found.check_at(now).map_err(|e| input(format!("the returned certificate can't be used: {}", e.message)))?;
    if new_ca {
        replace(&folder.join(CA), &ca_pem)?;
    }
    replace(&folder.join(CERTIFICATE), certificate_pem)?;
    if new_key {
        std::fs::rename(&waiting, key).map_err(|e| fault(key, "be replaced", &e))?;
        sync_folder(key)?;
    }
    Ok(Installation { expiry: found.expiry()?.certificate, new_key, new_ca })
}

/// Returns the CA that must have signed the certificate, and true if it is new here.
fn trusted_ca(folder: &Path, given: Option<&str>) -> Result<(String, bool), Fault> {
    let path = folder.join(CA);
    match (path.exists(), given) {
        (true, None) => Ok((read(&path)?, false)),
        (true, Some(given)) => {
            let own = read(&path)?;
            // The file may hold several CAs during a replacement.
            if ca::fingerprints(&own)?.is_superset(&ca::fingerprints(given)?) {
                return Ok((own, false));
            }
            Err(input(format!(
                "the CA that came with the certificate is not the one in {}: ask the operator of the consortium's CA; if it was \
                 replaced, add the new one to that file by hand",
                path.display()
            )))
        }
        (false, Some(given)) => Ok((given.to_owned(), true)),
        (false, None) => Err(input(format!("{} does not exist: give the consortium's CA with --ca ca.pem", path.display()))),
    }
}

/// Returns the key that belongs to the certificate, and true if it is the pending one.
fn matching_key(certificate_pem: &str, key: &Path, waiting: &Path) -> Result<(PathBuf, bool), Fault> {
    let wanted = ca::summarise(certificate_pem)?.key_fingerprint;
    for (path, new) in [(key, false), (waiting, true)] {
        if path.exists() && ca::key_fingerprint(&read(path)?).map_err(|e| in_file(path, &e))? == wanted {
            return Ok((path.to_owned(), new));
        }
    }
    Err(input(format!(
        "the certificate matches none of the keys here ({}{}): it was signed for another request",
        key.display(),
        if waiting.exists() { format!(", {}", waiting.display()) } else { String::new() }
    )))
}

/// Replaces a world-readable file atomically.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] naming the file.
pub fn replace(path: &Path, text: &str) -> Result<(), Fault> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(|e| fault(path, "be written", &e))?;
    sync_folder(path)
}

fn create_private(path: &Path, text: &str) -> Result<(), Fault> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|e| fault(path, "be written", &e))?;
    sync_folder(path)
}

/// Makes a rename or a new name durable, if the system supports it.
fn sync_folder(path: &Path) -> Result<(), Fault> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(e) if cfg!(unix) && e.kind() != ErrorKind::PermissionDenied => Err(fault(folder, "be synced", &e)),
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|e| fault(path, "be read", &e))
}

fn fault(path: &Path, what: &str, error: &std::io::Error) -> Fault {
    input(format!("{} cannot {what}: {error}", path.display()))
}

fn in_file(path: &Path, fault: &Fault) -> Fault {
    Fault { message: format!("{}: {}", path.display(), fault.message), ..fault.clone() }
}

fn input(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ca::{KeyedPem, Validity};
    use crate::identity::Role;

    struct Town {
        folder: tempfile::TempDir,
        ca: KeyedPem,
        name: PeerIdentity,
    }

    impl Town {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let ca = ca::create_ca("town", days(10)).unwrap();
            let name = PeerIdentity::new(Role::Party, "a").unwrap();
            let request = ca::make_request(&name, &[]).unwrap();
            create_private(&folder.path().join("key.pem"), &request.key_pem).unwrap();
            replace(&folder.path().join(REQUEST), &request.pem).unwrap();
            Self { folder, ca, name }
        }

        fn key(&self) -> PathBuf {
            self.folder.path().join("key.pem")
        }

        fn renew(&self, new_key: bool) {
            request(self.folder.path(), &self.key(), &self.name, &[], new_key).unwrap();
        }

        fn signed(&self, days: Validity) -> String {
            ca::sign(&self.ca, &read(&self.folder.path().join(REQUEST)).unwrap(), false, days).unwrap()
        }

        fn install(&self, certificate: &str, ca: Option<&str>) -> Result<Installation, Fault> {
            install(self.folder.path(), &self.key(), &self.name, certificate, ca, SystemTime::now())
        }

        fn serial(&self) -> String {
            ca::summarise(&read(&self.folder.path().join(CERTIFICATE)).unwrap()).unwrap().serial
        }
    }

    fn days(days: u32) -> Validity {
        Validity { now: SystemTime::now(), days }
    }

    #[test]
    fn a_certificate_is_put_in_and_renewed_with_and_without_its_key() {
        let town = Town::new();
        let first = town.signed(days(1));
        assert!(town.install(&first, None).unwrap_err().message.contains("--ca"));
        assert!(town.install(&first, Some(&town.ca.pem)).unwrap().new_ca);
        let (old_key, old_serial) = (read(&town.key()).unwrap(), town.serial());

        town.renew(false);
        let done = town.install(&town.signed(days(2)), None).unwrap();
        assert_eq!((done.new_key, done.new_ca), (false, false));
        assert!(town.serial() != old_serial && read(&town.key()).unwrap() == old_key);
        IdentityDir::load(town.folder.path()).unwrap();

        // The current key stays until its successor's certificate is installed; a second request creates no third key.
        town.renew(true);
        let waiting = read(&next_key(&town.key())).unwrap();
        town.renew(true);
        assert_eq!((read(&next_key(&town.key())).unwrap(), read(&town.key()).unwrap()), (waiting.clone(), old_key));
        IdentityDir::load(town.folder.path()).unwrap();
        assert!(town.install(&town.signed(days(2)), Some(&town.ca.pem)).unwrap().new_key);
        assert!(!next_key(&town.key()).exists() && read(&town.key()).unwrap() == waiting);
        IdentityDir::load(town.folder.path()).unwrap().check_at(SystemTime::now()).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(town.key()).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn an_installation_that_was_cut_short_is_ended_by_the_same_one() {
        let town = Town::new();
        town.install(&town.signed(days(1)), Some(&town.ca.pem)).unwrap();
        town.renew(true);
        let next = town.signed(days(2));
        replace(&town.folder.path().join(CERTIFICATE), &next).unwrap();
        assert!(IdentityDir::load(town.folder.path()).is_err());
        assert!(town.install(&next, None).unwrap().new_key);
        IdentityDir::load(town.folder.path()).unwrap();
    }

    #[test]
    fn what_does_not_hold_changes_nothing() {
        let town = Town::new();
        town.install(&town.signed(days(1)), Some(&town.ca.pem)).unwrap();
        let serial = town.serial();
        let other_ca = ca::create_ca("elsewhere", days(10)).unwrap();
        let request = read(&town.folder.path().join(REQUEST)).unwrap();
        let expired = Validity { now: SystemTime::now() - std::time::Duration::from_secs(5 * 86_400), days: 2 };
        let stranger = ca::issue(&town.ca, &town.name, &[], days(1)).unwrap().pem;
        let renamed =
            ca::request_with_key(&PeerIdentity::new(Role::Party, "b").unwrap(), &[], &read(&town.key()).unwrap()).unwrap();
        for (certificate, ca, part) in [
            (stranger, None, "another request"),
            (ca::sign(&other_ca, &request, false, days(1)).unwrap(), None, "not signed by the CA"),
            (town.signed(days(1)), Some(other_ca.pem.as_str()), "is not the one in"),
            (town.signed(expired), None, "expired"),
            (ca::sign(&town.ca, &renamed, false, days(1)).unwrap(), None, "conclave://party/b"),
            ("nothing".to_owned(), None, "no PEM certificate"),
        ] {
            let fault = town.install(&certificate, ca).unwrap_err();
            assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains(part), "{part}: {fault}");
            assert_eq!(town.serial(), serial, "{part}");
        }
        IdentityDir::load(town.folder.path()).unwrap();
    }
}
