//! Checks of the repository's own statements: commands of the README and the guides, examples, the import order.

mod configuration;
mod deploy;
mod examples;
mod imports;
mod laws;
mod openssl;
mod printing;
mod readme;
mod screening;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
