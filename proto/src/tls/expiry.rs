//! Expiry of an identity's certificates.

use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::folder::IdentityDir;
use crate::ca;
use crate::error::{ErrorCode, Fault};

/// Time before expiry from which a member is warned.
pub const EXPIRY_WARNING: Duration = Duration::from_secs(30 * DAY);
const DAY: u64 = 86_400;

/// The expiry times of an identity folder's certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Expiry of the member's certificate, or of an intermediate in its file that expires earlier.
    pub certificate: SystemTime,
    /// Expiry of the consortium's CA: the latest if `ca.pem` holds several, as during a replacement.
    pub ca: SystemTime,
}

impl IdentityDir {
    /// Returns the expiry of the certificate and the CA.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] naming the file whose certificate can't be read.
    pub fn expiry(&self) -> Result<Expiry, Fault> {
        let (certificate, ca) = (ends(self.certificate_pem()), ends(self.ca_pem()));
        let missing = |file: &str| {
            Fault::new(ErrorCode::InvalidInput, format!("{} holds no readable certificate", self.folder().join(file).display()))
        };
        Ok(Expiry {
            certificate: certificate.and_then(|all| all.into_iter().min()).ok_or_else(|| missing(super::folder::CERTIFICATE))?,
            ca: ca.and_then(|all| all.into_iter().max()).ok_or_else(|| missing(super::folder::CA))?,
        })
    }
}

fn ends(pem: &str) -> Option<Vec<SystemTime>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(|der| ca::last_moment(&der.ok()?).ok()).collect()
}

/// Returns the whole days from `now` until `end`, rounded down; negative if `end` has passed.
#[must_use]
pub fn days_until(end: SystemTime, now: SystemTime) -> i64 {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let remaining = end.duration_since(now).map_or_else(|past| -seconds(past.duration()), seconds);
    remaining.div_euclid(DAY as i64)
}

/// Returns true if `end` has passed at `now` or is close enough for a warning.
#[must_use]
pub fn is_expiring(end: SystemTime, now: SystemTime) -> bool {
    end.duration_since(now).map_or(true, |remaining| remaining <= EXPIRY_WARNING)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ca::{KeyedPem, Validity};
    use crate::identity::{PeerIdentity, Role};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn after(days: u64) -> SystemTime {
        NOW + Duration::from_secs(days * DAY)
    }

    #[test]
    fn days_are_counted_down_to_the_end_and_beyond() {
        let second = Duration::from_secs(1);
        for (end, days) in [(after(30), 30), (after(1) - second, 0), (NOW, 0)] {
            assert_eq!(days_until(end, NOW), days);
        }
        assert_eq!(days_until(NOW, NOW + second), -1);
        assert_eq!(days_until(NOW, after(2)), -2);
        assert!(!is_expiring(after(30) + second, NOW));
        assert!(is_expiring(after(30), NOW) && is_expiring(NOW, after(1)));
    }

    #[test]
    fn an_identity_says_when_it_ends() {
        let now = SystemTime::now();
        let validity = |days| Validity { now, days };
        let ca = ca::create_ca("town", validity(3)).unwrap();
        let newer = ca::create_ca("town", validity(40)).unwrap();
        let name = PeerIdentity::new(Role::Party, "a").unwrap();
        let KeyedPem { pem, key_pem } = ca::issue(&ca, &name, &[], validity(2)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        write("certificate.pem", &pem);
        write("key.pem", &key_pem);
        let expiry = |ca_pem: &str| {
            write("ca.pem", ca_pem);
            let Expiry { certificate, ca } = IdentityDir::load(folder.path()).unwrap().expiry().unwrap();
            // Certificate times are in whole seconds.
            let noon = now + Duration::from_secs(DAY / 2);
            (days_until(certificate, noon), days_until(ca, noon))
        };
        assert_eq!(expiry(&ca.pem), (1, 2));
        assert_eq!(expiry(&format!("{}{}", newer.pem, ca.pem)), (1, 39));
    }
}
