//! Waiting for what comes to pass in another process.

use std::time::{Duration, Instant};

/// For what takes a moment; on a busy machine, a long one.
pub const SOON: Duration = Duration::from_secs(60);

/// Looks again and again until `test` holds.
///
/// # Panics
/// Once `patience` is over, naming what was waited for.
pub fn until(what: &str, patience: Duration, mut test: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !test() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
