//! Waiting for conditions in another process.

use std::time::{Duration, Instant};

/// Patience for a quick operation; generous, for a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// Polls until `test` returns true.
///
/// # Panics Panics once `patience` is over, naming the awaited condition.
pub fn until(what: &str, patience: Duration, mut test: impl FnMut() -> bool) {
    let end = Instant::now() + patience;
    while !test() {
        assert!(Instant::now() < end, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
