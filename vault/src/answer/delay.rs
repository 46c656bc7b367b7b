//! Holds each reply to a public delay after its service began, independently of the records.
//!
//! Messages are served one after the other. The service of a message begins once it has arrived and the previous reply has left. Its own
//! reply leaves one delay later. Both moments are public, so a message sent close behind another cannot probe how long the other took.
//! A delay counted from the arrival alone could be probed in this way, and so could fixed times on the clock.
//!
//! If an answer takes longer than the delay, its reply leaves at the next multiple. The number of such replies is for the owner alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Largest lateness with which the operating system wakes a sleeping thread; the rest of a wait is a spin.
const SPIN: Duration = Duration::from_micros(250);

/// Counts of late replies, for the owner alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyCounts {
    /// Replies that were held to a delay.
    pub held: u64,
    /// Those that took longer than the delay and left at a later multiple of it.
    pub overruns: u64,
}

/// Times the replies.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// Departure of the previous reply, or the end of other work on this thread; no service begins earlier.
    free: Option<Instant>,
    counter: Counter,
}

/// The counts, readable while replies leave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<[AtomicU64; 2]>);

impl Counter {
    fn add(&self, late: bool) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
        self.0[1].fetch_add(u64::from(late), Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> ReplyCounts {
        let [held, overruns] = [0, 1].map(|i| self.0[i].load(Ordering::Relaxed));
        ReplyCounts { held, overruns }
    }
}

impl Pacer {
    /// Returns the moment at which the service of a message that arrived at `received` began.
    pub(crate) fn begin(&self, received: Instant) -> Instant {
        self.free.map_or(received, |free| free.max(received))
    }

    /// Waits until the first multiple of `delay` after `began` that is not past. Without a delay, returns at once.
    pub(crate) fn hold(&mut self, began: Instant, delay: Option<Duration>) {
        let Some(delay) = delay.filter(|d| !d.is_zero()) else { return self.passed() };
        let due = due(began, delay, Instant::now());
        self.counter.add(due.1 > 1);
        wait_until(due.0);
        self.free = Some(due.0);
    }

    /// Notes that work that read no record ends now, and that service may begin. Otherwise a message that waited for this work would have less
    /// than its delay left. Whether its reply left at the next multiple would then depend on the time of its own answer.
    pub(crate) fn passed(&mut self) {
        self.free = Some(Instant::now());
    }

    pub(crate) fn counter(&self) -> &Counter {
        &self.counter
    }
}

/// Returns the first multiple of `delay` after `began` that is not past, and its number.
fn due(began: Instant, delay: Duration, now: Instant) -> (Instant, u32) {
    let taken = now.saturating_duration_since(began);
    let multiple = u32::try_from(taken.as_nanos().div_ceil(delay.as_nanos())).unwrap_or(u32::MAX).max(1);
    (began + delay.saturating_mul(multiple), multiple)
}

fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SPIN {
            std::thread::sleep(left - SPIN);
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: Duration = Duration::from_millis(2);

    #[test]
    fn a_reply_is_due_at_the_first_multiple_that_is_not_past() {
        let began = Instant::now();
        let ms = |ms: f64| began + Duration::from_secs_f64(ms * 1e-3);
        for (now, multiple) in [(0.0, 1), (0.5, 1), (1.999, 1), (2.0, 1), (2.001, 2), (4.0, 2), (5.0, 3)] {
            assert_eq!(due(began, D, ms(now)), (began + D * multiple, multiple), "{now}");
        }
    }

    #[test]
    fn waits_are_exact_and_overruns_are_counted() {
        let mut pacer = Pacer::default();
        let mut late = Vec::new();
        for round in 0..40 {
            let began = pacer.begin(Instant::now());
            if round == 7 {
                wait_until(began + D + D / 4);
            }
            pacer.hold(began, Some(D));
            late.push(Instant::now() - began - if round == 7 { 2 * D } else { D });
            assert!(round != 7 || pacer.counter().counts().overruns >= 1);
        }
        assert_eq!(pacer.counter().counts(), ReplyCounts { held: 40, overruns: pacer.counter().counts().overruns });
        late.sort();
        // Where nothing else wants the processor; other tests run beside this one.
        assert!(late[2] < Duration::from_micros(20), "{late:?}");
    }

    /// A message close behind another cannot probe its time.
    #[test]
    fn service_begins_when_the_reply_before_has_left() {
        // Longer than a busy machine keeps a thread waiting.
        const D: Duration = Duration::from_millis(60);
        let mut pacer = Pacer::default();
        let first = Instant::now();
        pacer.hold(first, Some(D));
        // It arrived while the first was served.
        let began = pacer.begin(first + D / 2);
        assert_eq!(began, first + D);
        pacer.hold(began, Some(D));
        assert_eq!(pacer.begin(first), first + 2 * D);
        assert_eq!(pacer.counter().counts().overruns, 0);
    }

    #[test]
    fn off_waits_for_nothing() {
        let mut pacer = Pacer::default();
        let began = Instant::now();
        pacer.hold(began, None);
        assert!(pacer.begin(began) > began && pacer.begin(began) < Instant::now());
        assert_eq!(pacer.counter().counts(), ReplyCounts::default());
    }
}
