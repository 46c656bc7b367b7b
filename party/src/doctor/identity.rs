//! The party's own certificate, key and CA.

use std::time::SystemTime;

use conclave_proto::tls::{IdentityDir, days_until, is_expiring};

use crate::config::PartyConfig;
use crate::link::load_identity;
use conclave_ops::doctor::Finding;

/// Checks the identity, and returns it if it can be used to dial.
pub(super) fn check(config: &PartyConfig) -> (Vec<Finding>, Option<IdentityDir>) {
    const CODE: &str = "identity";
    let folder = config.identity.display();
    let request = config.identity.join("request.pem");
    let certificate = config.identity.join("certificate.pem");
    if config.key.exists() && !certificate.exists() {
        let found = format!("{folder} has a key but no certificate yet");
        let remedy = format!(
            "send {} to the keeper of the consortium's CA and install the certificate that you receive: conclave-party install \
             certificate.pem --ca ca.pem",
            request.display()
        );
        return (vec![Finding::fail(CODE, found, remedy)], None);
    }
    let identity = match load_identity(&config.identity, &config.key, &config.name) {
        Ok(identity) => identity,
        Err(fault) => {
            let remedy = "`conclave-party init` makes a key and a request; the consortium's CA returns certificate.pem and \
                          ca.pem";
            return (vec![Finding::fail(CODE, fault.to_string(), remedy)], None);
        }
    };
    if let Err(fault) = identity.check_at(SystemTime::now()) {
        let remedy = "if it has expired: conclave-party renew, and have the request signed";
        return (vec![Finding::fail(CODE, fault.to_string(), remedy)], Some(identity));
    }
    (vec![expiry(CODE, &identity)], Some(identity))
}

fn expiry(code: &'static str, identity: &IdentityDir) -> Finding {
    let expires = match identity.expiry() {
        Ok(expires) => expires,
        Err(fault) => return Finding::fail(code, fault.to_string(), "have it issued again with `conclave ca sign`"),
    };
    let now = SystemTime::now();
    let (own, ca) = (days_until(expires.certificate, now), days_until(expires.ca, now));
    if is_expiring(expires.certificate, now) {
        return Finding::warn(
            code,
            format!("{}: its certificate expires in {own} days", identity.identity()),
            "conclave-party renew, and have the request signed before then: no restart is needed",
        );
    }
    if is_expiring(expires.ca, now) {
        return Finding::warn(
            code,
            format!("{}: the CA in ca.pem expires in {ca} days, and every member's certificate with it", identity.identity()),
            "ask the consortium for its new ca.pem; during the transition the file may hold both",
        );
    }
    Finding::ok(code, format!("{}, certificate valid for {own} more days", identity.identity()))
}
