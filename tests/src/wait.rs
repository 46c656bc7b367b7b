//! Waiting for what comes to pass in another process.

use std::time::{Duration, Instant};

/// Looks again and again until `test` holds.
///
/// # Panics
/// Once `patience` is over, naming what was waited for.
pub fn until(what: &str, patience: Duration, mut test: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !test() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
