//! The axis of a forest plot, linear or logarithmic.

use super::rows::Forest;
use crate::plot::axis::Axis;
use crate::plot::measure::width;

/// The axis with its range, in logarithms for ratios.
pub(super) struct Scale {
    axis: Axis,
    is_logarithmic: bool,
}

impl Scale {
    /// Returns the scale of all figures and of the neutral value.
    pub(super) fn of(forest: &Forest<'_>) -> Self {
        let is_logarithmic = forest.quantity.is_ratio();
        let transformed = |x: f64| if is_logarithmic { libm::log(x) } else { x };
        let figures = forest.estimates().flat_map(|estimate| [estimate.ends[0], estimate.median, estimate.ends[1]]);
        let axis = Axis::around(figures.chain(forest.quantity.neutral).map(transformed));
        Self { axis, is_logarithmic }
    }

    /// Returns the position of a value between 0 and 1; `None` for NaN and for no ratio.
    pub(super) fn share(&self, x: f64) -> Option<f64> {
        self.axis.share(if self.is_logarithmic { libm::log(x) } else { x })
    }

    /// Returns ticks at round values with their labels, which do not overlap on an axis that is `length` long.
    pub(super) fn ticks(&self, length: f64, size: f64) -> Vec<(f64, String)> {
        if !self.is_logarithmic {
            let wanted = (length / 60.0).max(2.0) as usize;
            let ticks = self.axis.ticks(wanted);
            return ticks.into_iter().filter_map(|(value, text)| Some((self.axis.share(value)?, text))).collect();
        }
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for (value, text) in self.candidates() {
            let share = self.axis.share(libm::log(value)).filter(|share| *share > 0.0 && *share < 1.0);
            let Some(share) = share else { continue };
            let room = |other: &(f64, String)| 0.5 * (width(&text, size) + width(&other.1, size)) + 8.0;
            if ticks.iter().all(|other| (other.0 - share).abs() * length >= room(other)) {
                ticks.push((share, text));
            }
        }
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks
    }

    /// Returns values for ticks, the most important first: 1, powers of 10, their multiples by 2 and 5, and round values between.
    fn candidates(&self) -> Vec<(f64, String)> {
        let Axis { least, greatest } = self.axis;
        let decades = (libm::floor(least / std::f64::consts::LN_10), libm::ceil(greatest / std::f64::consts::LN_10));
        let mut found = vec![(1.0, "1".to_owned())];
        if decades.1 - decades.0 > 24.0 {
            return found;
        }
        let powers: Vec<i32> = (decades.0 as i32..=decades.1 as i32).collect();
        for multiple in [1.0, 2.0, 5.0] {
            // Powers that are nearest to 1 first.
            let mut near = powers.clone();
            near.sort_by_key(|power| power.abs());
            found.extend(near.into_iter().map(|power| written(multiple, power)));
        }
        let between = Axis { least: libm::exp(least), greatest: libm::exp(greatest) };
        found.extend(
            between.ticks(8).into_iter().filter(|(value, _)| *value > 0.0).map(|(value, text)| (value, without_zeros(&text))),
        );
        found
    }
}

/// Returns a multiple of a power of ten with its label.
fn written(multiple: f64, power: i32) -> (f64, String) {
    let value = multiple * libm::pow(10.0, f64::from(power));
    let text = match power {
        0..=5 => format!("{value:.0}"),
        -4..0 => format!("{value:.*}", power.unsigned_abs() as usize),
        _ => format!("{multiple}e{power}"),
    };
    (value, text)
}

fn without_zeros(text: &str) -> String {
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}
