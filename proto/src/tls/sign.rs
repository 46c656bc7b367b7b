//! Signatures of a member's identity key over a document, and their verification by its recipients.

use std::sync::Arc;
use std::time::SystemTime;

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls::{RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::folder::IdentityDir;
use super::verifier::check_own;
use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// The supported signature schemes, with their TLS names.
const SCHEMES: [(SignatureScheme, &str, &dyn VerificationAlgorithm); 3] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ecdsa_secp256r1_sha256", &signature::ECDSA_P256_SHA256_ASN1),
    (SignatureScheme::ECDSA_NISTP384_SHA384, "ecdsa_secp384r1_sha384", &signature::ECDSA_P384_SHA384_ASN1),
    (SignatureScheme::ED25519, "ed25519", &signature::ED25519),
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

impl IdentityDir {
    /// Signs `message` with this identity's key.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if the key is of an unsupported kind.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Fault> {
        let key = self.signing_key()?;
        let offered = SCHEMES.map(|(scheme, ..)| scheme);
        let unusable =
            || Fault::new(ErrorCode::InvalidInput, "key.pem is of an unsupported kind: documents need an ECDSA or Ed25519 key");
        let signer = key.choose_scheme(&offered).ok_or_else(unusable)?;
        let name = SCHEMES.iter().find(|(scheme, ..)| *scheme == signer.scheme()).map(|(_, name, _)| *name);
        let bytes = signer
            .sign(message)
            .map_err(|e| Fault::new(ErrorCode::Internal, format!("could not sign with the identity's key: {e}")))?;
        Ok(Signature { bytes, scheme: name.ok_or_else(unusable)?.to_owned(), certificate: self.certificate_pem().to_owned() })
    }
}

/// Checks a signature over `message` and returns the identity in its certificate. [`check_certificate`] checks the CA of that
/// certificate.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the certificate's key did not sign `message`.
pub fn verify(message: &[u8], signature: &Signature) -> Result<PeerIdentity, Fault> {
    let wrong = |what: &str| Fault::new(ErrorCode::Unauthenticated, what.to_owned());
    let chain = chain(&signature.certificate)?;
    let leaf = chain.first().ok_or_else(|| wrong("the signature has no certificate"))?;
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| wrong("the signature's certificate cannot be read"))?;
    let scheme = SCHEMES.iter().find(|(_, name, _)| *name == signature.scheme);
    let (.., algorithm) = scheme.ok_or_else(|| wrong("the signature has an unsupported scheme"))?;
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
    let mut roots = RootCertStore::empty();
    for root in chain(ca_pem)? {
        roots.add(root).map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("the CA's certificate can't be used: {e}")))?;
    }
    let chain = chain(certificate_pem)?;
    let leaf = chain.first().ok_or_else(|| Fault::new(ErrorCode::InvalidInput, "no certificate"))?;
    let role = PeerIdentity::from_certificate(leaf)?.role;
    let since = moment.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    check_own(&chain, &Arc::new(roots), role, UnixTime::since_unix_epoch(since))
        .map_err(|why| Fault::new(ErrorCode::Unauthenticated, format!("the signer's certificate {why}")))
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    found.map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("a certificate is not readable PEM ({e})")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ca::{self, Validity};
    use crate::identity::Role;

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
