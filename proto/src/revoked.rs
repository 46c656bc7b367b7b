//! Certificates that a member rejects whatever CA signed them: names or serial numbers in a text file.
//!
//! Each line holds one entry, and `#` starts a comment. `coordinator/main` or `conclave://analyst/alice` gives a role and name,
//! a bare `alice` a name in any role. A serial number is hexadecimal as `conclave ca show` prints it (colons allowed). The file
//! is read again at every check. An unreadable file revokes all certificates: the check fails closed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, valid_name};

/// Begins a text file of some editors.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file of revoked certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedFile(PathBuf);

impl RevokedFile {
    /// Refers to the file at `path`, which need not exist yet.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] that names the file, and the line of an invalid entry.
    pub fn read(&self) -> Result<RevokedList, Fault> {
        let fail = |what: String| Fault::new(ErrorCode::InvalidInput, format!("`revoked` = {}: {what}", self.0.display()));
        let text = std::fs::read_to_string(&self.0).map_err(|e| {
            fail(format!("cannot be read ({e}): no certificate is trusted until it can; an empty file revokes none"))
        })?;
        RevokedList::parse(&text).map_err(fail)
    }
}

/// The entries of such a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevokedList {
    names: HashSet<String>,
    serials: HashSet<String>,
}

impl RevokedList {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// A message that names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for (at, line) in (1..).zip(text.trim_start_matches(BYTE_ORDER_MARK).lines()) {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            let name = entry.strip_prefix("conclave://").unwrap_or(entry);
            let named = valid_name(name) || PeerIdentity::parse_uri(&format!("conclave://{name}")).is_ok();
            let serial = serial(entry);
            if !named && serial.is_none() {
                return Err(format!(
                    "line {at}: {entry:?} is neither a name such as analyst/alice nor a serial number in hexadecimal"
                ));
            }
            // An ambiguous entry counts as both: refusing too many certificates is the safe mistake.
            list.names.extend(named.then(|| name.to_owned()));
            list.serials.extend(serial);
        }
        Ok(list)
    }

    /// Returns true if the list names a member, given as `ROLE/NAME`, in that role or in any role.
    pub fn has_member(&self, member: &str) -> bool {
        self.names.contains(member) || member.split_once('/').is_some_and(|(_, name)| self.names.contains(name))
    }

    /// Returns true if the list contains a certificate's serial number, in hexadecimal.
    #[must_use]
    pub fn has_serial(&self, text: &str) -> bool {
        serial(text).is_some_and(|serial| self.serials.contains(&serial))
    }

    /// Refuses a certificate that the list names.
    ///
    /// # Errors
    /// [`ErrorCode::Unauthenticated`] if it is named, or can't be read.
    pub fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Fault> {
        let identity = PeerIdentity::from_certificate(certificate)?;
        let number = serial_of(certificate)?;
        let role_and_name = format!("{}/{}", identity.role, identity.name);
        if self.names.contains(&identity.name) || self.names.contains(&role_and_name) || self.serials.contains(&number) {
            return Err(Fault::new(ErrorCode::Unauthenticated, format!("the certificate of {role_and_name} is revoked here")));
        }
        Ok(())
    }

    /// Applies [`RevokedList::check`] to the first certificate of a PEM chain.
    ///
    /// # Errors
    /// As [`RevokedList::check`].
    pub fn check_pem(&self, chain: &str) -> Result<(), Fault> {
        let leaf = CertificateDer::from_pem_slice(chain.as_bytes())
            .map_err(|_| Fault::new(ErrorCode::Unauthenticated, "the certificate cannot be read"))?;
        self.check(&leaf)
    }
}

/// Returns the serial number of a certificate, in lower-case hexadecimal without leading zeros.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the certificate can't be read.
pub fn serial_of(certificate: &CertificateDer<'_>) -> Result<String, Fault> {
    let unreadable = |_| Fault::new(ErrorCode::Unauthenticated, "the certificate cannot be read");
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(unreadable)?;
    Ok(serial(&parsed.raw_serial_as_string()).unwrap_or_default())
}

/// Normalises a serial number: lower case, without colons and leading zeros; `None` if it is not hexadecimal.
fn serial(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect::<String>().to_ascii_lowercase();
    let hexadecimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hexadecimal.then(|| digits.trim_start_matches('0').to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::SystemTime;

    use super::*;
    use crate::ca::{self, Validity};
    use crate::identity::Role;

    #[test]
    fn names_and_serials_revoke() {
        let validity = Validity { now: SystemTime::now(), days: 10 };
        let ca = ca::create_ca("town", validity).unwrap();
        let issue = |role, name| ca::issue(&ca, &PeerIdentity::new(role, name).unwrap(), &[], validity).unwrap().pem;
        let (alice, bob) = (issue(Role::Analyst, "alice"), issue(Role::Analyst, "bob"));
        let der = CertificateDer::from_pem_slice(bob.as_bytes()).unwrap();
        let number = X509Certificate::from_der(&der).unwrap().1.raw_serial_as_string();
        for (text, refused) in [
            ("# nobody\n\n".to_owned(), [false, false]),
            ("alice # left us\n".to_owned(), [true, false]),
            ("analyst/alice\n".to_owned(), [true, false]),
            ("\u{feff}alice\n".to_owned(), [true, false]),
            ("conclave://analyst/bob".to_owned(), [false, true]),
            ("party/alice".to_owned(), [false, false]),
            (number.to_uppercase(), [false, true]),
            (number.replace(':', ""), [false, true]),
            (format!("alice\n{number}\n"), [true, true]),
        ] {
            let list = RevokedList::parse(&text).unwrap();
            assert_eq!([&alice, &bob].map(|pem| list.check_pem(pem).is_err()), refused, "{text:?}");
        }
        assert!(RevokedList::parse("alice\nAlice Smith\n").unwrap_err().contains("line 2"));
        assert!(RevokedFile::at(Path::new("/nowhere/r.txt")).read().unwrap_err().message.contains("/nowhere/r.txt"));
    }
}
