//! The latest of some lengths of time and what each was made up of: noted by one thread, which waits for nobody, and read by others.

use std::array;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How many are kept.
const KEPT: usize = 128;

/// The latest lengths of time, each in `N` parts.
#[derive(Debug)]
pub struct Latest<const N: usize> {
    /// Microseconds of each part.
    kept: Box<[[AtomicU32; N]]>,
    /// How many were noted in all.
    noted: AtomicUsize,
}

/// Median and 95% quantile, seconds.
pub type Typical = (f64, f64);

/// The same in milliseconds.
#[must_use]
pub fn in_ms((median, high): Typical) -> Typical {
    (1e3 * median, 1e3 * high)
}

/// What there is to say of the latest lengths of time. Medians of parts need not add up to the median of the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary<const N: usize> {
    /// Of the sums of the parts.
    pub whole: Typical,
    /// Of each part.
    pub parts: [Typical; N],
}

impl<const N: usize> Default for Latest<N> {
    fn default() -> Self {
        let none = || array::from_fn(|_| AtomicU32::new(0));
        Self { kept: (0..KEPT).map(|_| none()).collect(), noted: AtomicUsize::new(0) }
    }
}

impl<const N: usize> Latest<N> {
    /// Notes one; for one thread at a time. Beyond 71 minutes a part is that long.
    pub fn note(&self, parts: [Duration; N]) {
        let noted = self.noted.load(Ordering::Relaxed);
        for (place, part) in self.kept[noted % KEPT].iter().zip(parts) {
            place.store(u32::try_from(part.as_micros()).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        // Whoever reads the new count reads what it counts.
        self.noted.store(noted.wrapping_add(1), Ordering::Release);
    }

    /// What the latest come to; `None` before the first. One that is noted meanwhile may count with some of its parts.
    #[must_use]
    pub fn summary(&self) -> Option<Summary<N>> {
        let noted = self.noted.load(Ordering::Acquire).min(KEPT);
        let read =
            |parts: &[AtomicU32; N]| -> [f64; N] { array::from_fn(|part| f64::from(parts[part].load(Ordering::Relaxed)) / 1e6) };
        let latest: Vec<[f64; N]> = self.kept[..noted].iter().map(read).collect();
        let whole = typical(latest.iter().map(|parts| parts.iter().sum()).collect())?;
        let of_part = |part: usize| typical(latest.iter().map(|parts| parts[part]).collect()).unwrap_or_default();
        Some(Summary { whole, parts: array::from_fn(of_part) })
    }
}

/// Quantiles that were observed: no number between two of them.
fn typical(mut seconds: Vec<f64>) -> Option<Typical> {
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
    fn the_latest_are_summed_up_by_part() {
        let latest = Latest::<2>::default();
        assert_eq!(latest.summary(), None);
        latest.note([Duration::ZERO, Duration::from_millis(3)]);
        assert_eq!(latest.summary(), Some(Summary { whole: (0.003, 0.003), parts: [(0.0, 0.0), (0.003, 0.003)] }));
        for ms in 0..500 {
            latest.note([Duration::from_millis(ms), Duration::from_millis(1000)]);
        }
        let summary = latest.summary().unwrap();
        let (median, high) = summary.parts[0];
        assert!((0.43..0.44).contains(&median) && (0.48..0.5).contains(&high), "{summary:?}");
        assert_eq!(summary.parts[1], (1.0, 1.0));
        assert!((summary.whole.0 - median - 1.0).abs() < 1e-9);
        (0..KEPT).for_each(|_| latest.note([Duration::from_secs(1 << 40); 2]));
        assert!(latest.summary().unwrap().parts[1].0 > 4000.0);
    }
}
