//! The link: this party dials the coordinator, holds one stream, and dials again whenever it breaks.

mod bounds;
mod dial;
mod frames;
mod pauses;
mod renewal;
mod session;
mod signer;

pub(crate) use dial::{Dial, load_identity};
pub(crate) use session::Link;
pub use signer::IdentitySigner;
