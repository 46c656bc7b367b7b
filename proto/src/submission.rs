//! A job as its analyst signed it, so that nobody on the way can submit one in an analyst's name.
//!
//! The analyst's identity key signs the job file's digest and a nonce of its own. The coordinator passes the signature on and each
//! party checks it against its own copy of the consortium's CA: that a job is alice's is alice's word, not the coordinator's. The
//! job's id follows from what is signed, so one signature is one job at a party for ever: a coordinator that shows it again opens the
//! same job again, under the same cap.

use std::time::SystemTime;

use prost::Message;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, Role};
use crate::tls::{IdentityDir, Signature, check_certificate, verify};
use crate::v1;

/// Length of the nonce that an analyst draws for each submission.
pub const NONCE_BYTES: usize = 32;

/// What is signed begins with this, so that a signature over anything else is none over a job.
const DOMAIN: &[u8] = b"conclave submission 1";
const ID_DOMAIN: &[u8] = b"conclave job id 1";
/// Longer certificate chains and signatures are nobody's.
const MAX_CERTIFICATE: usize = 16 << 10;
const MAX_SIGNATURE: usize = 512;

/// The bytes that are signed: domain, analyst, SHA-256 of the job file, nonce, each with its length before it.
fn message(analyst: &str, spec_toml: &str, nonce: &[u8]) -> Vec<u8> {
    let digest = Sha256::digest(spec_toml.as_bytes());
    let mut bytes = Vec::new();
    for field in [DOMAIN, analyst.as_bytes(), digest.as_slice(), nonce] {
        bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

/// The id of the job, in the form of a UUID (version 8): the first half of a SHA-256 over what is signed.
fn job_id(message: &[u8]) -> String {
    let hash = Sha256::new().chain_update(ID_DOMAIN).chain_update(message).finalize();
    let digits: String = hash.iter().take(16).map(|b| format!("{b:02x}")).collect();
    // Version and variant stand where a UUID has them.
    format!("{}-{}-8{}-a{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..32])
}

/// Signs a job file as the analyst of `identity`.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where the identity is not an analyst's or its key can't sign; [`ErrorCode::Internal`] where the system
/// gives no random numbers.
pub fn sign(identity: &IdentityDir, spec_toml: &str) -> Result<v1::Submission, Fault> {
    identity.require(Role::Analyst)?;
    let mut nonce = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut nonce).map_err(|_| Fault::new(ErrorCode::Internal, "the system gives no random numbers"))?;
    let Signature { bytes, scheme, certificate } = identity.sign(&message(&identity.identity().name, spec_toml, &nonce))?;
    Ok(v1::Submission { nonce: nonce.to_vec(), scheme, signature: bytes, certificate })
}

/// Checks that `analyst` signed this job file and gives the job's id. Whose CA signed the certificate is for [`check_signer`].
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] where the signature is missing, not over this job, or not this analyst's.
pub fn check(submission: Option<&v1::Submission>, analyst: &str, spec_toml: &str) -> Result<String, Fault> {
    let wrong = |what: String| Fault::new(ErrorCode::Unauthenticated, what);
    let Some(signed) = submission else {
        return Err(wrong("the job is not signed by its analyst: submit it with a `conclave` of this version".into()));
    };
    if signed.nonce.len() != NONCE_BYTES || signed.certificate.len() > MAX_CERTIFICATE || signed.signature.len() > MAX_SIGNATURE {
        return Err(wrong("the job's signature is not of the form that `conclave submit` gives it".into()));
    }
    let message = message(analyst, spec_toml, &signed.nonce);
    let signature =
        Signature { bytes: signed.signature.clone(), scheme: signed.scheme.clone(), certificate: signed.certificate.clone() };
    let PeerIdentity { role, name } = verify(&message, &signature)?;
    if role != Role::Analyst || name != analyst {
        return Err(wrong(format!("the job is said to be analyst {analyst:?}'s and is signed by {role} {name:?}")));
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

/// The submission as bytes to keep.
#[must_use]
pub fn encode(submission: &v1::Submission) -> Vec<u8> {
    submission.encode_to_vec()
}

/// Reads what [`encode`] wrote; `None` for anything else.
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
        // One signature is one id; another submission of the same job is another.
        assert_eq!(check(decode(&encode(&signed)).as_ref(), "alice", "name = \"x\"").unwrap(), id);
        assert_ne!(check(Some(&sign(&alice, "name = \"x\"").unwrap()), "alice", "name = \"x\"").unwrap(), id);
        // What a coordinator could change.
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
