//! `conclave ca`: the consortium's certificates.

mod command;
mod identity_files;
mod init;
mod install;
mod request;
mod revoke;
mod show;
mod sign;

#[cfg(test)]
mod tests;

pub(crate) use command::{CaArgs, run};
pub(crate) use identity_files::{create_ca, create_identity};
