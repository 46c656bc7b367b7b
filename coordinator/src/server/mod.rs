//! The gRPC server: the link to parties and the analysts' calls, over mutual TLS alone. And the dashboard, where that is served over TLS.

mod accept;
mod complaints;
mod connection;
mod connections;
mod credentials;
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
pub(crate) use link::LinkService;
pub(crate) use pages::serve_pages;
pub(crate) use serve::{SERVICES, serve};
pub(crate) use stopping::stopped;
