//! The names in a certificate: subject, URI and hosts.

use std::net::IpAddr;

use rcgen::{DistinguishedName, DnType, SanType};

use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// Returns a member's URI and its hosts as alternative names.
pub(super) fn alternative_names(identity: &PeerIdentity, hosts: &[String]) -> Result<Vec<SanType>, Fault> {
    let text = |value: &str| {
        value
            .try_into()
            .map_err(|_| Fault::new(ErrorCode::InvalidInput, format!("{value:?} is not allowed in a certificate: use ASCII")))
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

/// Returns a subject with this common name.
pub(super) fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
