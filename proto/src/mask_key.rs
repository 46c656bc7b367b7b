//! A party's masking key for a secure job. Its identity key signs it, so that no intermediary can substitute another key.

use std::time::SystemTime;

use conclave_privacy::secagg::{MaskPublic, mask_key_message};

use crate::ca;
use crate::error::{ErrorCode, Fault};
use crate::identity::Role;
use crate::signature::{Signature, check_certificate, verify};
#[cfg(feature = "transport")]
use crate::tls::IdentityDir;
use crate::v1;

/// Bounds on certificate chains and signatures, above the length of any valid one.
const MAX_CERTIFICATE: usize = 16 << 10;
const MAX_SIGNATURE: usize = 512;
const MAX_SCHEME: usize = 64;

/// A mask key with its signer, after its signature was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedMaskKey {
    /// The key.
    pub public: MaskPublic,
    /// SHA-256 of the DER SubjectPublicKeyInfo of the certificate that signed it.
    pub identity: [u8; 32],
}

/// Signs a party's mask key for a job whose file has the SHA-256 `spec_digest`.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if the identity is not a party's or its key can't sign.
#[cfg(feature = "transport")]
pub fn sign(identity: &IdentityDir, job: &str, spec_digest: &[u8; 32], public: &MaskPublic) -> Result<v1::MaskKey, Fault> {
    identity.require(Role::Party)?;
    let message = mask_key_message(job, spec_digest, &identity.identity().name, public);
    let Signature { bytes, scheme, certificate } = identity.sign(&message)?;
    Ok(v1::MaskKey { public: public.bytes().to_vec(), scheme, signature: bytes, certificate })
}

/// Returns true if key, signature and certificate have plausible lengths. It is called before any of them is parsed.
#[must_use]
pub fn is_in_bounds(key: &v1::MaskKey) -> bool {
    key.public.len() == 32
        && key.scheme.len() <= MAX_SCHEME
        && key.signature.len() <= MAX_SIGNATURE
        && key.certificate.len() <= MAX_CERTIFICATE
}

/// Checks that party `name` signed this key for this job. [`check_signer`] checks the CA of the certificate.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the key is invalid, or the signature is not this party's over this job and key.
pub fn check(key: &v1::MaskKey, job: &str, spec_digest: &[u8; 32], name: &str) -> Result<SignedMaskKey, Fault> {
    let wrong = |what: &str| Fault::new(ErrorCode::Unauthenticated, what.to_owned());
    if !is_in_bounds(key) {
        return Err(wrong("the mask key does not have the form that `conclave-party` writes"));
    }
    let public = MaskPublic::parse(&key.public).map_err(|e| wrong(&e.to_string()))?;
    let signature = Signature { bytes: key.signature.clone(), scheme: key.scheme.clone(), certificate: key.certificate.clone() };
    let signer = verify(&mask_key_message(job, spec_digest, name, &public), &signature)?;
    if signer.role != Role::Party || signer.name != name {
        return Err(wrong("the signer of the mask key is not its party"));
    }
    Ok(SignedMaskKey { public, identity: ca::key_digest(&key.certificate)? })
}

/// Checks that a CA in `ca_pem` has signed the certificate, which must be valid at `moment`.
///
/// # Errors
/// As [`check_certificate`].
pub fn check_signer(key: &v1::MaskKey, ca_pem: &str, moment: SystemTime) -> Result<(), Fault> {
    check_certificate(&key.certificate, ca_pem, moment)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use conclave_privacy::secagg::MaskSecret;

    use super::*;
    use crate::ca::{KeyedPem, Validity};
    use crate::identity::PeerIdentity;

    fn member(ca: &KeyedPem, folder: &Path, role: Role, name: &str) -> IdentityDir {
        let validity = Validity { now: SystemTime::now(), days: 10 };
        let hosts = if role == Role::Coordinator { vec!["localhost".to_owned()] } else { Vec::new() };
        let issued = ca::issue(ca, &PeerIdentity::new(role, name).unwrap(), &hosts, validity).unwrap();
        for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &ca.pem)] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        IdentityDir::load(folder).unwrap()
    }

    fn authority(name: &str) -> KeyedPem {
        ca::create_ca(name, Validity { now: SystemTime::now(), days: 10 }).unwrap()
    }

    fn public(byte: u8) -> MaskPublic {
        MaskSecret::from_bytes([byte; 32].into()).public()
    }

    #[test]
    fn a_mask_key_is_its_partys_for_one_job() {
        let (folder, ca) = (tempfile::tempdir().unwrap(), authority("town"));
        let own = member(&ca, folder.path(), Role::Party, "a");
        let key = sign(&own, "job-1", &[5; 32], &public(1)).unwrap();
        let checked = check(&key, "job-1", &[5; 32], "a").unwrap();
        let digits: String = checked.identity.iter().map(|b| format!("{b:02x}")).collect();
        let certificate = std::fs::read_to_string(folder.path().join("certificate.pem")).unwrap();
        assert_eq!((checked.public, digits), (public(1), ca::summarise(&certificate).unwrap().key_fingerprint));
        check_signer(&key, &ca.pem, SystemTime::now()).unwrap();
        assert!(check_signer(&key, &authority("rogue").pem, SystemTime::now()).is_err());
        let late = SystemTime::now() + std::time::Duration::from_secs(30 * 24 * 3600);
        assert!(check_signer(&key, &ca.pem, late).is_err());
        // Changes that a coordinator could make.
        let changed = |change: fn(&mut v1::MaskKey)| {
            let mut key = key.clone();
            change(&mut key);
            key
        };
        for (key, job, digest, name) in [
            (&key, "job-2", [5; 32], "a"),
            (&key, "job-1", [6; 32], "a"),
            (&key, "job-1", [5; 32], "b"),
            (&changed(|key| key.public = public(2).bytes().to_vec()), "job-1", [5; 32], "a"),
            (&changed(|key| key.public[31] |= 0x80), "job-1", [5; 32], "a"),
            (&changed(|key| key.signature[9] ^= 1), "job-1", [5; 32], "a"),
            (&changed(|key| key.certificate.clear()), "job-1", [5; 32], "a"),
            (&changed(|key| key.certificate = "c".repeat(20 << 10)), "job-1", [5; 32], "a"),
            (&v1::MaskKey::default(), "job-1", [5; 32], "a"),
        ] {
            assert_eq!(check(key, job, &digest, name).unwrap_err().code, ErrorCode::Unauthenticated);
        }
    }

    #[test]
    fn another_role_or_another_member_signs_for_no_party() {
        let (folder, ca) = (tempfile::tempdir().unwrap(), authority("town"));
        let analyst = member(&ca, folder.path(), Role::Analyst, "a");
        assert_eq!(sign(&analyst, "job", &[5; 32], &public(1)).unwrap_err().code, ErrorCode::InvalidInput);
        for signer in [analyst, member(&ca, folder.path(), Role::Party, "b")] {
            let Signature { bytes, scheme, certificate } =
                signer.sign(&mask_key_message("job", &[5; 32], "a", &public(1))).unwrap();
            let key = v1::MaskKey { public: public(1).bytes().to_vec(), scheme, signature: bytes, certificate };
            let fault = check(&key, "job", &[5; 32], "a").unwrap_err();
            assert!(fault.message.contains("is not its party"), "{fault}");
        }
    }
}
