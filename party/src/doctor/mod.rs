//! `conclave-party doctor`: what an owner would otherwise find out one log line at a time.
//!
//! Every check is a function that gives findings and goes on after failures. Nothing here attaches (a second attachment would take
//! the running daemon's place), takes the ledger's lock, writes to the ledger or spends anything of the budget: a doctor may look in
//! at any time, before the party has ever run and while it runs.

mod disk;
mod examine;
mod identity;
mod ledger;
mod network;
mod permissions;
mod records;

pub(crate) use examine::examine;
