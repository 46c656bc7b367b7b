//! What breaks, broken: processes killed at every moment, disks that fail, wires that break, ledgers put back, strangers at the
//! door, and lists of such operations drawn from a seed.

mod durability;
mod kills;
mod masked;
mod proxy;
mod rollback;
mod simulation;
mod strangers;

const EXE: &str = env!("CARGO_BIN_EXE_conclave-e2e");
