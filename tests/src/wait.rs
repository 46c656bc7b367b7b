//! Waiting for what other processes do.

use std::time::{Duration, Instant};

/// For what takes a moment; on a busy machine, a long one.
pub const SOON: Duration = Duration::from_secs(60);

/// Waits until `holds`, and no longer than [`SOON`].
///
/// # Panics
/// When it does not come to hold.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
