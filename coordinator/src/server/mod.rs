//! The gRPC server, over mutual TLS only: the link to parties and the analysts' calls. Also the dashboard over TLS.

mod accept;
mod connection;
mod connections;
mod credentials;
mod failure_log;
mod files;
mod jobs;
mod link;
mod log;
mod pages;
mod pending;
mod sending;
mod serve;
mod stopping;

pub(crate) use credentials::Credentials;
#[cfg(feature = "test-util")]
pub(crate) use link::{AttachingParty, LinkService};
pub(crate) use pages::serve_pages;
pub(crate) use serve::{SERVICES, serve};
pub(crate) use stopping::stopped;
