#![allow(clippy::unwrap_used)]
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::names::{alternative_names, common_name};
use super::*;
use crate::error::ErrorCode;
use crate::identity::{PeerIdentity, Role};

fn validity(days: u32) -> Validity {
    Validity { now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000), days }
}

fn ca() -> KeyedPem {
    create_ca("consortium", validity(10)).unwrap()
}

fn identity(role: Role) -> PeerIdentity {
    PeerIdentity::new(role, "a-1").unwrap()
}

fn extended(pem: &str) -> (bool, bool) {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    (usage.client_auth, usage.server_auth)
}

#[test]
fn certificates_carry_role_and_name_and_the_one_purpose() {
    let ca = ca();
    for role in [Role::Party, Role::Analyst, Role::Coordinator] {
        let hosts: &[String] = match role {
            Role::Coordinator => &["c.example".to_owned(), "127.0.0.1".to_owned()],
            _ => &[],
        };
        let issued = issue(&ca, &identity(role), hosts, validity(5)).unwrap();
        let summary = summarise(&issued.pem).unwrap();
        assert_eq!(summary.identity, Some(identity(role)));
        assert_eq!(summary.fingerprint.len(), 64);
        let client = role != Role::Coordinator;
        assert_eq!(extended(&issued.pem), (client, !client));
    }
    let own = summarise(&ca.pem).unwrap();
    assert_eq!(own.identity, None);
    assert!(own.subject.contains("consortium"));
}

#[test]
fn a_request_is_read_before_it_is_signed() {
    let hosts = ["c.example".to_owned(), "::1".to_owned()];
    let request = make_request(&identity(Role::Coordinator), &hosts).unwrap();
    let read = read_request(&request.pem).unwrap();
    assert_eq!(read.identity, identity(Role::Coordinator));
    assert_eq!(read.hosts, hosts);
    let refused = sign(&ca(), &request.pem, false, validity(1)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Policy);
    assert!(refused.message.contains("--coordinator"), "{refused}");
    sign(&ca(), &request.pem, true, validity(1)).unwrap();
}

#[test]
fn a_key_has_one_fingerprint_in_request_certificate_and_file() {
    let request = make_request(&identity(Role::Party), &[]).unwrap();
    let own = key_fingerprint(&request.key_pem).unwrap();
    assert_eq!(own.len(), 64);
    assert_eq!(read_request(&request.pem).unwrap().key_fingerprint, own);
    assert_eq!(summarise(&sign(&ca(), &request.pem, false, validity(1)).unwrap()).unwrap().key_fingerprint, own);
    let again = request_with_key(&identity(Role::Party), &[], &request.key_pem).unwrap();
    assert_eq!(read_request(&again).unwrap().key_fingerprint, own);
    // Revoking a certificate does not revoke its renewal.
    let serials = [&request.pem, &again].map(|csr| summarise(&sign(&ca(), csr, false, validity(1)).unwrap()).unwrap().serial);
    assert!(serials[0] != serials[1] && serials[0].len() == 32, "{serials:?}");
    assert_ne!(read_request(&make_request(&identity(Role::Party), &[]).unwrap().pem).unwrap().key_fingerprint, own);
    assert_eq!(grouped("0123456789"), "0123 4567 89");
    assert!(request_with_key(&identity(Role::Party), &[], "no key").is_err());
    let hosts = ["c.example".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let issued = issue(&ca(), &identity(Role::Coordinator), &hosts, validity(1)).unwrap();
    assert_eq!(summarise(&issued.pem).unwrap().hosts, hosts);
}

#[test]
fn only_role_and_name_are_copied_from_a_members_request() {
    // A party that requests a host name, the server purpose and CA rights gets none of them.
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.distinguished_name = common_name("coordinator main");
    params.subject_alt_names = alternative_names(&identity(Role::Party), &["c.example".to_owned()]).unwrap();
    let csr = params.serialize_request(&key).unwrap().pem().unwrap();
    let signed = sign(&ca(), &csr, true, validity(1)).unwrap();
    let der = CertificateDer::from_pem_slice(signed.as_bytes()).unwrap();
    let (_, parsed) = X509Certificate::from_der(&der).unwrap();
    assert!(!parsed.is_ca());
    assert_eq!(extended(&signed), (true, false));
    let names = parsed.subject_alternative_name().unwrap().unwrap().value;
    assert_eq!(names.general_names.len(), 1);
    assert_eq!(parsed.subject().to_string(), "CN=party a-1");
}

#[test]
fn requests_with_no_name_or_two_are_refused() {
    let key = KeyPair::generate().unwrap();
    for uris in [&[][..], &["conclave://party/a", "conclave://analyst/a"][..]] {
        let mut params = CertificateParams::default();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        let csr = params.serialize_request(&key).unwrap().pem().unwrap();
        let fault = read_request(&csr).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidInput);
        assert!(fault.message.contains("signing request"), "{fault}");
    }
}

#[test]
fn bad_input_is_refused() {
    let party = make_request(&identity(Role::Party), &[]).unwrap();
    let hostless = make_request(&identity(Role::Coordinator), &[]).unwrap();
    let bad_ca = KeyedPem { pem: "x".to_owned(), key_pem: ca().key_pem };
    for result in [
        sign(&ca(), "no request", false, validity(1)).map(drop),
        sign(&ca(), &hostless.pem, true, validity(1)).map(drop),
        sign(&bad_ca, &party.pem, false, validity(1)).map(drop),
        sign(&ca(), &party.pem, false, validity(0)).map(drop),
        create_ca("", validity(1)).map(drop),
        create_ca("x", validity(40_000)).map(drop),
        make_request(&identity(Role::Coordinator), &["a b".to_owned()]).map(drop),
        summarise("x").map(drop),
    ] {
        assert_eq!(result.unwrap_err().code, ErrorCode::InvalidInput);
    }
}

#[test]
fn a_tampered_request_is_refused() {
    let one = make_request(&identity(Role::Party), &[]).unwrap();
    let der = rustls_pki_types::CertificateSigningRequestDer::from_pem_slice(one.pem.as_bytes()).unwrap();
    let mut bytes = der.as_ref().to_vec();
    let at = bytes.windows(3).position(|w| w == b"a-1").unwrap();
    bytes[at] = b'b';
    let result = CertificateSigningRequestParams::from_der(&bytes.into());
    assert!(result.is_err());
}
