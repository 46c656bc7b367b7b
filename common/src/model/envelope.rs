//! The range of a smooth function of one variable, by branch and bound from its values and a bound on its second derivative.

use super::ratio_range::RatioRange;

/// The search ends when the range is known to this fraction of the spread of the computed values.
const TIGHTNESS: f64 = 0.02;
/// The initial and the maximum number of cells of the interval.
const FIRST_CELLS: usize = 8;
const MOST_CELLS: usize = 256;

struct Cell {
    low: f64,
    high: f64,
    /// The function at both ends.
    ends: (f64, f64),
    /// The largest distance of the function beyond its end values in this cell. The function stays within `|f''| width^2 / 8` of
    /// its chord.
    beyond: f64,
}

impl Cell {
    fn greatest(&self) -> f64 {
        self.ends.0.max(self.ends.1) + self.beyond
    }

    fn least(&self) -> f64 {
        self.ends.0.min(self.ends.1) - self.beyond
    }

    /// Tests both ends separately, since `max` of a number and not-a-number is the number.
    fn finite(&self) -> bool {
        self.ends.0.is_finite() && self.ends.1.is_finite() && (self.greatest() - self.least()).is_finite()
    }
}

/// Returns a range that contains every value of `f` on `[low, high]` and is close to the tightest one.
///
/// `curvature(a, b)` bounds `|f''|` on `[a, b]`. The negated function with the same curvature has exactly the negated range,
/// since every choice depends on magnitudes. If a value is not finite, the range is the whole real line.
pub(super) fn range(low: f64, high: f64, f: impl Fn(f64) -> f64, curvature: impl Fn(f64, f64) -> f64) -> RatioRange {
    let cell = |low: f64, high: f64, ends: (f64, f64)| {
        let width = high - low;
        Cell { low, high, ends, beyond: curvature(low, high) * (width * width / 8.0) }
    };
    let point = |i: usize| low + (high - low) * (i as f64 / FIRST_CELLS as f64);
    let mut cells: Vec<Cell> = (0..FIRST_CELLS)
        .map(|i| (point(i), if i + 1 == FIRST_CELLS { high } else { point(i + 1) }))
        .map(|(a, b)| cell(a, b, (f(a), f(b))))
        .collect();
    loop {
        if !cells.iter().all(Cell::finite) {
            return RatioRange::of([f64::NEG_INFINITY, f64::INFINITY]);
        }
        let most = cells.iter().map(|c| c.ends.0.max(c.ends.1)).fold(f64::NEG_INFINITY, f64::max);
        let fewest = cells.iter().map(|c| c.ends.0.min(c.ends.1)).fold(f64::INFINITY, f64::min);
        // Returns how far a cell may exceed the computed values.
        let excess = |c: &Cell| (c.greatest() - most).max(fewest - c.least());
        let (worst, reach) = cells
            .iter()
            .map(excess)
            .enumerate()
            .fold((0, f64::NEG_INFINITY), |best, this| if this.1 > best.1 { this } else { best });
        if reach <= TIGHTNESS * (most - fewest) || cells.len() >= MOST_CELLS {
            return RatioRange::of(cells.iter().flat_map(|c| [c.greatest(), c.least()]));
        }
        let Cell { low, high, ends, .. } = cells[worst];
        let middle = 0.5 * (low + high);
        let value = f(middle);
        cells[worst] = cell(low, middle, (ends.0, value));
        cells.push(cell(middle, high, (value, ends.1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_function_and_little_more() {
        for shift in [-2.0, -0.3, 0.0, 0.7, 5.0] {
            let f = |x: f64| (3.0 * x + shift).sin() + 0.2 * x;
            let found = range(-1.0, 2.0, f, |_, _| 9.0);
            let values: Vec<f64> = (0..=30_000).map(|i| f(-1.0 + f64::from(i) * 1e-4)).collect();
            let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
            let spread = high - low;
            assert!(found.bound() >= low.abs().max(high.abs()) && found.bound() <= low.abs().max(high.abs()) + 0.021 * spread);
            assert!(found.half_range() <= 0.521 * spread && (found.centre() - 0.5 * (low + high)).abs() <= 0.011 * spread);
            let back = range(-1.0, 2.0, |x| -f(x), |_, _| 9.0);
            assert_eq!((back.bound(), back.half_range(), back.centre()), (found.bound(), found.half_range(), -found.centre()));
        }
    }

    #[test]
    fn a_constant_is_its_own_range_and_nonsense_has_none() {
        let still = range(0.0, 1.0, |_| 0.0, |_, _| 0.0);
        assert_eq!((still.bound(), still.centre()), (0.0, 0.0));
        for curvature in [f64::NAN, f64::INFINITY] {
            assert_eq!(range(0.0, 1.0, |x| x, |_, _| curvature).bound(), f64::INFINITY);
        }
        assert_eq!(range(0.0, 1.0, |_| f64::NAN, |_, _| 0.0).bound(), f64::INFINITY);
        // At one end of the interval or between two cells alone.
        for hole in [0.0, 0.5, 1.0] {
            let found = range(0.0, 1.0, |x| if x == hole { f64::NAN } else { x }, |_, _| 0.0);
            assert_eq!((found.bound(), found.half_range(), found.centre()), (f64::INFINITY, f64::INFINITY, 0.0), "{hole}");
        }
    }
}
