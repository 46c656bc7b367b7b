//! A job signed by its analyst, so that no intermediary can submit one in an analyst's name.
//!
//! The analyst's identity key signs the digest of the job file and a nonce. The coordinator forwards the signature, and each
//! party checks it against its own copy of the consortium's CA: authorship rests on the analyst's key, not on the coordinator.
//! The job's id is derived from the signed bytes, so one signature is one job at a party for ever. A coordinator that presents
//! it again reopens the same job under the same cap.

use std::time::SystemTime;

use prost::Message;
#[cfg(feature = "transport")]
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, Role};
use crate::signature::{Signature, check_certificate, verify};
#[cfg(feature = "transport")]
use crate::tls::IdentityDir;
use crate::v1;

/// Length in bytes of the nonce that an analyst draws for each submission.
pub const NONCE_BYTES: usize = 32;

/// Domain separator at the start of the signed bytes: a signature over any other document is not one over a job.
const DOMAIN: &[u8] = b"conclave submission 1";
const ID_DOMAIN: &[u8] = b"conclave job id 1";
/// Bounds on certificate chains and signatures, above the length of any valid one.
const MAX_CERTIFICATE: usize = 16 << 10;
const MAX_SIGNATURE: usize = 512;

/// Builds the signed bytes: domain, analyst, SHA-256 of the job file, nonce, each preceded by its length.
fn message(analyst: &str, spec_toml: &str, nonce: &[u8]) -> Vec<u8> {
    let digest = Sha256::digest(spec_toml.as_bytes());
    let mut bytes = Vec::new();
    for field in [DOMAIN, analyst.as_bytes(), digest.as_slice(), nonce] {
        bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

/// Derives the job's id, a UUID (version 8) from the first half of a SHA-256 over the signed bytes.
fn job_id(message: &[u8]) -> String {
    let hash = Sha256::new().chain_update(ID_DOMAIN).chain_update(message).finalize();
    let digits: String = hash.iter().take(16).map(|b| format!("{b:02x}")).collect();
    // The version and the variant are at their UUID positions.
    format!("{}-{}-8{}-a{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..32])
}

/// Signs a job file as the analyst of `identity`.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if the identity is not an analyst's or its key can't sign; [`ErrorCode::Internal`] if the
/// system's random number generator fails.
#[cfg(feature = "transport")]
pub fn sign(identity: &IdentityDir, spec_toml: &str) -> Result<v1::Submission, Fault> {
    identity.require(Role::Analyst)?;
    let mut nonce = [0; NONCE_BYTES];
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| Fault::new(ErrorCode::Internal, "the system's random number generator failed"))?;
    let Signature { bytes, scheme, certificate } = identity.sign(&message(&identity.identity().name, spec_toml, &nonce))?;
    Ok(v1::Submission { nonce: nonce.to_vec(), scheme, signature: bytes, certificate })
}

/// Checks that `analyst` signed this job file and returns the job's id. [`check_signer`] checks the CA of the certificate.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the signature is missing, not over this job, or not this analyst's.
pub fn check(submission: Option<&v1::Submission>, analyst: &str, spec_toml: &str) -> Result<String, Fault> {
    let wrong = |what: String| Fault::new(ErrorCode::Unauthenticated, what);
    let Some(signed) = submission else {
        return Err(wrong("the job is not signed by its analyst: submit it with a `conclave` of this version".into()));
    };
    if signed.nonce.len() != NONCE_BYTES || signed.certificate.len() > MAX_CERTIFICATE || signed.signature.len() > MAX_SIGNATURE {
        return Err(wrong("the job's signature does not have the form that `conclave submit` writes".into()));
    }
    let message = message(analyst, spec_toml, &signed.nonce);
    let signature =
        Signature { bytes: signed.signature.clone(), scheme: signed.scheme.clone(), certificate: signed.certificate.clone() };
    let PeerIdentity { role, name } = verify(&message, &signature)?;
    if role != Role::Analyst || name != analyst {
        return Err(wrong(format!("the job names analyst {analyst:?} but is signed by {role} {name:?}")));
    }
    Ok(job_id(&message))
}

/// Checks that a CA in `ca_pem` has signed the certificate, which must be valid at `moment`.
///
/// # Errors
/// As [`check_certificate`].
pub fn check_signer(submission: &v1::Submission, ca_pem: &str, moment: SystemTime) -> Result<(), Fault> {
    check_certificate(&submission.certificate, ca_pem, moment)
}

/// Encodes a submission for storage.
#[must_use]
pub fn encode(submission: &v1::Submission) -> Vec<u8> {
    submission.encode_to_vec()
}

/// Decodes the output of [`encode`]; `None` for other bytes.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<v1::Submission> {
    v1::Submission::decode(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;
    use crate::ca::{self, KeyedPem, Validity};

    const DAYS: u32 = 10;

    fn ca() -> KeyedPem {
        ca::create_ca("town", Validity { now: SystemTime::now(), days: DAYS }).unwrap()
    }

    fn member(ca: &KeyedPem, folder: &Path, role: Role, name: &str) -> IdentityDir {
        let validity = Validity { now: SystemTime::now(), days: DAYS };
        let hosts = if role == Role::Coordinator { vec!["localhost".to_owned()] } else { Vec::new() };
        let issued = ca::issue(ca, &PeerIdentity::new(role, name).unwrap(), &hosts, validity).unwrap();
        for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &ca.pem)] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        IdentityDir::load(folder).unwrap()
    }

    #[test]
    fn a_job_is_its_analysts_and_nobody_elses() {
        let (folder, ca) = (tempfile::tempdir().unwrap(), ca());
        let alice = member(&ca, folder.path(), Role::Analyst, "alice");
        let signed = sign(&alice, "name = \"x\"").unwrap();
        let id = check(Some(&signed), "alice", "name = \"x\"").unwrap();
        assert_eq!((id.len(), &id[14..15], &id[19..20]), (36, "8", "a"));
        check_signer(&signed, &ca.pem, SystemTime::now()).unwrap();
        // One signature has one id; another submission of the same job has another.
        assert_eq!(check(decode(&encode(&signed)).as_ref(), "alice", "name = \"x\"").unwrap(), id);
        assert_ne!(check(Some(&sign(&alice, "name = \"x\"").unwrap()), "alice", "name = \"x\"").unwrap(), id);
        // Changes that a coordinator could make.
        let mut other = signed.clone();
        other.nonce[0] ^= 1;
        let mut cut = signed.clone();
        cut.nonce.pop();
        for (submission, analyst, text) in [
            (Some(&signed), "alice", "name = \"y\""),
            (Some(&signed), "bob", "name = \"x\""),
            (Some(&other), "alice", "name = \"x\""),
            (Some(&cut), "alice", "name = \"x\""),
            (None, "alice", "name = \"x\""),
        ] {
            assert_eq!(check(submission, analyst, text).unwrap_err().code, ErrorCode::Unauthenticated);
        }
    }

    #[test]
    fn another_role_or_another_ca_signs_for_nobody() {
        let (folder, ca) = (tempfile::tempdir().unwrap(), ca());
        let coordinator = member(&ca, folder.path(), Role::Coordinator, "alice");
        assert_eq!(sign(&coordinator, "x").unwrap_err().code, ErrorCode::InvalidInput);
        let forged = coordinator.sign(&message("alice", "x", &[7; NONCE_BYTES])).unwrap();
        let submission = v1::Submission {
            nonce: vec![7; NONCE_BYTES],
            scheme: forged.scheme,
            signature: forged.bytes,
            certificate: forged.certificate,
        };
        let fault = check(Some(&submission), "alice", "x").unwrap_err();
        assert!(fault.message.contains("coordinator"), "{fault}");
        let own = ca::create_ca("rogue", Validity { now: SystemTime::now(), days: DAYS }).unwrap();
        let alice = member(&own, folder.path(), Role::Analyst, "alice");
        let signed = sign(&alice, "x").unwrap();
        check(Some(&signed), "alice", "x").unwrap();
        assert_eq!(check_signer(&signed, &ca.pem, SystemTime::now()).unwrap_err().code, ErrorCode::Unauthenticated);
    }
}
