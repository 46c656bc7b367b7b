//! Kills and failing disks beneath the real answer path: a real process, a real SQLite ledger, real signals.
//!
//! After each fault, an observer that has recorded everything sent compares it with the ledger, which test code reads and totals:
//! once before the party restarts, and again after all queries were repeated.

mod common;
mod deaths;
mod failures;
mod lives;
mod power;
mod reserve_act;
