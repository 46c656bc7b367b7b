//! Masked jobs against a coordinator that lies, colluding parties, and crashes between any two steps of a key's life.
//!
//! The parties are real, with disks of their own; the test controls all messages of the coordinator. The tests check the messages
//! that a party sends, the contents of its disk, and its charges.

mod collusion;
mod keys;
mod lab;
mod leaks;
mod lies;
mod neighbours;
mod restarts;
mod rosters;
mod search;
mod served;
