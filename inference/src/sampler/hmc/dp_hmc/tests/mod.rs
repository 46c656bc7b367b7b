//! Tests of DP-HMC.

mod balance;
mod enumeration;
mod runs;
