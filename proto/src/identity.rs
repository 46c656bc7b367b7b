//! The identity of a peer: role and name from the single `conclave://ROLE/NAME` URI of its certificate.
//!
//! Headers, message fields and common names are never consulted.

use std::fmt;

pub use conclave_common::text::valid_name;
use rustls_pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::{ErrorCode, Fault};

/// The scheme of the URI that names a peer.
const SCHEME: &str = "conclave://";

/// The role that a certificate grants its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A data owner's daemon, which may attach to the link.
    Party,
    /// A person who submits and reads jobs.
    Analyst,
    /// The server that all members dial.
    Coordinator,
}

impl Role {
    /// Every role, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Party, Self::Analyst, Self::Coordinator];

    /// Returns the role as written in a certificate's URI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Party => "party",
            Self::Analyst => "analyst",
            Self::Coordinator => "coordinator",
        }
    }

    /// Returns the role named `text`, if any.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A peer's role and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerIdentity {
    /// The peer's role.
    pub role: Role,
    /// The peer's name within the consortium, see [`valid_name`].
    pub name: String,
}

impl PeerIdentity {
    /// Creates an identity with this role and name.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] if the name is not a [`valid_name`].
    pub fn new(role: Role, name: &str) -> Result<Self, Fault> {
        if valid_name(name) {
            return Ok(Self { role, name: name.to_owned() });
        }
        Err(Fault::new(
            ErrorCode::InvalidInput,
            format!("invalid name {name:?}: use 1 to 63 of the characters a-z, 0-9 and -, not starting or ending with -"),
        ))
    }

    /// Reads `conclave://ROLE/NAME`; nothing may follow the name.
    ///
    /// # Errors
    /// [`ErrorCode::Unauthenticated`] for anything else.
    pub fn parse_uri(uri: &str) -> Result<Self, Fault> {
        uri.strip_prefix(SCHEME)
            .and_then(|rest| rest.split_once('/'))
            .and_then(|(role, name)| Self::new(Role::parse(role)?, name).ok())
            .ok_or_else(|| {
                Fault::new(
                    ErrorCode::Unauthenticated,
                    format!(
                        "the certificate's URI {uri:?} is not of the form conclave://party/NAME, \
                         conclave://analyst/NAME or conclave://coordinator/NAME"
                    ),
                )
            })
    }

    /// Returns the URI in this peer's certificate.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}/{}", self.role, self.name)
    }

    /// Reads the identity in a certificate (DER). TLS must already have verified the certificate; this function does not.
    ///
    /// # Errors
    /// [`ErrorCode::Unauthenticated`] if the certificate does not parse, or does not carry exactly one `conclave://` URI: a
    /// certificate with two names could act under either.
    pub fn from_certificate(der: &CertificateDer<'_>) -> Result<Self, Fault> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|_| Fault::new(ErrorCode::Unauthenticated, "the peer's certificate cannot be read".to_owned()))?;
        let names = certificate
            .subject_alternative_name()
            .map_err(|_| Fault::new(ErrorCode::Unauthenticated, "the certificate's alternative names cannot be read".to_owned()))?
            .map(|extension| extension.value.general_names.as_slice())
            .unwrap_or_default();
        Self::from_uris(names.iter().filter_map(|name| match name {
            GeneralName::URI(uri) => Some(*uri),
            _ => None,
        }))
    }

    /// Finds the identity in a list of URIs, exactly one of which must have our scheme.
    pub(crate) fn from_uris<'a>(uris: impl Iterator<Item = &'a str>) -> Result<Self, Fault> {
        // Schemes are compared case-insensitively, so that "Conclave://" cannot hide a second name.
        let ours: Vec<&str> =
            uris.filter(|uri| uri.get(..SCHEME.len()).is_some_and(|head| head.eq_ignore_ascii_case(SCHEME))).collect();
        match ours.as_slice() {
            [uri] => Self::parse_uri(uri),
            [] => Err(Fault::new(
                ErrorCode::Unauthenticated,
                "the certificate carries no conclave:// URI: have it issued again with `conclave ca sign`".to_owned(),
            )),
            several => Err(Fault::new(
                ErrorCode::Unauthenticated,
                format!(
                    "the certificate carries {} conclave:// URIs where exactly one is allowed: have it issued again \
                     with `conclave ca sign`",
                    several.len()
                ),
            )),
        }
    }

    /// Returns this identity if it has the role that a call requires.
    ///
    /// # Errors
    /// [`ErrorCode::Unauthenticated`] naming both roles.
    pub fn require(self, role: Role) -> Result<Self, Fault> {
        if self.role == role {
            return Ok(self);
        }
        Err(Fault::new(
            ErrorCode::Unauthenticated,
            format!("this call needs a certificate of role {role}; the one presented is {}", self.uri()),
        ))
    }
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

/// Reads the identity of a gRPC request's sender from the certificate of its TLS connection.
///
/// # Errors
/// [`ErrorCode::Unauthenticated`] if the connection carries no client certificate or one without a usable name.
#[cfg(feature = "transport")]
pub fn of_request<T>(request: &tonic::Request<T>) -> Result<PeerIdentity, Fault> {
    let certificates = request.peer_certs();
    let leaf = certificates
        .as_ref()
        .and_then(|chain| chain.first())
        .ok_or_else(|| Fault::new(ErrorCode::Unauthenticated, "the connection carries no client certificate".to_owned()))?;
    PeerIdentity::from_certificate(leaf)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn uris_round_trip() {
        for role in Role::ALL {
            let identity = PeerIdentity::new(role, "hospital-a").unwrap();
            assert_eq!(PeerIdentity::parse_uri(&identity.uri()).unwrap(), identity);
        }
    }

    #[test]
    fn other_uris_are_refused() {
        for uri in [
            "",
            "conclave://",
            "conclave://party",
            "conclave://party/",
            "conclave://Party/a",
            "conclave://party/A",
            "conclave://party/a/b",
            "conclave://party/a?x=1",
            "conclave://party/a b",
            "conclave://root/a",
            "https://party/a",
            "Conclave://party/a",
        ] {
            let fault = PeerIdentity::parse_uri(uri).unwrap_err();
            assert_eq!(fault.code, ErrorCode::Unauthenticated, "{uri}");
        }
    }

    #[test]
    fn exactly_one_uri_is_taken() {
        let one = ["https://elsewhere/x", "conclave://party/a"];
        assert_eq!(PeerIdentity::from_uris(one.into_iter()).unwrap().name, "a");
        for bad in [
            vec!["https://elsewhere/x"],
            vec!["conclave://party/a", "conclave://analyst/b"],
            vec!["conclave://party/a", "conclave://party/a"],
            vec!["conclave://party/a", "CONCLAVE://analyst/b"],
        ] {
            assert!(PeerIdentity::from_uris(bad.into_iter()).is_err());
        }
    }

    #[test]
    fn names() {
        for good in ["a", "hospital-a", "0", "x1-y2", &"a".repeat(63)] {
            assert!(valid_name(good), "{good}");
        }
        for bad in ["", "A", "a_b", "a.b", "-a", "a-", "a/b", "é", &"a".repeat(64)] {
            assert!(!valid_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_request_without_tls_is_refused() {
        let fault = of_request(&tonic::Request::new(())).unwrap_err();
        assert_eq!(fault.code, ErrorCode::Unauthenticated);
    }
}
