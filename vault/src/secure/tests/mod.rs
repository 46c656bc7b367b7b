#![allow(clippy::unwrap_used)]
//! Secure jobs' settings, keys and rosters.

mod mask_keys;
mod roster;
mod town;
