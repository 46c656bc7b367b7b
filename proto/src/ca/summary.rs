//! The content of certificates: summaries for people, fingerprints and expiry.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::digest::sha256;
use super::fault::input;
use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// A readable summary of a certificate (PEM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// Role and name; `None` for a CA's certificate.
    pub identity: Option<PeerIdentity>,
    /// Subject, as text.
    pub subject: String,
    /// Issuer, as text.
    pub issuer: String,
    /// Serial number, in hex.
    pub serial: String,
    /// Start and end of validity, as text (UTC).
    pub valid: (String, String),
    /// SHA-256 of the certificate's DER, in hex, as [`fingerprint`].
    pub fingerprint: String,
    /// SHA-256 of its SubjectPublicKeyInfo, in hex.
    pub key_fingerprint: String,
    /// The DNS names and IP addresses in it.
    pub hosts: Vec<String>,
}

/// Reads a certificate.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if it does not parse.
pub fn summarise(certificate_pem: &str) -> Result<CertificateSummary, Fault> {
    let der = certificate_der(certificate_pem)?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|e| input("the certificate cannot be read", &e))?;
    Ok(CertificateSummary {
        identity: if parsed.is_ca() { None } else { Some(PeerIdentity::from_certificate(&der)?) },
        subject: parsed.subject().to_string(),
        issuer: parsed.issuer().to_string(),
        serial: parsed.raw_serial_as_string().replace(':', ""),
        valid: (parsed.validity().not_before.to_string(), parsed.validity().not_after.to_string()),
        fingerprint: fingerprint(certificate_pem)?,
        key_fingerprint: sha256(parsed.public_key().raw),
        hosts: hosts(&parsed),
    })
}

fn hosts(certificate: &X509Certificate<'_>) -> Vec<String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let host = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok().map(|ip| ip.to_string())
        }
        _ => None,
    };
    names.map(|names| names.value.general_names.iter().filter_map(host).collect()).unwrap_or_default()
}

/// Returns the SHA-256 of a certificate's public key (its SubjectPublicKeyInfo) as bytes.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if the PEM holds no readable certificate.
pub fn key_digest(certificate_pem: &str) -> Result<[u8; 32], Fault> {
    let der = certificate_der(certificate_pem)?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|e| input("the certificate cannot be read", &e))?;
    Ok(Sha256::digest(parsed.public_key().raw).into())
}

/// Returns the last moment at which a certificate is valid.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if it does not parse.
pub fn not_after(certificate_pem: &str) -> Result<SystemTime, Fault> {
    last_moment(&certificate_der(certificate_pem)?)
}

/// Returns [`not_after`] of a certificate in DER.
pub(crate) fn last_moment(der: &CertificateDer<'_>) -> Result<SystemTime, Fault> {
    let (_, parsed) = X509Certificate::from_der(der).map_err(|e| input("the certificate cannot be read", &e))?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
    Ok(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
}

/// Returns the SHA-256 of a certificate's DER in lower-case hex, which two people compare over the telephone.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if the PEM holds no certificate.
pub fn fingerprint(certificate_pem: &str) -> Result<String, Fault> {
    let der = certificate_der(certificate_pem)?;
    Ok(sha256(&der))
}

/// Returns the fingerprints of all certificates in a file.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if it holds none or is not PEM.
pub fn fingerprints(pem: &str) -> Result<BTreeSet<String>, Fault> {
    let found: Result<BTreeSet<String>, _> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).map(|der| der.map(|der| sha256(&der))).collect();
    match found.map_err(|e| input("the file is not readable PEM", &e))? {
        found if found.is_empty() => Err(Fault::new(ErrorCode::InvalidInput, "there is no PEM certificate in the file")),
        found => Ok(found),
    }
}

fn certificate_der(pem: &str) -> Result<CertificateDer<'static>, Fault> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| input("there is no PEM certificate in the file", &e))
}
