//! Parties with certificates of one CA.

use std::path::Path;
use std::time::SystemTime;

use conclave_privacy::secagg::MaskPublic;
use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::error::Fault;
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::IdentityDir;
use conclave_proto::{mask_key, v1};

use crate::ports::MaskKeySigner;
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

/// Signs mask keys with an identity that is in memory.
pub(super) struct Signer(pub(super) IdentityDir);

impl MaskKeySigner for Signer {
    fn sign(&self, job: &str, spec_digest: &[u8; 32], public: &MaskPublic) -> Result<v1::MaskKey, Fault> {
        mask_key::sign(&self.0, job, spec_digest, public)
    }
}
