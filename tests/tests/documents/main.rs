//! What the repository says of itself, held to it: the README's and the guides' commands, the examples, the order of imports.

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
