//! Who looks at a page, and where the connection comes from.

use std::sync::Arc;

use crate::source::Source;

/// Where a connection comes from, and what it showed before its first request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Against whom wrong tokens are counted.
    pub source: Source,
    /// Hosts that the pages may be asked for under, beside the configured: those of the certificate that the server showed.
    pub hosts: Arc<[String]>,
    /// Whoever may look without a token.
    pub member: Option<Member>,
}

/// Whoever's certificate opens the pages.
#[derive(Debug, Clone)]
pub struct Member {
    /// The name in it.
    pub name: String,
    /// The certificate itself, DER: the words of this visitor's forms belong to it.
    pub certificate: Vec<u8>,
}

/// Who looks at a page: every request that reaches the pages carries it as an extension.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// What the field [`super::CSRF_FIELD`] of every form must hold; empty for a program, which needs none.
    pub csrf: String,
    /// Whose eyes they are.
    pub who: Who,
}

impl Visitor {
    /// Whether there is a session to log out of.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.who == Who::Operator && !self.csrf.is_empty()
    }
}

/// Whose eyes look at a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Whoever has the token: the daemon's operator.
    Operator,
    /// Whoever's certificate has this name.
    Member(String),
}
