//! Verification of a member's certificate chain against the consortium's CA, by the same checks as in a handshake.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage};

use crate::error::{ErrorCode, Fault};
use crate::identity::Role;

// Phrases with the remedy that follow a certificate's name. Handshake errors use them too.
pub(crate) const UNKNOWN_ISSUER: &str =
    "was not signed by the CA in ca.pem: check with `conclave ca show` that both ends hold the same consortium's ca.pem";
pub(crate) const EXPIRED: &str = "has expired: have a new one signed with `conclave ca sign` (and check this machine's clock)";
pub(crate) const NOT_YET_VALID: &str = "is not valid yet: check the clocks of both machines";
pub(crate) const WRONG_PURPOSE: &str =
    "is not valid for this end of a connection: servers need a coordinator's certificate, clients a party's or an analyst's";

/// Reads the certificates in a PEM text, in their order.
pub(crate) fn read_chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    found.map_err(|e| Fault::new(ErrorCode::InvalidInput, format!("a certificate is not readable PEM ({e})")))
}

/// Verifies a member's own certificate against its own CA file, as the other end will. A coordinator's host name is checked
/// only by its clients, who know it. The error is a phrase that follows the certificate's name.
pub(crate) fn check_chain(
    chain: &[CertificateDer<'_>],
    roots: &[TrustAnchor<'_>],
    role: Role,
    now: UnixTime,
) -> Result<(), String> {
    let Some((leaf, intermediates)) = chain.split_first() else {
        return Err("holds no certificate".to_owned());
    };
    let usage = if role == Role::Coordinator { KeyUsage::server_auth() } else { KeyUsage::client_auth() };
    EndEntityCert::try_from(leaf)
        .and_then(|end| end.verify_for_usage(ALL_VERIFICATION_ALGS, roots, intermediates, now, usage, None, None).map(|_| ()))
        .map_err(|why| describe(&why))
}

fn describe(why: &Error) -> String {
    match why {
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey => UNKNOWN_ISSUER.to_owned(),
        Error::CertExpired { .. } | Error::InvalidCertValidity => EXPIRED.to_owned(),
        Error::CertNotValidYet { .. } => NOT_YET_VALID.to_owned(),
        Error::RequiredEkuNotFoundContext(_) => WRONG_PURPOSE.to_owned(),
        other => format!("is not accepted ({other})"),
    }
}
