//! The certificate authority: its own certificate and the members' certificates that it signs.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber};
use ring::rand::{SecureRandom, SystemRandom};

use super::fault::{input, internal};
use super::key::KeyedPem;
use super::names::{alternative_names, common_name};
use super::request::{make_request, parse_request};
use crate::error::{ErrorCode, Fault};
use crate::identity::{PeerIdentity, Role};

/// Default validity of a CA certificate, in days.
pub const CA_DAYS: u32 = 3650;
/// Default validity of a member's certificate, in days.
pub const MEMBER_DAYS: u32 = 825;
/// Margin by which a certificate's validity starts before its creation, for clocks that run behind.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// Start and length of a certificate's validity.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// The present moment.
    pub now: SystemTime,
    /// Days from now.
    pub days: u32,
}

/// Creates a CA: a fresh ECDSA P-256 key and its self-signed certificate, which may sign members but no other CA.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] if the name is empty or longer than 64 characters.
pub fn create_ca(name: &str, validity: Validity) -> Result<KeyedPem, Fault> {
    if name.is_empty() || name.chars().count() > 64 {
        return Err(Fault::new(ErrorCode::InvalidInput, "the CA's name must have 1 to 64 characters"));
    }
    let key = KeyPair::generate().map_err(|e| internal("generate a key", &e))?;
    let mut params = base_params(name, validity)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key).map_err(|e| internal("sign the CA's certificate", &e))?;
    Ok(KeyedPem { pem: certificate.pem(), key_pem: key.serialize_pem() })
}

/// Signs a member's request with the CA's key. The certificate of a party or an analyst is valid only for dialling. That of
/// a coordinator is valid only for serving under the request's `hosts`.
///
/// `allow_coordinator` must be true to sign a coordinator: the holder of such a certificate can pose as the server to
/// every member, so it must never be signed by mistake.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for an invalid request or CA, and for a coordinator's request without a host;
/// [`ErrorCode::Policy`] for a coordinator's request without `allow_coordinator`.
pub fn sign(ca: &KeyedPem, csr_pem: &str, allow_coordinator: bool, validity: Validity) -> Result<String, Fault> {
    let (request, requested) = parse_request(csr_pem)?;
    let identity = &requested.identity;
    if identity.role == Role::Coordinator && !allow_coordinator {
        return Err(Fault::new(
            ErrorCode::Policy,
            format!(
                "the request is for {}, which can pose as the server to every member: sign it with --coordinator \
                 if you intend that",
                identity.uri()
            ),
        ));
    }
    if identity.role == Role::Coordinator && requested.hosts.is_empty() {
        return Err(Fault::new(
            ErrorCode::InvalidInput,
            "a coordinator's request must name at least one host (DNS name or IP address)",
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

/// Creates a key and a certificate in one step, for a CA that generates its members' keys itself, as in the demo.
///
/// # Errors
/// As [`make_request`] and [`sign`].
pub fn issue(ca: &KeyedPem, identity: &PeerIdentity, hosts: &[String], validity: Validity) -> Result<KeyedPem, Fault> {
    let request = make_request(identity, hosts)?;
    Ok(KeyedPem { pem: sign(ca, &request.pem, true, validity)?, key_pem: request.key_pem })
}

fn base_params(name: &str, validity: Validity) -> Result<CertificateParams, Fault> {
    let end = validity
        .now
        .checked_add(Duration::from_secs(u64::from(validity.days) * 86_400))
        .filter(|_| (1..=36_500).contains(&validity.days))
        .ok_or_else(|| {
            Fault::new(
                ErrorCode::InvalidInput,
                format!("a validity of {} days is out of range: choose 1 to 36500", validity.days),
            )
        })?;
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.not_before = (validity.now - CLOCK_SKEW).into();
    params.not_after = end.into();
    Ok(params)
}

/// Draws a random serial number. A number derived from the key would be the same for a certificate and its renewal, so that
/// revoking one would revoke both.
fn serial_number() -> Result<SerialNumber, Fault> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| internal("generate a serial number", &"the system's random number generator failed"))?;
    // Positive, and of full length.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}
