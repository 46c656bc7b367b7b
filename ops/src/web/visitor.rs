//! Visitors of a page, and the peers of their connections.

use std::sync::Arc;

use crate::source::SourceHost;

/// The peer of a connection, as known before its first request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The host against which wrong tokens are counted.
    pub source: SourceHost,
    /// Further host names of the pages beside the configured ones: those of the certificate that the server presented.
    pub hosts: Arc<[String]>,
    /// The member whose certificate replaces a token, if any.
    pub member: Option<Member>,
}

/// A member whose certificate gives access to the pages.
#[derive(Debug, Clone)]
pub struct Member {
    /// The name in the certificate.
    pub name: String,
    /// The certificate, DER, from which the CSRF token of this visitor's forms is derived.
    pub certificate: Vec<u8>,
}

/// The visitor of a page, an extension of every request that reaches the pages.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Required content of the field [`super::CSRF_FIELD`] of every form; empty for a program, which needs none.
    pub csrf: String,
    /// The visitor's identity.
    pub principal: Principal,
}

impl Visitor {
    /// Returns true if the visitor has a session to log out of.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.principal == Principal::Operator && !self.csrf.is_empty()
    }
}

/// The authenticated identity of a visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The daemon's operator, who has the token.
    Operator,
    /// The member with this name in its certificate.
    Member(String),
}
