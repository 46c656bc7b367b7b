//! Where connections come from, as far as one can hold it against others.

use std::net::IpAddr;

/// A host: an IPv4 address, or the /64 that an IPv6 host has to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(u64, bool);

impl Source {
    /// The host at an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
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
    fn a_host_is_one_whatever_it_calls_itself() {
        let source = |address: &str| Source::of(address.parse().unwrap());
        assert_eq!(source("::ffff:10.0.0.2"), source("10.0.0.2"));
        assert_eq!(source("2001:db8::1"), source("2001:db8::2:0:0:1"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
    }
}
