#![allow(clippy::unwrap_used)]

mod prior;
