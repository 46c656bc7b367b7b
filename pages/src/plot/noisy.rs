//! Intervals with and without the noise.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, at, framed, left_out, picture};
use super::label::Labels;
use super::measure::TICK;
use crate::precision::by_width;
use crate::table::{Cell, Column, Table};
use crate::text::percent;

const MAX_PARAMETERS: usize = 40;
const ROW: f64 = 40.0;
/// Greatest width of a label.
const LABEL: f64 = 150.0;
/// The share of the variance below which the noise of a parameter needs no picture.
const SMALL: f64 = 0.05;
/// Half the length of the caps at an interval's ends.
const CAP: f64 = 6.0;

/// One parameter's interval and its spread without noise.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyInterval {
    /// The parameter.
    pub name: String,
    /// The mean, toward which the interval without noise is shrunk; `NaN` if unknown.
    pub mean: f64,
    /// Both ends of the reported central 90% interval; `NaN` if unknown.
    pub ends: [f64; 2],
    /// The fraction of the variance due to the noise, if known.
    pub noise_share: Option<f64>,
}

impl NoisyInterval {
    /// Half the length of a normal distribution's central 90% interval, in sds.
    pub const TO_90: f64 = 1.645;

    /// Returns both ends of the interval without noise: the reported one, shrunk toward the mean as the sd is. A law with heavy tails has a
    /// large sd for its interval, so that the mean and a multiple of the sd without noise could reach beyond the reported ends.
    fn without_noise(&self) -> Option<[f64; 2]> {
        let shrunk = self.noise_share.map(|share| (1.0 - share).sqrt()).filter(|shrunk| shrunk.is_finite())?;
        let ends = self.ends.map(|end| self.mean + shrunk * (end - self.mean));
        ends.iter().all(|end| end.is_finite()).then_some(ends)
    }

    /// Returns a value's distance from the mean in lengths of the sd that the reported interval has, on which all rows have one scale.
    fn in_sds(&self, x: f64) -> f64 {
        let sd = (self.ends[1] - self.ends[0]) / (2.0 * Self::TO_90);
        let distance = (x - self.mean) / sd;
        if sd > 0.0 && distance.is_finite() { distance } else { f64::NAN }
    }

    /// Formats a figure of the row with the digits of its interval.
    fn words(&self, x: f64) -> String {
        by_width(x, self.ends[1] - self.ends[0]).replace('-', "−")
    }

    /// Returns everything drawn of the row, on the common scale.
    fn drawn(&self) -> impl Iterator<Item = f64> {
        self.ends.into_iter().chain(self.without_noise().into_iter().flatten()).map(|x| self.in_sds(x))
    }
}

/// Formats a fraction of a variance as a percentage; a small positive fraction is not shown as 0%.
#[must_use]
pub fn format_noise_share(share: f64) -> String {
    crate::text::share(share)
}

/// Plots the reported intervals and, inside them, the intervals without noise. All rows have one scale, posterior sds around the mean, so
/// that lengths compare within a row and between rows. At most 40 are drawn; the table holds all of them.
#[must_use]
pub fn noisy_intervals(id: &str, title: &str, scale: &str, rows: &[NoisyInterval]) -> Markup {
    let is_small = |row: &NoisyInterval| row.noise_share.is_some_and(|share| share < SMALL);
    if !rows.is_empty() && rows.iter().all(is_small) {
        return html! { p.note { (title) ": not drawn, since the noise contributes less than " (percent(SMALL)) " to the variance of every parameter." } };
    }
    let drawn = &rows[..rows.len().min(MAX_PARAMETERS)];
    let labels = Labels::new(drawn.iter().map(|row| row.name.as_str()), LABEL, TICK);
    let left = (labels.width + 10.0).max(40.0);
    let field = Field { left, bottom: 4.0, right: 74.0, ..Field::new(480.0, drawn.len() as f64 * ROW + 12.0) };
    let more = left_out(MAX_PARAMETERS, rows.len(), "parameters");
    let description = format!(
        "For each parameter, on the {scale}, the reported 90% interval, which includes the noise (a line with caps), and inside it the \
         interval without noise (a thick bar): the reported one, shrunk toward the mean as the sd is without the noise. All rows have one scale, \
         posterior sds around the mean: bars of one length have one share of noise. The numbers below a line are its ends; the number at its end \
         is the fraction of the variance due to the noise, “unknown” where the releases do not determine it.{more}"
    );
    let axis = Axis::around(drawn.iter().flat_map(NoisyInterval::drawn));
    let content = html! { @for (index, row) in drawn.iter().enumerate() { (drawn_row(row, index, (&field, &axis), &labels)) } };
    let legend = html! { ul.legend {
        li { svg viewBox="0 0 24 8" aria-hidden="true" { path.with-noise d="M2 4h20M2 0v8M22 0v8" {} } " 90% interval with noise" }
        li { svg viewBox="0 0 24 8" aria-hidden="true" { path.without-noise d="M5 4h14" {} } " without noise" }
        li { svg viewBox="0 0 24 8" aria-hidden="true" { circle class="mean" cx="12" cy="4" r="3" {} } " mean" }
    } };
    let drawing = picture(id, "chart intervals", (field.width, field.height), (title, &description), &content);
    framed(id, (title, &description), &drawing, &legend, &numbers(rows))
}

fn drawn_row(row: &NoisyInterval, index: usize, (field, axis): (&Field, &Axis), labels: &Labels) -> Markup {
    let y = field.top + (index as f64 + 0.4) * ROW;
    let inner = row.without_noise();
    let place = |x: f64| axis.share(row.in_sds(x)).map(|share| field.x(share));
    let ends = row.ends.map(place);
    html! {
        (labels.draw(index, "tick", (field.left - 6.0, y), "end"))
        @if let [Some(low), Some(high)] = ends {
            path.with-noise d={ "M" (at(low)) " " (at(y)) "H" (at(high)) "M" (at(low)) " " (at(y - CAP)) "v" (at(2.0 * CAP))
                "M" (at(high)) " " (at(y - CAP)) "v" (at(2.0 * CAP)) } {}
            text.tick x=(at(low)) y=(at(y + CAP + 11.0)) { (row.words(row.ends[0])) }
            text.tick x=(at(high)) y=(at(y + CAP + 11.0)) text-anchor="end" { (row.words(row.ends[1])) }
        }
        @if let Some([Some(low), Some(high)]) = inner.map(|ends| ends.map(place)) {
            path.without-noise d={ "M" (at(low)) " " (at(y)) "H" (at(high)) } {}
        }
        @if let (Some(mean), [Some(_), Some(_)]) = (place(row.mean), ends) { circle.mean cx=(at(mean)) cy=(at(y)) r="3" {} }
        text.tick x=(at(field.x(1.0) + 4.0)) y=(at(y + 3.5)) { (row.noise_share.map_or_else(|| "unknown".to_owned(), |share| format!("noise {}", format_noise_share(share)))) }
    }
}

/// Builds the table of every parameter's two intervals.
fn numbers(rows: &[NoisyInterval]) -> Markup {
    let inner = |row: &NoisyInterval, end: usize| row.without_noise().map(|ends| row.words(ends[end]));
    let cell = |text: Option<String>| Cell::number(text.unwrap_or_else(|| "unknown".to_owned()));
    let columns: [Column<'_, NoisyInterval>; 6] = [
        ("parameter", &|row| Cell::name(&row.name)),
        ("5%", &|row| Cell::number(row.words(row.ends[0]))),
        ("95%", &|row| Cell::number(row.words(row.ends[1]))),
        ("lower end without noise", &|row| cell(inner(row, 0))),
        ("upper end without noise", &|row| cell(inner(row, 1))),
        ("noise share of the variance", &|row| cell(row.noise_share.map(format_noise_share))),
    ];
    Table::new("90% intervals with and without the noise", rows, &columns).html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ends: [f64; 2], noise_share: Option<f64>) -> NoisyInterval {
        NoisyInterval { name: name.to_owned(), mean: 0.5 * (ends[0] + ends[1]), ends, noise_share }
    }

    /// Returns the horizontal ends of the first path of a class in the picture.
    fn reach(text: &str, class: &str) -> Option<(f64, f64)> {
        let picture = text.split("</svg>").next()?;
        let (low, rest) = picture.split_once(&format!("<path class=\"{class}\" d=\"M"))?.1.split_once(' ')?;
        let high = rest.split_once('H')?.1.split(['M', '"']).next()?;
        Some((low.parse().ok()?, high.parse().ok()?))
    }

    #[test]
    fn the_inner_interval_has_the_length_without_noise() {
        // An sd of 1 with the noise and of 1/2 without: half the length around the same centre.
        let text = noisy_intervals("n", "t", "scale of the priors", &[row("dose", [-1.645, 1.645], Some(0.75))]).into_string();
        let ((a, b), (c, d)) =
            (reach(&text, "with-noise").unwrap_or_default(), reach(&text, "without-noise").unwrap_or_default());
        assert!(b > a && ((d - c) / (b - a) - 0.5).abs() < 0.01 && (a + b - c - d).abs() < 0.3, "{a} {b} {c} {d}");
        assert_eq!([0.0, 0.009, 0.01, 0.764].map(format_noise_share), ["0%", "<1%", "1%", "76%"]);
        for part in ["noise 75%", ">75%<", "90% interval with noise", "<title id=\"n-title\">", "<desc id=\"n-desc\">"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    /// No interval without noise reaches beyond the reported one: of a law with heavy tails or a skewed one neither.
    #[test]
    fn the_inner_interval_is_within_the_reported_one() {
        for mean in [-0.9, 0.0, 0.7] {
            for share in [0.0, 1e-4, 0.3, 1.0] {
                let skewed = NoisyInterval { mean, ..row("dose", [-1.0, 1.0], Some(share)) };
                let [low, high] = skewed.without_noise().unwrap_or([f64::NAN; 2]);
                assert!(low >= -1.0 && high <= 1.0 && low <= high, "{mean} {share}: {low} {high}");
            }
        }
    }

    /// A parameter whose values are a thousand times as large has bars of the same length for the same share of noise.
    #[test]
    fn all_rows_have_one_scale() {
        let wide = row("dose", [-1.645, 1.645], Some(0.75));
        let large = row("cost", [4e3 - 2_000.0, 4e3 + 2_000.0], Some(0.75));
        let text = noisy_intervals("n", "t", "s", &[wide, large]).into_string();
        let picture = text.split("</svg>").next().unwrap_or_default();
        let reached = |class: &str| -> Vec<(f64, f64)> {
            let opening = format!("<path class=\"{class}\"");
            picture.split(&opening).skip(1).filter_map(|rest| reach(&format!("{opening}{rest}"), class)).collect()
        };
        for class in ["with-noise", "without-noise"] {
            let ends = reached(class);
            assert_eq!(ends.len(), 2, "{picture}");
            assert!((ends[0].0 - ends[1].0).abs() < 0.3 && (ends[0].1 - ends[1].1).abs() < 0.3, "{class}: {ends:?}");
        }
        assert!(picture.contains(">2000<") && picture.contains(">−1.65<"), "{picture}");
    }

    /// Shares below 5% need no picture, and one above it needs the picture of all.
    #[test]
    fn noise_that_is_small_everywhere_is_not_drawn() {
        let small = row("dose", [0.0, 1.0], Some(0.049));
        let text = noisy_intervals("n", "Noise", "s", &[small.clone(), small.clone()]).into_string();
        assert!(!text.contains("<svg") && text.contains("less than 5%"), "{text}");
        for more in [row("age", [0.0, 1.0], Some(0.5)), row("age", [0.0, 1.0], None)] {
            assert!(noisy_intervals("n", "Noise", "s", &[small.clone(), more]).into_string().contains("<svg"));
        }
    }

    #[test]
    fn unknown_intervals_are_named_and_not_drawn() {
        let text = noisy_intervals("n", "t", "s", &[row("<i>", [0.0, 1.0], None)]).into_string();
        assert!(text.contains("unknown") && reach(&text, "with-noise").is_some(), "{text}");
        assert!(reach(&text, "without-noise").is_none() && !text.contains("<i>"), "{text}");
        let odd = [f64::NAN, f64::INFINITY];
        for rows in [
            vec![],
            vec![row("a", odd, Some(f64::NAN))],
            vec![row("a", [0.0; 2], Some(0.5))],
            vec![row("x", [1.0, 2.0], Some(0.9)); 900],
            vec![row("x", [1.0, 2.0], Some(1.5))],
        ] {
            let text = noisy_intervals("n", "t", "s", &rows).into_string();
            assert!(!text.contains("NaN") && text.matches("<path class=\"with-noise\"").count() <= MAX_PARAMETERS + 1, "{text}");
            // The table holds all of them.
            assert_eq!(text.matches("scope=\"row\"").count(), rows.len());
        }
    }
}
