//! Tests of the ledger from its users' point of view, and against models of it.

#[cfg(test)]
mod against_model;
#[cfg(test)]
mod blocks;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod charging;
#[cfg(test)]
mod conversion;
#[cfg(test)]
mod index;
pub mod lengths;
#[cfg(test)]
mod long_log;
mod many_releases;
#[cfg(test)]
mod masked;
#[cfg(test)]
mod open_job;
#[cfg(all(test, unix))]
mod place;
mod previous_format;
#[cfg(test)]
mod random_blocks;
#[cfg(test)]
mod releases_view;
#[cfg(test)]
mod reserve;
#[cfg(test)]
mod reserved_vectors;
#[cfg(test)]
mod room;
#[cfg(test)]
mod times;
#[cfg(test)]
mod vectors;

pub use many_releases::write_a_million_releases;
pub use previous_format::to_former;
