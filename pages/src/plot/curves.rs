//! Survival curves with bands.

use conclave_common::text;
use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, Figure, SERIES, class_of, figure, left_out, samples};
use super::path::Path;
use crate::precision::by_width;
use crate::table::{Cell, Column, Table};
use crate::text::plain;

/// A point of a curve: the place, and the 5% quantile, the median and the 95% quantile there.
pub type CurvePoint = (f64, [f64; 3]);

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its points, in the order of their places.
    pub points: Vec<CurvePoint>,
}

/// Formats a time of the grid; a dash if it is not finite.
fn time(at: f64) -> String {
    if at.is_finite() { text::figure(at) } else { "-".to_owned() }
}

/// Plots probabilities over `scale`: the median of each curve, and the band between its quantiles. At most eight are drawn.
#[must_use]
pub fn curves(id: &str, title: &str, scale: &str, rows: &[Curve]) -> Markup {
    let drawn = &rows[..rows.len().min(SERIES)];
    let field = Field::new(560.0, 260.0);
    let x = Axis::between(0.0, drawn.iter().flat_map(|curve| &curve.points).map(|(at, _)| *at).fold(0.0, f64::max));
    let y = Axis::between(0.0, 1.0);
    let layers = html! {
        @for (series, curve) in drawn.iter().enumerate() {
            path class={ "band " (class_of(series)) } d=(band(&curve.points, &field, &x, &y)) {}
        }
        @for (series, curve) in drawn.iter().enumerate() {
            path class={ "line " (class_of(series)) } d=(line(curve.points.iter().map(|(at, of)| (*at, of[1])), &field, &x, &y)) {}
        }
    };
    let legend: Vec<String> = drawn.iter().map(|curve| plain(&curve.name, 24)).collect();
    let all: Vec<(&str, &CurvePoint)> =
        drawn.iter().flat_map(|curve| curve.points.iter().map(|point| (curve.name.as_str(), point))).collect();
    let of_curve = |of: &[f64; 3], at: usize| Cell::number(by_width(of[at], of[2] - of[0]));
    let columns: [Column<'_, (&str, &CurvePoint)>; 5] = [
        ("curve", &|(name, _)| Cell::name(name)),
        ("time", &|(_, (at, _))| Cell::number(time(*at))),
        ("5%", &|(_, (_, of))| of_curve(of, 0)),
        ("median", &|(_, (_, of))| of_curve(of, 1)),
        ("95%", &|(_, (_, of))| of_curve(of, 2)),
    ];
    figure(&Figure {
        id,
        class: "chart",
        field,
        title,
        description: &format!(
            "For each curve the posterior's median (line) and the band from its 5% to its 95% quantile at each time.{}",
            left_out(SERIES, rows.len(), "curves")
        ),
        x: (&x, scale),
        y: (Some(&y), "probability"),
        layers,
        legend: &[],
        // A single curve is named too.
        note: html! { (samples(&legend, "line")) p.note { "Line: the posterior’s median. Band: from its 5% to its 95% quantile." } },
        numbers: Table::new("Quantiles by time", &all, &columns).html(),
    })
}

fn line(points: impl Iterator<Item = (f64, f64)>, field: &Field, x: &Axis, y: &Axis) -> String {
    let mut path = Path::default();
    for (at, value) in points {
        match (x.share(at), y.share(value)) {
            (Some(across), Some(up)) => path.to(field.x(across), field.y(up)),
            _ => path.lift(),
        }
    }
    path.finish()
}

/// Returns the outline of a band: its upper side, and back along its lower side.
fn band(points: &[CurvePoint], field: &Field, x: &Axis, y: &Axis) -> String {
    let upper = points.iter().map(|(at, of)| (*at, of[2]));
    let lower = points.iter().rev().map(|(at, of)| (*at, of[0]));
    line(upper.chain(lower), field, x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_curves_make_a_plot() {
        let curve = |name: &str, points: Vec<CurvePoint>| Curve { name: name.to_owned(), points };
        let odd = vec![(f64::NAN, [f64::NAN; 3]), (1.0, [f64::INFINITY, 0.5, f64::MIN])];
        let falling: Vec<CurvePoint> = (0..40).map(|i| f64::from(i) / 40.0).map(|t| (t, [0.9 - t, 1.0 - t, 1.1 - t])).collect();
        for rows in [vec![], vec![curve("<i>", odd)], vec![curve("a", falling.clone()); 12]] {
            let text = curves("c", "Survival", "years", &rows).into_string();
            assert!(!text.contains("NaN") && !text.contains("<i>") && text.len() < 120_000, "{} {text}", text.len());
        }
        let text = curves("c", "Survival", "years", &[curve("a", falling)]).into_string();
        // One line in the picture, and one in the legend, which names a single curve too.
        assert_eq!(text.matches("class=\"line").count(), 2, "{text}");
        assert!(text.contains("</svg> a</li>") && text.contains("Band: from its 5%"), "{text}");
    }
}
