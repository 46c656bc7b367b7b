//! `conclave-party doctor`: reports in one table what an owner would otherwise learn from single log lines.
//!
//! Every check is a function that returns findings and continues after failures. No check attaches (a second attachment would
//! replace the running daemon's), takes the ledger's lock, writes to the ledger or spends budget. The doctor can therefore run
//! at any time, before the first start and while the party runs.

mod disk;
mod examine;
mod identity;
mod ledger;
mod network;
mod permissions;
mod records;

pub(crate) use examine::examine;
