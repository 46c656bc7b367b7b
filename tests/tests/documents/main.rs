//! Checks of the repository's own statements: commands of the README and the guides, examples, the import order, and the
//! dependencies of the vault.

mod configuration;
mod deploy;
mod examples;
mod imports;
mod laws;
mod openssl;
mod papers;
mod printing;
mod readme;
mod screening;
mod trusted;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
