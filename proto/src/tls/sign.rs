//! Signatures of a member's identity key over a document.

use rustls::SignatureScheme;

use super::folder::IdentityDir;
use crate::error::{ErrorCode, Fault};
use crate::signature::{ED25519, P256_SHA256, P384_SHA384, Signature};

/// The signature schemes that [`crate::signature::verify`] supports, with their TLS names.
const SCHEMES: [(SignatureScheme, &str); 3] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, P256_SHA256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, P384_SHA384),
    (SignatureScheme::ED25519, ED25519),
];

impl IdentityDir {
    /// Signs `message` with this identity's key.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if the key is of an unsupported kind.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Fault> {
        let key = self.signing_key()?;
        let offered = SCHEMES.map(|(scheme, _)| scheme);
        let unusable =
            || Fault::new(ErrorCode::InvalidInput, "key.pem is of an unsupported kind: documents need an ECDSA or Ed25519 key");
        let signer = key.choose_scheme(&offered).ok_or_else(unusable)?;
        let name = SCHEMES.iter().find(|(scheme, _)| *scheme == signer.scheme()).map(|(_, name)| *name);
        let bytes = signer
            .sign(message)
            .map_err(|e| Fault::new(ErrorCode::Internal, format!("could not sign with the identity's key: {e}")))?;
        Ok(Signature { bytes, scheme: name.ok_or_else(unusable)?.to_owned(), certificate: self.certificate_pem().to_owned() })
    }
}
