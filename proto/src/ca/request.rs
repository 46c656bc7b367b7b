//! Signing requests: created by a member, read by the operator of the CA.

use rcgen::{CertificateParams, CertificateSigningRequestParams, KeyPair, PublicKeyData, SanType};

use super::digest::sha256;
use super::fault::{input, internal};
use super::key::{KeyedPem, key_pair};
use super::names::{alternative_names, common_name};
use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// Creates a member's key and its signing request. `hosts` are the DNS names and IP addresses of a coordinator; they are
/// empty for parties and analysts.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if a host is neither a DNS name nor an IP address.
pub fn make_request(identity: &PeerIdentity, hosts: &[String]) -> Result<KeyedPem, Fault> {
    let key = KeyPair::generate().map_err(|e| internal("generate a key", &e))?;
    Ok(KeyedPem { pem: request_of(identity, hosts, &key)?, key_pem: key.serialize_pem() })
}

/// Creates a signing request for an existing key, to renew a certificate and keep its key.
///
/// # Errors
/// As [`make_request`], and if the key can't be read.
pub fn request_with_key(identity: &PeerIdentity, hosts: &[String], key_pem: &str) -> Result<String, Fault> {
    request_of(identity, hosts, &key_pair(key_pem)?)
}

fn request_of(identity: &PeerIdentity, hosts: &[String], key: &KeyPair) -> Result<String, Fault> {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("{} {}", identity.role, identity.name));
    params.subject_alt_names = alternative_names(identity, hosts)?;
    params.serialize_request(key).and_then(|request| request.pem()).map_err(|e| internal("create the signing request", &e))
}

/// The identity and hosts in a signing request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedIdentity {
    /// The role and name in its URI.
    pub identity: PeerIdentity,
    /// The DNS names and IP addresses in the request.
    pub hosts: Vec<String>,
    /// SHA-256 of its public key, as [`key_fingerprint`]. Two people compare it over the telephone before one of them signs.
    pub key_fingerprint: String,
}

/// Reads a signing request (PEM) and checks that it is signed by the key it presents.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if it does not parse, or does not carry exactly one `conclave://` URI.
pub fn read_request(csr_pem: &str) -> Result<RequestedIdentity, Fault> {
    let (_, requested) = parse_request(csr_pem)?;
    Ok(requested)
}

/// Parses a signing request and its requested identity.
pub(super) fn parse_request(csr_pem: &str) -> Result<(CertificateSigningRequestParams, RequestedIdentity), Fault> {
    let request = CertificateSigningRequestParams::from_pem(csr_pem).map_err(|e| input("unusable signing request", &e))?;
    let names = &request.params.subject_alt_names;
    let identity = PeerIdentity::from_uris(names.iter().filter_map(|name| match name {
        SanType::URI(uri) => Some(uri.as_str()),
        _ => None,
    }))
    .map_err(|fault| Fault {
        code: ErrorCode::InvalidInput,
        message: fault.message.replace("certificate", "signing request"),
        ..fault
    })?;
    let hosts = names
        .iter()
        .filter_map(|name| match name {
            SanType::DnsName(dns) => Some(dns.as_str().to_owned()),
            SanType::IpAddress(ip) => Some(ip.to_string()),
            _ => None,
        })
        .collect();
    let key_fingerprint = sha256(&request.public_key.subject_public_key_info());
    Ok((request, RequestedIdentity { identity, hosts, key_fingerprint }))
}
