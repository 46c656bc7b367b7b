//! Masked jobs against a coordinator that lies, fellow parties that work with it, and crashes between every two steps of a key's life.
//!
//! The parties are real, on disks of their own; what the coordinator says to each of them is the test's. What is looked at is what leaves
//! a party, what is on its disk, and what it was charged.

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
