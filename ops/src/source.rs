//! Source hosts of connections, as the unit of rate limits.

use std::net::IpAddr;

/// A host: an IPv4 address, or the /64 network of an IPv6 host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceHost(u64, bool);

impl SourceHost {
    /// Returns the host at an address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(u64::from(v4.to_bits()), false),
            IpAddr::V6(v6) => Self((v6.to_bits() >> 64) as u64, true),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_addresses_of_a_host_are_equal() {
        let source = |address: &str| SourceHost::at(address.parse().unwrap());
        assert_eq!(source("::ffff:10.0.0.2"), source("10.0.0.2"));
        assert_eq!(source("2001:db8::1"), source("2001:db8::2:0:0:1"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
    }
}
