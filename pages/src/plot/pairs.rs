//! Pairs of parameters: a bounded number of points for each pair, and their correlations.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{at, class_of, legend_of, picture};
use super::label::Labels;
use super::path::Path;
use crate::table::{Cell, Table};
use crate::text::plain_name;

/// Maximum number of parameters in a legible plot.
pub const MAX_PARAMETERS: usize = 8;
/// Number of points in a panel, over all chains.
const POINTS: usize = 500;
/// Number of chains drawn, each in its own colour; the points of more would hide each other.
const APART: usize = super::figure::SERIES;
/// Width and height of a panel, and its distance from the next.
const PANEL: f64 = 112.0;
const GAP: f64 = 8.0;
/// Room for the numbers at an axis, left of a panel and below it.
const LEFT: f64 = 36.0;
const BELOW: f64 = 18.0;
/// Room right of the last panel's gap, and above the first panel: half a number reaches beyond its panel.
const RIGHT: f64 = 14.0;
const ABOVE: f64 = 8.0;
/// Font size of a name.
const NAME: f64 = 11.0;

/// The content of a pairs plot.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// Distinguishes the plot from others on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The parameters.
    pub names: &'a [String],
    /// The scale, in a few words.
    pub scale: &'a str,
    /// Draws, `[parameter][chain][draw]`.
    pub draws: &'a [Vec<&'a [f64]>],
}

/// Plots each pair of parameters. If there are more than [`MAX_PARAMETERS`], those with the strongest correlations are drawn.
#[must_use]
pub fn pairs(of: &Pairs<'_>) -> Markup {
    let Pairs { id, names, draws, .. } = *of;
    let correlations = Correlations::of(draws);
    let shown = correlations.strongest(names.len().min(draws.len()));
    if shown.len() < 2 {
        return html! {};
    }
    let across = (shown.len() - 1) as f64 * PANEL;
    let labels = Labels::new(shown.iter().map(|at| names[*at].as_str()), PANEL - GAP, NAME);
    let size = (across + LEFT + labels.highest() + RIGHT, across + BELOW + labels.highest() + ABOVE);
    let chains = draws[0].len().min(APART);
    let left_out = draws.len() - shown.len();
    let description = format!(
        "Draws of each pair of {} parameters{}, at most {POINTS} points per panel, on the {}. A slanted cloud indicates correlated \
         parameters, two clouds indicate two modes.",
        shown.len(),
        if left_out == 0 { String::new() } else { format!(" ({left_out} others with weaker correlations are omitted)") },
        if of.scale.is_empty() { "scale of the draws" } else { of.scale },
    );
    let content = html! {
        @for row in 1..shown.len() { @for column in 0..row {
            (panel(of, (shown[column], shown[row]), (column, row), &labels, correlations.at(shown[column], shown[row])))
        } }
    };
    let legend: Vec<String> = (1..=chains).map(|chain| format!("chain {chain}")).collect();
    html! {
        figure.plot.wide id=(id) {
            figcaption { "Pairs of parameters" }
            div.scroll tabindex="0" role="region" aria-label="Pairs of parameters" {
                (picture(id, if shown.len() > 5 { "chart pairs many" } else { "chart pairs" }, size, ("Pairs of parameters", &description), &content))
            }
            (legend_of(&legend, "swatch"))
            details { summary { "Numbers of this plot" } p { (description) } (numbers(names, &shown, &correlations)) }
        }
    }
}

/// Draws one panel: axes at the edges only, points by chain, the correlation in a corner.
fn panel(of: &Pairs<'_>, (i, j): (usize, usize), (column, row): (usize, usize), labels: &Labels, correlation: f64) -> Markup {
    let margin = LEFT + labels.highest();
    let left = margin + column as f64 * PANEL;
    let top = ABOVE + (row - 1) as f64 * PANEL;
    let side = PANEL - GAP;
    let axes = [i, j].map(|parameter| Axis::around(of.draws[parameter].iter().flat_map(|chain| chain.iter().copied())));
    let chains = of.draws[i].len().min(APART);
    let points: Vec<String> = (0..chains).map(|chain| cloud(of, (i, j), chain, &axes, (left, top, side))).collect();
    let (lowest, leftmost) = (row + 1 == labels.len(), column == 0);
    let tick = |axis: &Axis, wanted: usize| -> Vec<(f64, String)> {
        axis.ticks(wanted).into_iter().filter_map(|(value, text)| Some((axis.share(value)?, text))).collect()
    };
    html! {
        rect.axis x=(at(left)) y=(at(top)) width=(at(side)) height=(at(side)) {}
        @for (series, d) in points.iter().enumerate() { path class={ "dots " (class_of(series)) } d=(d) {} }
        @if lowest {
            @for (share, text) in tick(&axes[0], 3) {
                text.tick x=(at(left + share * side)) y=(at(top + side + 12.0)) text-anchor="middle" { (text) }
            }
            (labels.draw(column, "label", (left + side / 2.0, top + side + BELOW + labels.height(column) / 2.0), "middle"))
        }
        @if leftmost {
            @for (share, text) in tick(&axes[1], 4) {
                text.tick x=(at(left - 3.0)) y=(at(top + side - share * side + 3.5)) text-anchor="end" { (text) }
            }
            g transform={ "translate(" (at(labels.highest() / 2.0 + 1.0)) " " (at(top + side / 2.0)) ") rotate(-90)" } {
                (labels.draw(row, "label", (0.0, 0.0), "middle"))
            }
        }
        @if correlation.is_finite() {
            text.corner x=(at(left + side - 4.0)) y=(at(top + 12.0)) text-anchor="end" { "r = " (signed(correlation)) }
        }
    }
}

/// Draws evenly spaced draws of one chain as points.
fn cloud(of: &Pairs<'_>, (i, j): (usize, usize), chain: usize, axes: &[Axis; 2], (left, top, side): (f64, f64, f64)) -> String {
    let (xs, ys) = (of.draws[i][chain], of.draws[j].get(chain).copied().unwrap_or_default());
    let draws = xs.len().min(ys.len());
    let every = draws.div_ceil((POINTS / of.draws[i].len().clamp(1, APART)).max(1)).max(1);
    let mut path = Path::default();
    for draw in (0..draws).step_by(every) {
        let finite = xs[draw].is_finite() && ys[draw].is_finite();
        if let (true, Some(x), Some(y)) = (finite, axes[0].share(xs[draw]), axes[1].share(ys[draw])) {
            path.dot(left + x * side, top + side - y * side);
        }
    }
    path.finish()
}

/// The correlations of each pair of parameters over all draws of all chains.
struct Correlations {
    rows: Vec<Vec<f64>>,
}

impl Correlations {
    fn of(draws: &[Vec<&[f64]>]) -> Self {
        // Long runs are thinned: using every draw would take time quadratic in the parameters, for invisible digits.
        let total: usize = draws.first().map_or(0, |chains| chains.iter().map(|chain| chain.len()).sum());
        let every = (total * draws.len().pow(2) / 40_000_000).max(1);
        let standard: Vec<Vec<f64>> = draws
            .iter()
            .map(|chains| standardised(chains.iter().flat_map(|chain| chain.iter().copied().step_by(every)).collect()))
            .collect();
        let product = |a: &[f64], b: &[f64]| {
            let terms = a.iter().zip(b).map(|(x, y)| x * y);
            terms.sum::<f64>() / (a.len().min(b.len()) as f64 - 1.0)
        };
        let rows = (0..standard.len()).map(|j| (0..j).map(|i| product(&standard[i], &standard[j])).collect()).collect();
        Self { rows }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        let (low, high) = (i.min(j), i.max(j));
        self.rows.get(high).and_then(|row| row.get(low)).copied().unwrap_or(f64::NAN)
    }

    /// Returns at most [`MAX_PARAMETERS`] of `count` parameters in their order: those with the strongest correlation to another.
    fn strongest(&self, count: usize) -> Vec<usize> {
        let strength =
            |i: usize| (0..count).filter(|j| *j != i).map(|j| self.at(i, j).abs()).filter(|r| r.is_finite()).fold(0.0, f64::max);
        let mut order: Vec<(usize, f64)> = (0..count).map(|i| (i, strength(i))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut shown: Vec<usize> = order.into_iter().take(MAX_PARAMETERS).map(|(i, _)| i).collect();
        shown.sort_unstable();
        shown
    }
}

/// Standardises values; all `NaN` if they have no spread or one is `NaN`.
fn standardised(mut values: Vec<f64>) -> Vec<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0)).sqrt();
    values.iter_mut().for_each(|x| *x = (*x - mean) / sd);
    values
}

fn numbers(names: &[String], shown: &[usize], correlations: &Correlations) -> Markup {
    let cell = |i: usize, j: usize| match correlations.at(i, j) {
        _ if i == j => "1".to_owned(),
        r if r.is_finite() => signed(r),
        _ => "-".to_owned(),
    };
    let mut table = Table::new("Correlations of the draws", shown, &[("parameter", &|i| Cell::name(&names[*i]))]);
    shown.iter().for_each(|j| table.push(plain_name(&names[*j]), shown.iter().map(|i| Cell::number(cell(*i, *j)))));
    table.html()
}

/// Formats a correlation with two decimals, a true minus sign and no negative zero.
fn signed(r: f64) -> String {
    let text = format!("{r:.2}").replace('-', "−");
    if text == "−0.00" { "0.00".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::measure::{TICK, width};
    use super::*;

    fn text(draws: &[Vec<&[f64]>], name: &str) -> String {
        let names: Vec<String> = (0..draws.len()).map(|i| format!("{name}{i}")).collect();
        pairs(&Pairs { id: "p", names: &names, scale: "scale of the priors", draws }).into_string()
    }

    #[test]
    fn correlations_are_shown_and_the_strongest_are_drawn() {
        let line: Vec<f64> = (0..100).map(f64::from).collect();
        let down: Vec<f64> = line.iter().map(|x| 5.0 - 2.0 * x).collect();
        let page = text(&[vec![&line], vec![&down]], "a");
        assert!(page.contains("r = −1.00") && page.contains(">1</td>"), "{page}");
        let noise: Vec<Vec<f64>> = (0..20).map(|k| (0..100).map(|i| f64::from((i * (k + 3) * 37) % 101)).collect()).collect();
        let mut draws: Vec<Vec<&[f64]>> = noise.iter().map(|x| vec![x.as_slice()]).collect();
        draws[7] = vec![&line];
        draws[15] = vec![&down];
        let shown = Correlations::of(&draws).strongest(20);
        assert!(shown.len() == MAX_PARAMETERS && shown.contains(&7) && shown.contains(&15), "{shown:?}");
        assert!(text(&draws, "a").contains("12 others"));
    }

    /// Numbers at the ends of axes are within the picture: above the first panel, and right of the last one. A sweep over ranges places a
    /// number at each end.
    #[test]
    fn the_numbers_of_the_axes_are_within_the_picture() {
        for (percent, unit) in (80..=120).flat_map(|percent| [(percent, 0.01), (percent, 0.0001)]) {
            let line: Vec<f64> = (0..100).map(|i| unit * f64::from(percent) * f64::from(i) / 99.0).collect();
            let page = text(&[vec![&line], vec![&line]], "a");
            let attribute = |of: &str, name: &str| -> Option<f64> {
                of.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
            };
            let size = page.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0.0);
            for tick in page.split("<text class=\"tick\"").skip(1) {
                let [x, y] = ["x", "y"].map(|name| attribute(tick, name).unwrap_or(f64::NAN));
                let number = tick.split(['>', '<']).nth(1).unwrap_or_default();
                let reach = if tick.contains("\"middle\"") { x + 0.5 * width(number, TICK) } else { x };
                assert!(y >= TICK && reach <= size, "{percent}: {number} at {x}, {y} of {size}");
            }
        }
    }

    #[test]
    fn any_draws_make_a_plot_of_bounded_size() {
        let long: Vec<f64> = (0..50_000).map(|i| f64::from(i).sin()).collect();
        for draws in [&[][..], &[1.0], &[3.0; 9], &[f64::NAN; 9], &[f64::MAX, f64::MIN, f64::INFINITY], &long] {
            for chains in [1, 4, 40] {
                let page = text(&vec![vec![draws; chains]; 20], "<script>");
                assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains("<script>"), "{page}");
                assert!(page.len() < 250_000, "{}", page.len());
            }
        }
        assert_eq!((text(&[], "a"), text(&[vec![&long]], "a")), (String::new(), String::new()));
    }
}
