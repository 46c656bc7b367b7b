//! Recent durations and their parts, recorded by one thread without waiting and read by others.

use std::array;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// Number of durations in the buffer.
const CAPACITY: usize = 128;

/// A ring buffer of the latest durations, each in `N` parts.
#[derive(Debug)]
pub struct RecentDurations<const N: usize> {
    /// Microseconds of each part.
    entries: Box<[[AtomicU32; N]]>,
    /// Total number of recorded durations.
    count: AtomicUsize,
}

/// Median and 95% quantile in seconds.
pub type Quantiles = (f64, f64);

/// Converts quantiles from seconds to milliseconds.
#[must_use]
pub fn in_ms((median, high): Quantiles) -> Quantiles {
    (1e3 * median, 1e3 * high)
}

/// Quantiles of the recent durations. Medians of parts need not add up to the median of the total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary<const N: usize> {
    /// Quantiles of the sums of the parts.
    pub whole: Quantiles,
    /// Quantiles of each part.
    pub parts: [Quantiles; N],
}

impl<const N: usize> Default for RecentDurations<N> {
    fn default() -> Self {
        let none = || array::from_fn(|_| AtomicU32::new(0));
        Self { entries: (0..CAPACITY).map(|_| none()).collect(), count: AtomicUsize::new(0) }
    }
}

impl<const N: usize> RecentDurations<N> {
    /// Records a duration; only one thread at a time may call it. Parts are capped at 71 minutes.
    pub fn record(&self, parts: [Duration; N]) {
        let count = self.count.load(Ordering::Relaxed);
        for (slot, part) in self.entries[count % CAPACITY].iter().zip(parts) {
            slot.store(u32::try_from(part.as_micros()).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        // A reader of the new count also sees the new entry.
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// Returns the quantiles of the recent durations; `None` before the first. A duration recorded at the same time may be
    /// included in part.
    #[must_use]
    pub fn summary(&self) -> Option<Summary<N>> {
        let count = self.count.load(Ordering::Acquire).min(CAPACITY);
        let read =
            |parts: &[AtomicU32; N]| -> [f64; N] { array::from_fn(|part| f64::from(parts[part].load(Ordering::Relaxed)) / 1e6) };
        let latest: Vec<[f64; N]> = self.entries[..count].iter().map(read).collect();
        let whole = quantiles(latest.iter().map(|parts| parts.iter().sum()).collect())?;
        let of_part = |part: usize| quantiles(latest.iter().map(|parts| parts[part]).collect()).unwrap_or_default();
        Some(Summary { whole, parts: array::from_fn(of_part) })
    }
}

/// Returns quantiles among the observed values, without interpolation.
fn quantiles(mut seconds: Vec<f64>) -> Option<Quantiles> {
    seconds.sort_unstable_by(f64::total_cmp);
    let last = seconds.len().checked_sub(1)?;
    let at = |share: f64| seconds[(share * last as f64).round() as usize];
    Some((at(0.5), at(0.95)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn recent_durations_are_summarised_by_part() {
        let latest = RecentDurations::<2>::default();
        assert_eq!(latest.summary(), None);
        latest.record([Duration::ZERO, Duration::from_millis(3)]);
        assert_eq!(latest.summary(), Some(Summary { whole: (0.003, 0.003), parts: [(0.0, 0.0), (0.003, 0.003)] }));
        for ms in 0..500 {
            latest.record([Duration::from_millis(ms), Duration::from_millis(1000)]);
        }
        let summary = latest.summary().unwrap();
        let (median, high) = summary.parts[0];
        assert!((0.43..0.44).contains(&median) && (0.48..0.5).contains(&high), "{summary:?}");
        assert_eq!(summary.parts[1], (1.0, 1.0));
        assert!((summary.whole.0 - median - 1.0).abs() < 1e-9);
        (0..CAPACITY).for_each(|_| latest.record([Duration::from_secs(1 << 40); 2]));
        assert!(latest.summary().unwrap().parts[1].0 > 4000.0);
    }
}
