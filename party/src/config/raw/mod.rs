//! The file's own shape, and the checks that turn it into a [`super::PartyConfig`].

mod data;
mod file;
mod policy;
mod unknown;

pub(super) use file::{Config, KEYS};
