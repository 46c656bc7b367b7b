//! Axes: their range, ticks at round numbers, and the position of a value.

/// Largest magnitude; larger values are drawn at the edge.
const GREATEST: f64 = 1e300;

/// A linear axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// Lower end.
    pub least: f64,
    /// Upper end, above `least`.
    pub greatest: f64,
}

impl Axis {
    /// Returns the axis over the range of the finite `values`, with a margin of one twentieth on either side. Around a single
    /// value it is as wide as the value's magnitude.
    #[must_use]
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|x| x.is_finite()).map(|x| x.clamp(-GREATEST, GREATEST));
        let (least, greatest) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        if least > greatest {
            return Self { least: 0.0, greatest: 1.0 };
        }
        let span = greatest - least;
        // On a narrower range the ticks would be indistinguishable.
        if span <= least.abs().max(greatest.abs()) * 1e-9 {
            let half = if least == 0.0 { 1.0 } else { 0.5 * least.abs() };
            return Self { least: least - half, greatest: greatest + half };
        }
        Self { least: least - 0.05 * span, greatest: greatest + 0.05 * span }
    }

    /// Returns the axis between two values in either order.
    #[must_use]
    pub fn between(a: f64, b: f64) -> Self {
        let around = Self::around([a, b]);
        if a.is_finite() && b.is_finite() && around.least < a.min(b) && a != b {
            return Self { least: a.min(b).max(-GREATEST), greatest: a.max(b).min(GREATEST) };
        }
        around
    }

    /// Returns the position of a value between 0 at the lower end and 1 at the upper end, clamped; `None` for NaN.
    #[must_use]
    pub fn share(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        // Halves avoid an overflow of the difference.
        let half = 0.5 * self.greatest - 0.5 * self.least;
        Some(((0.5 * value - 0.5 * self.least) / half).clamp(0.0, 1.0))
    }

    /// Returns about `wanted` round values within the axis, with their labels: multiples of 1, 2 or 5 times a power of ten
    /// (Heckbert 1990, "Nice numbers for graph labels").
    #[must_use]
    pub fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let half = 0.5 * self.greatest - 0.5 * self.least;
        let rough = 2.0 * (half / wanted.max(1) as f64);
        let exponent = libm::log10(rough).floor();
        let power = libm::pow(10.0, exponent);
        let step = [1.0, 2.0, 5.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999).unwrap_or(10.0 * power);
        let (first, last) = ((self.least / step).ceil(), (self.greatest / step).floor());
        let usable = step.is_finite() && step > 0.0 && first.is_finite() && last - first <= 4.0 * wanted as f64;
        if !usable {
            return Vec::new();
        }
        let count = (last - first).max(-1.0) as usize;
        let values = (0..=count).map(|i| first + i as f64).filter(|n| *n <= last).map(|n| n * step);
        values.map(|value| (value, label(value, step))).collect()
    }
}

/// Formats a tick's label with the decimals required by its step.
fn label(value: f64, step: f64) -> String {
    let decimals = (-(libm::log10(step) + 1e-9).floor()).max(0.0);
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = if value.abs() >= 1e6 || decimals > 5.0 {
        let digits = (libm::log10(value.abs() / step) + 1e-9).floor().clamp(0.0, 6.0) as usize;
        format!("{value:.digits$e}")
    } else {
        format!("{value:.*}", decimals as usize)
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, wanted: usize) -> Vec<String> {
        axis.ticks(wanted).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(labels(Axis { least: 0.0, greatest: 10_000.0 }, 5), ["0", "2000", "4000", "6000", "8000", "10000"]);
        assert_eq!(labels(Axis { least: -0.62, greatest: -0.38 }, 5), ["−0.60", "−0.55", "−0.50", "−0.45", "−0.40"]);
        assert_eq!(labels(Axis { least: 1e-9, greatest: 3.1e-9 }, 3), ["1e−9", "2e−9", "3e−9"]);
        assert_eq!(labels(Axis { least: 0.0, greatest: 4e7 }, 4), ["0", "1e7", "2e7", "3e7", "4e7"]);
        for axis in [Axis::around([1e-300]), Axis::around([1e300, -1e300]), Axis::around([5.0, 5.0 + 1e-12])] {
            let ticks = axis.ticks(5);
            assert!(ticks.len() < 25 && ticks.iter().all(|(x, _)| axis.share(*x).is_some()), "{axis:?} {ticks:?}");
        }
    }

    #[test]
    fn any_values_make_a_valid_axis() {
        let unit = Axis { least: 0.0, greatest: 1.0 };
        assert_eq!([Axis::around([]), Axis::around([f64::NAN, f64::INFINITY])], [unit, unit]);
        assert_eq!(Axis::around([3.0, 3.0]), Axis { least: 1.5, greatest: 4.5 });
        assert_eq!(Axis::around([0.0]), Axis { least: -1.0, greatest: 1.0 });
        assert_eq!(Axis::between(2.0, 0.0), Axis { least: 0.0, greatest: 2.0 });
        let widest = Axis::around([f64::MAX, f64::MIN]);
        assert!(widest.least.is_finite() && widest.share(0.0).is_some_and(|s| (s - 0.5).abs() < 1e-9));
        assert_eq!((unit.share(f64::NAN), unit.share(7.0), unit.share(f64::NEG_INFINITY)), (None, Some(1.0), Some(0.0)));
    }
}
