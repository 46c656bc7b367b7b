//! Certificates, signing requests, and lists of revoked certificates.

use std::time::SystemTime;

use conclave_proto::ca::{self, Validity};
use conclave_proto::identity::{PeerIdentity, Role, valid_name};
use conclave_proto::revoked::RevokedList;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::harness::{Target, fuzz};

fn issued() -> (ca::KeyedPem, ca::KeyedPem) {
    let validity = || Validity { now: SystemTime::now(), days: 10 };
    let authority = ca::create_ca("fuzz", validity()).expect("a CA");
    let name = PeerIdentity::new(Role::Party, "hospital-a").expect("a name");
    let member = ca::issue(&authority, &name, &[], validity()).expect("a certificate");
    (authority, member)
}

#[test]
fn identities_of_certificates() {
    let (_, member) = issued();
    let der = CertificateDer::from_pem_slice(member.pem.as_bytes()).expect("a certificate").to_vec();
    fuzz(&Target {
        name: "certificate",
        seeds: vec![der],
        words: vec![b"conclave://party/a".to_vec(), b"conclave://coordinator/main".to_vec()],
        run: Box::new(|bytes| {
            let certificate = CertificateDer::from(bytes.to_vec());
            let Ok(identity) = PeerIdentity::from_certificate(&certificate) else { return false };
            assert!(valid_name(&identity.name), "{identity:?}");
            let list = RevokedList::parse(&identity.name).expect("a name is an entry");
            assert!(list.check(&certificate).is_err(), "a revoked name is accepted");
            true
        }),
    });
}

#[test]
fn signing_requests() {
    let (authority, member) = issued();
    let name = PeerIdentity::new(Role::Party, "hospital-b").expect("a name");
    let request = ca::make_request(&name, &[]).expect("a request").pem;
    fuzz(&Target {
        name: "signing-request",
        seeds: vec![request.into_bytes(), member.pem.into_bytes()],
        words: vec![b"-----BEGIN CERTIFICATE REQUEST-----\n".to_vec(), b"-----END CERTIFICATE REQUEST-----".to_vec()],
        run: Box::new(move |bytes| {
            let Ok(text) = std::str::from_utf8(bytes) else { return false };
            // The summary is the output of `conclave ca show` for a file that anyone may have sent.
            let shown = ca::summarise(text).is_ok();
            let Ok(requested) = ca::read_request(text) else { return shown };
            let validity = Validity { now: SystemTime::now(), days: 10 };
            if let Ok(signed) = ca::sign(&authority, text, false, validity) {
                assert_ne!(requested.identity.role, Role::Coordinator, "a coordinator was signed without consent");
                let summary = ca::summarise(&signed).expect("its own certificate");
                assert_eq!(summary.identity, Some(requested.identity));
            }
            true
        }),
    });
}

#[test]
fn revoked_lists() {
    fuzz(&Target {
        name: "revoked",
        seeds: vec![b"# nobody\nanalyst/alice # left\nconclave://party/b\n0a:1b:2c\n".to_vec()],
        words: vec![b"conclave://".to_vec(), b"\n".to_vec(), b"#".to_vec(), b"::".to_vec()],
        run: Box::new(|bytes| std::str::from_utf8(bytes).is_ok_and(|text| RevokedList::parse(text).is_ok())),
    });
}
