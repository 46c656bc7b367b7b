//! Deaths and failing disks under the real answer path: a real process, a real SQLite ledger, real signals.
//!
//! After each of them an observer who kept everything that came out compares it with the ledger, read and added up by code of the
//! tests' own, before the party starts again and after it was asked everything once more.

mod common;
mod deaths;
mod failures;
mod lives;
mod power;
mod reserve_act;
