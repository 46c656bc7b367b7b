//! The owner's settings that bound answers.

pub mod policy;

pub use policy::{Approve, Policy, ReplyDelay, SiteParameters};
