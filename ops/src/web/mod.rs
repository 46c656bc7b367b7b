//! Pages for people, behind a token or a certificate: one guard for the coordinator's dashboard and the party's own page.
//!
//! What a browser can be made to do by a page elsewhere is refused by several means, each enough alone: the session's cookie is
//! `SameSite=Strict`, the `Host` must be a name of ours (names elsewhere may point here), whatever changes something needs our
//! own `Origin` and a word that only this session's, or this certificate's, pages hold, and no page can be framed. Without token, session or
//! certificate every path but `/healthz` answers 401 with the login form.
//!
//! Over plain HTTP pages are served on the loopback interface alone. Whoever takes connections in over TLS hands them to
//! [`PageConnections`], with what was shown in the handshake.

mod answer;
mod attempts;
mod connection;
pub mod events;
mod form;
mod guard;
mod over;
mod sessions;
mod site;
mod token;
mod visitor;

#[cfg(test)]
mod tests;

pub use answer::{file, html, missing, picture, refused, see_other};
pub use connection::{Healthy, PageConnections, Slot};
pub use form::{CSRF_FIELD, Fields};
pub use over::{Over, address, loopback_address, loopback_only};
pub use site::Site;
pub use visitor::{Member, Peer, Visitor, Who};
