//! Barker's test with noise: its tables, their effect on a posterior, and whole chains over all records and over samples.

mod enumeration;
mod runs;
mod second_moment;
mod tables;
