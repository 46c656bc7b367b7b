//! Helpers shared by the end-to-end and statistical tests.
//!
//! A helper here panics with a description of the failure: in a test that is the report.
#![forbid(unsafe_code)]

pub mod books;
pub mod calibration;
pub mod cluster;
pub mod crash;
pub mod federation;
pub mod imports;
pub mod logistic_reference;
pub mod masks;
pub mod proxies;
pub mod recorder;
pub mod strangers;
pub mod study;
pub mod visit;
pub mod wait;
pub mod zarr;
