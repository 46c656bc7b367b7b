//! Verification of a signature that a member's identity key made over a document.

use std::time::SystemTime;

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::UnixTime;
use webpki::anchor_from_trusted_cert;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::chain::{check_chain, read_chain};
use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// The TLS names of the supported signature schemes.
pub(crate) const P256_SHA256: &str = "ecdsa_secp256r1_sha256";
pub(crate) const P384_SHA384: &str = "ecdsa_secp384r1_sha384";
pub(crate) const ED25519: &str = "ed25519";

const SCHEMES: [(&str, &dyn VerificationAlgorithm); 3] = [
    (P256_SHA256, &signature::ECDSA_P256_SHA256_ASN1),
    (P384_SHA384, &signature::ECDSA_P384_SHA384_ASN1),
    (ED25519, &signature::ED25519),
];

/// A signature with its scheme and certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The signature's bytes.
    pub bytes: Vec<u8>,
    /// The scheme's TLS name.
    pub scheme: String,
    /// The certificate of the signing key, PEM.
    pub certificate: String,
}

/// Checks a signature over `message` and returns the identity in its certificate. [`check_certificate`] checks the CA of that
/// certificate.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the certificate's key did not sign `message`.
pub fn verify(message: &[u8], signature: &Signature) -> Result<PeerIdentity, Fault> {
    let wrong = |what: &str| Fault::new(ErrorCode::Unauthenticated, what.to_owned());
    let chain = read_chain(&signature.certificate)?;
    let leaf = chain.first().ok_or_else(|| wrong("the signature has no certificate"))?;
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| wrong("the signature's certificate cannot be read"))?;
    let scheme = SCHEMES.iter().find(|(name, _)| *name == signature.scheme);
    let (_, algorithm) = scheme.ok_or_else(|| wrong("the signature has an unsupported scheme"))?;
    UnparsedPublicKey::new(*algorithm, parsed.public_key().subject_public_key.data.as_ref())
        .verify(message, &signature.bytes)
        .map_err(|_| wrong("the signature over this document does not match its certificate's key"))?;
    PeerIdentity::from_certificate(leaf)
}

/// Checks that a CA in `ca_pem` signed the certificate, and that it was valid at `moment`.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if a check fails; [`ErrorCode::InvalidInput`] if a PEM can't be read.
pub fn check_certificate(certificate_pem: &str, ca_pem: &str, moment: SystemTime) -> Result<(), Fault> {
    let roots = read_chain(ca_pem)?;
    let anchors: Result<Vec<_>, _> = roots.iter().map(anchor_from_trusted_cert).collect();
    let anchors = anchors.map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("the CA's certificate can't be used: {e}")))?;
    let chain = read_chain(certificate_pem)?;
    let leaf = chain.first().ok_or_else(|| Fault::new(ErrorCode::InvalidInput, "no certificate"))?;
    let role = PeerIdentity::from_certificate(leaf)?.role;
    let since = moment.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    check_chain(&chain, &anchors, role, UnixTime::since_unix_epoch(since))
        .map_err(|why| Fault::new(ErrorCode::Unauthenticated, format!("the signer's certificate {why}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ca::{self, Validity};
    use crate::identity::Role;
    use crate::tls::IdentityDir;

    #[test]
    fn a_signature_is_its_keys_over_its_document() {
        let folder = tempfile::tempdir().unwrap();
        let validity = Validity { now: SystemTime::now(), days: 10 };
        let (ca, other) = (ca::create_ca("one", validity).unwrap(), ca::create_ca("two", validity).unwrap());
        let request = ca::make_request(&PeerIdentity::new(Role::Party, "a").unwrap(), &[]).unwrap();
        let certificate = ca::sign(&ca, &request.pem, false, validity).unwrap();
        for (name, text) in [("certificate.pem", &certificate), ("key.pem", &request.key_pem), ("ca.pem", &ca.pem)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let signature = IdentityDir::load(folder.path()).unwrap().sign(b"document").unwrap();
        assert_eq!(verify(b"document", &signature).unwrap().name, "a");
        assert!(verify(b"document.", &signature).is_err());
        let mut bad = signature.clone();
        bad.bytes[10] ^= 1;
        assert!(verify(b"document", &bad).is_err());
        assert!(verify(b"document", &Signature { scheme: "ed25519".into(), ..signature.clone() }).is_err());
        assert!(verify(b"document", &Signature { certificate: ca.pem.clone(), ..signature.clone() }).is_err());
        check_certificate(&signature.certificate, &ca.pem, SystemTime::now()).unwrap();
        let fault = check_certificate(&signature.certificate, &other.pem, SystemTime::now()).unwrap_err();
        assert_eq!(fault.code, ErrorCode::Unauthenticated);
        let late = SystemTime::now() + std::time::Duration::from_secs(30 * 24 * 3600);
        assert!(check_certificate(&signature.certificate, &ca.pem, late).is_err());
    }
}
