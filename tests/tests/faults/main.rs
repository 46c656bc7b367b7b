//! Faults of all kinds: processes killed at every moment, failing disks, broken connections, restored ledgers, strangers without
//! a certificate, and random lists of such operations.

mod durability;
mod kills;
mod masked;
mod proxy;
#[cfg(target_os = "linux")]
mod read_only;
mod rollback;
mod simulation;
mod strangers;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
