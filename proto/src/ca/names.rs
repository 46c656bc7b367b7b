//! The names in a certificate: its subject, and under which URI and hosts its holder is known.

use std::net::IpAddr;

use rcgen::{DistinguishedName, DnType, SanType};

use crate::error::{ErrorCode, Fault};
use crate::identity::PeerIdentity;

/// A member's URI, and the hosts that it is reached under.
pub(super) fn alternative_names(identity: &PeerIdentity, hosts: &[String]) -> Result<Vec<SanType>, Fault> {
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

/// A subject of this name.
pub(super) fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
