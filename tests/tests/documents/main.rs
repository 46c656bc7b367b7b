//! What the repository says of itself, held to it: the README's and the guides' commands, the examples, the order of imports.

mod deploy;
mod examples;
mod imports;
mod laws;
mod openssl;
mod printing;
mod readme;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
