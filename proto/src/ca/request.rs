//! Signing requests: made by a member, read by whoever runs the CA.

use rcgen::{CertificateParams, CertificateSigningRequestParams, KeyPair, PublicKeyData, SanType};

use super::fault::{input, internal};
use super::key::{KeyedPem, key_pair, sha256};
use super::names::{alternative_names, common_name};
use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// Makes a member's key and its signing request. `hosts` are the DNS names and IP addresses under which a coordinator
/// is reached, empty for parties and analysts.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where a host is neither a DNS name nor an IP address.
pub fn make_request(identity: &PeerIdentity, hosts: &[String]) -> Result<KeyedPem, Fault> {
    let key = KeyPair::generate().map_err(|e| internal("make a key", &e))?;
    Ok(KeyedPem { pem: request_of(identity, hosts, &key)?, key_pem: key.serialize_pem() })
}

/// Makes a signing request for a key that there is already: to renew a certificate and keep its key.
///
/// # Errors
/// As [`make_request`], and where the key can't be read.
pub fn request_with_key(identity: &PeerIdentity, hosts: &[String], key_pem: &str) -> Result<String, Fault> {
    request_of(identity, hosts, &key_pair(key_pem)?)
}

fn request_of(identity: &PeerIdentity, hosts: &[String], key: &KeyPair) -> Result<String, Fault> {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("{} {}", identity.role, identity.name));
    params.subject_alt_names = alternative_names(identity, hosts)?;
    params.serialize_request(key).and_then(|request| request.pem()).map_err(|e| internal("make the signing request", &e))
}

/// What a signing request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedIdentity {
    /// The role and name in its URI.
    pub identity: PeerIdentity,
    /// The DNS names and IP addresses it asks for.
    pub hosts: Vec<String>,
    /// SHA-256 of its public key, as [`key_fingerprint`]: what two people compare over the telephone before one of them signs.
    pub key_fingerprint: String,
}

/// Reads a signing request (PEM) and checks that it is signed by the key it presents.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where it does not parse, or does not carry exactly one `conclave://` URI.
pub fn read_request(csr_pem: &str) -> Result<RequestedIdentity, Fault> {
    let (_, requested) = parse_request(csr_pem)?;
    Ok(requested)
}

/// The request as it will be signed, and what it asks for.
pub(super) fn parse_request(csr_pem: &str) -> Result<(CertificateSigningRequestParams, RequestedIdentity), Fault> {
    let request =
        CertificateSigningRequestParams::from_pem(csr_pem).map_err(|e| input("the signing request cannot be used", &e))?;
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
