//! Parties with certificates of one CA.

use std::path::Path;
use std::time::SystemTime;

use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::IdentityDir;

use crate::secure::Fingerprint;

pub(super) const DAYS: u32 = 10;

fn validity() -> Validity {
    Validity { now: SystemTime::now(), days: DAYS }
}

pub(super) fn authority(name: &str) -> KeyedPem {
    ca::create_ca(name, validity()).unwrap()
}

/// Creates a member's identity through files in `folder`.
pub(super) fn identity(ca: &KeyedPem, folder: &Path, role: Role, name: &str) -> IdentityDir {
    let issued = ca::issue(ca, &PeerIdentity::new(role, name).unwrap(), &[], validity()).unwrap();
    for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &ca.pem)] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    IdentityDir::load(folder).unwrap()
}

pub(super) fn fingerprint(certificate_pem: &str) -> Fingerprint {
    Fingerprint(ca::key_digest(certificate_pem).unwrap())
}
