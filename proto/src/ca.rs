//! The consortium's small certificate authority, as pure functions from PEM to PEM.
//!
//! A member makes a key and a signing request ([`make_request`]); the key never leaves its machine. Whoever runs the CA
//! looks at the name in the request ([`read_request`]) and signs it ([`sign`]). Role and name are the request's one
//! `conclave://` URI; nothing else of the request is copied into the certificate.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, Role};

/// How long a CA certificate is valid unless told otherwise, in days.
pub const CA_DAYS: u32 = 3650;
/// How long a member's certificate is valid unless told otherwise, in days.
pub const MEMBER_DAYS: u32 = 825;
/// Certificates are valid from this long before they are made, for clocks that run behind.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// A certificate or signing request with the private key that belongs to it, both PEM.
#[derive(Clone)]
pub struct KeyedPem {
    /// The certificate or the signing request.
    pub pem: String,
    /// The private key (PKCS #8). Write it with mode 0600.
    pub key_pem: String,
}

/// When a certificate begins and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// The present moment.
    pub now: SystemTime,
    /// Days from now.
    pub days: u32,
}

/// Makes a CA: a fresh ECDSA P-256 key and its self-signed certificate, which may sign members and no other CA.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where the name is empty or longer than 64 characters.
pub fn create_ca(name: &str, validity: Validity) -> Result<KeyedPem, Fault> {
    if name.is_empty() || name.chars().count() > 64 {
        return Err(Fault::new(ErrorCode::InvalidInput, "the CA's name must have 1 to 64 characters"));
    }
    let key = KeyPair::generate().map_err(|e| internal("make a key", &e))?;
    let mut params = base_params(name, validity)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key).map_err(|e| internal("sign the CA's certificate", &e))?;
    Ok(KeyedPem { pem: certificate.pem(), key_pem: key.serialize_pem() })
}

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

fn key_pair(key_pem: &str) -> Result<KeyPair, Fault> {
    KeyPair::from_pem(key_pem).map_err(|e| input("the key cannot be used (PKCS #8 with a P-256, P-384 or Ed25519 key can)", &e))
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

/// Signs a member's request with the CA's key. Parties and analysts get a certificate that is good for dialling and
/// nothing else; a coordinator one that is good for serving under the request's `hosts` and nothing else.
///
/// `allow_coordinator` must be true to sign a coordinator: whoever holds such a certificate can pose as the server to
/// every member, so it is never signed by mistake.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for a bad request or CA, and for a coordinator's request without a host;
/// [`ErrorCode::Policy`] for a coordinator's request without `allow_coordinator`.
pub fn sign(ca: &KeyedPem, csr_pem: &str, allow_coordinator: bool, validity: Validity) -> Result<String, Fault> {
    let (request, requested) = parse_request(csr_pem)?;
    let identity = &requested.identity;
    if identity.role == Role::Coordinator && !allow_coordinator {
        return Err(Fault::new(
            ErrorCode::Policy,
            format!(
                "the request asks for {}, which can pose as the server to every member: sign it with --coordinator \
                 if that is what you mean",
                identity.uri()
            ),
        ));
    }
    if identity.role == Role::Coordinator && requested.hosts.is_empty() {
        return Err(Fault::new(
            ErrorCode::InvalidInput,
            "a coordinator's request must name the hosts under which it is reached (DNS names or IP addresses)",
        ));
    }
    let key = KeyPair::from_pem(&ca.key_pem).map_err(|e| input("the CA's key cannot be read", &e))?;
    let issuer = Issuer::from_ca_cert_pem(&ca.pem, key).map_err(|e| input("the CA's certificate cannot be read", &e))?;
    let mut params = base_params(&format!("{} {}", identity.role, identity.name), validity)?;
    params.subject_alt_names = match identity.role {
        Role::Coordinator => alternative_names(identity, &requested.hosts)?,
        Role::Party | Role::Analyst => alternative_names(identity, &[])?,
    };
    params.is_ca = IsCa::ExplicitNoCa;
    params.serial_number = Some(serial_number()?);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match identity.role {
        Role::Coordinator => ExtendedKeyUsagePurpose::ServerAuth,
        Role::Party | Role::Analyst => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    let certificate = params.signed_by(&request.public_key, &issuer).map_err(|e| internal("sign the certificate", &e))?;
    Ok(certificate.pem())
}

/// Makes a key and a certificate in one step, for a CA that makes its members' keys itself, as the demo's does.
///
/// # Errors
/// As [`make_request`] and [`sign`].
pub fn issue(ca: &KeyedPem, identity: &PeerIdentity, hosts: &[String], validity: Validity) -> Result<KeyedPem, Fault> {
    let request = make_request(identity, hosts)?;
    Ok(KeyedPem { pem: sign(ca, &request.pem, true, validity)?, key_pem: request.key_pem })
}

/// What a certificate (PEM) says, for a person to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// Role and name; none for a CA's certificate.
    pub identity: Option<PeerIdentity>,
    /// Subject, as text.
    pub subject: String,
    /// Issuer, as text.
    pub issuer: String,
    /// Serial number, in hex.
    pub serial: String,
    /// First and last moment of validity, as text (UTC).
    pub valid: (String, String),
    /// SHA-256 of the certificate's DER, in hex, as [`fingerprint`].
    pub fingerprint: String,
    /// SHA-256 of its public key, as [`key_fingerprint`].
    pub key_fingerprint: String,
    /// The DNS names and IP addresses in it.
    pub hosts: Vec<String>,
}

/// Reads a certificate.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where it does not parse.
pub fn summarise(certificate_pem: &str) -> Result<CertificateSummary, Fault> {
    let der = certificate_der(certificate_pem)?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(|e| input("the certificate cannot be read", &e))?;
    Ok(CertificateSummary {
        identity: if parsed.is_ca() { None } else { Some(PeerIdentity::of_certificate(&der)?) },
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

/// The last moment at which a certificate is valid.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where it does not parse.
pub fn not_after(certificate_pem: &str) -> Result<SystemTime, Fault> {
    last_moment(&certificate_der(certificate_pem)?)
}

/// As [`not_after`], of a certificate in DER.
pub(crate) fn last_moment(der: &CertificateDer<'_>) -> Result<SystemTime, Fault> {
    let (_, parsed) = X509Certificate::from_der(der).map_err(|e| input("the certificate cannot be read", &e))?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
    Ok(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
}

/// SHA-256 of a certificate's DER, in lower-case hex: what two people read to each other over the telephone.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where the PEM holds no certificate.
pub fn fingerprint(certificate_pem: &str) -> Result<String, Fault> {
    let der = certificate_der(certificate_pem)?;
    Ok(sha256(&der))
}

/// SHA-256 of a private key's public half (its SubjectPublicKeyInfo, as `openssl pkey -pubout -outform DER` writes it), in lower-case hex.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where the PEM holds no key that can be used.
pub fn key_fingerprint(key_pem: &str) -> Result<String, Fault> {
    Ok(sha256(&key_pair(key_pem)?.subject_public_key_info()))
}

/// The fingerprints of all certificates in a file.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] where it holds none, or what is no PEM.
pub fn fingerprints(pem: &str) -> Result<BTreeSet<String>, Fault> {
    let found: Result<BTreeSet<String>, _> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).map(|der| der.map(|der| sha256(&der))).collect();
    match found.map_err(|e| input("the file is not readable PEM", &e))? {
        found if found.is_empty() => Err(Fault::new(ErrorCode::InvalidInput, "there is no PEM certificate in the file")),
        found => Ok(found),
    }
}

/// A fingerprint in groups of four, to be read aloud.
pub fn grouped(fingerprint: &str) -> String {
    let digits: Vec<char> = fingerprint.chars().collect();
    digits.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn certificate_der(pem: &str) -> Result<CertificateDer<'static>, Fault> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| input("there is no PEM certificate in the file", &e))
}

fn parse_request(csr_pem: &str) -> Result<(CertificateSigningRequestParams, RequestedIdentity), Fault> {
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

fn alternative_names(identity: &PeerIdentity, hosts: &[String]) -> Result<Vec<SanType>, Fault> {
    let text = |value: &str| {
        value
            .try_into()
            .map_err(|_| Fault::new(ErrorCode::InvalidInput, format!("{value:?} cannot stand in a certificate: use ASCII")))
    };
    let mut names = vec![SanType::URI(text(&identity.uri())?)];
    for host in hosts {
        names.push(match host.parse::<IpAddr>() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) => {
                rustls_pki_types::DnsName::try_from(host.as_str()).map_err(|_| {
                    Fault::new(ErrorCode::InvalidInput, format!("the host {host:?} is neither a DNS name nor an IP address"))
                })?;
                SanType::DnsName(text(host)?)
            }
        });
    }
    Ok(names)
}

fn base_params(name: &str, validity: Validity) -> Result<CertificateParams, Fault> {
    let end = validity
        .now
        .checked_add(Duration::from_secs(u64::from(validity.days) * 86_400))
        .filter(|_| (1..=36_500).contains(&validity.days))
        .ok_or_else(|| Fault::new(ErrorCode::InvalidInput, format!("a validity of {} days: choose 1 to 36500", validity.days)))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.not_before = (validity.now - CLOCK_SKEW).into();
    params.not_after = end.into();
    Ok(params)
}

/// A random serial number. Made from the key it would be the same for a certificate and its renewal, and to revoke one would be to
/// revoke both.
fn serial_number() -> Result<SerialNumber, Fault> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| internal("make a serial number", &"the system gives no random numbers"))?;
    // Positive, and of full length.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn internal(what: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::Internal, format!("could not {what}: {error}"))
}

fn input(what: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::InvalidInput, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
