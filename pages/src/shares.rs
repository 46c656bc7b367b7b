//! A bar of the parts of a whole, with their shares and a caption, as text, Markdown and HTML.

use conclave_common::text::one_line;
use maud::{Markup, html};

use crate::text::{plain, plain_name};

/// Width of the bar on a terminal, in characters.
const CELLS: usize = 40;
/// Width and height of the drawn bar.
const SIZE: (f64, f64) = (600.0, 22.0);
/// Width of the narrowest drawn part, which is seen at any size of the page.
const LEAST: f64 = 5.0;
/// Distance between the lines of a hatched part.
const HATCH: f64 = 6.0;

/// The meaning of a part, which determines its fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Spent.
    Spent,
    /// Spent by the subject of the page.
    Own,
    /// Held for others.
    Held,
    /// Planned.
    Planned,
    /// Remaining.
    Left,
}

impl Fill {
    fn class(self) -> &'static str {
        match self {
            Self::Spent => "bar-spent",
            Self::Own => "bar-own",
            Self::Held => "bar-held",
            Self::Planned => "bar-planned",
            Self::Left => "bar-left",
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Spent => '#',
            Self::Own => '*',
            Self::Held => '/',
            Self::Planned => '=',
            Self::Left => '.',
        }
    }
}

/// A part of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its fill.
    pub fill: Fill,
    /// Its name.
    pub name: String,
    /// Its size, in the unit of the whole.
    pub units: u64,
}

/// A whole and its parts, in the order of the bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// Distinguishes the bar from other plots on the page: letters, digits and `-`.
    pub id: &'static str,
    /// The title, for screen readers and Markdown.
    pub title: String,
    /// The parts; their units sum to the whole.
    pub parts: Vec<Part>,
    /// A sentence below the bar.
    pub caption: String,
}

/// Splits `steps` in proportion to `units`, so that the result sums to `steps`: largest remainders are rounded up.
#[must_use]
pub fn apportion(units: &[u64], steps: u64) -> Vec<u64> {
    let whole: u128 = units.iter().map(|u| u128::from(*u)).sum();
    if whole == 0 {
        return vec![0; units.len()];
    }
    let exact = |u: &u64| u128::from(*u) * u128::from(steps);
    let mut shares: Vec<u64> = units.iter().map(|u| u64::try_from(exact(u) / whole).unwrap_or(steps)).collect();
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(exact(&units[*i]) % whole));
    let missing = steps.saturating_sub(shares.iter().sum());
    order.into_iter().cycle().take(usize::try_from(missing).unwrap_or(0)).for_each(|i| shares[i] += 1);
    shares
}

impl Shares {
    /// Returns each part's share in tenths of a percent; they sum to 1000.
    #[must_use]
    pub fn tenths(&self) -> Vec<u64> {
        self.split(1000)
    }

    fn split(&self, steps: u64) -> Vec<u64> {
        apportion(&self.parts.iter().map(|part| part.units).collect::<Vec<_>>(), steps)
    }

    /// Returns each part's name with its share. A part that is not empty is never shown as nothing.
    fn legend(&self) -> Vec<(&Part, String)> {
        let percent = |part: &Part, tenths: u64| match (part.units, tenths) {
            (1.., 0) => "<0.1%".to_owned(),
            _ => format!("{}.{}%", tenths / 10, tenths % 10),
        };
        self.parts.iter().zip(self.tenths()).map(|(part, tenths)| (part, percent(part, tenths))).collect()
    }

    /// Returns the shown share of the part with this fill.
    #[must_use]
    pub fn percent_of(&self, fill: Fill) -> Option<String> {
        self.legend().into_iter().find(|(part, _)| part.fill == fill).map(|(_, percent)| percent)
    }

    /// Returns each part's name with its share, on one line.
    #[must_use]
    pub fn words(&self) -> String {
        let legend = self.legend();
        let words: Vec<String> = legend.iter().map(|(part, percent)| format!("{} {percent}", part.name)).collect();
        one_line(&words.join(", "))
    }

    /// Renders the bar for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let cells = self.split(CELLS as u64);
        let bar: String = self
            .parts
            .iter()
            .zip(cells)
            .map(|(part, n)| part.fill.sign().to_string().repeat(usize::try_from(n).unwrap_or(0)))
            .collect();
        let legend: Vec<String> =
            self.legend().into_iter().map(|(part, percent)| format!("{} {} {percent}", part.fill.sign(), part.name)).collect();
        format!("[{bar}]  {}\n  {}\n", one_line(&legend.join("   ")), one_line(&self.caption))
    }

    /// Returns the fill, the left end and the width of each part that is not empty. A part that would be too narrow to be seen takes its
    /// width from the widest one.
    fn placed(&self) -> Vec<(Fill, f64, f64)> {
        let whole: f64 = self.parts.iter().map(|part| part.units as f64).sum();
        let drawn = self.parts.iter().filter(|part| part.units > 0);
        let mut widths: Vec<(Fill, f64)> = drawn.map(|part| (part.fill, SIZE.0 * part.units as f64 / whole)).collect();
        let missing: f64 = widths.iter().map(|(_, width)| (LEAST - width).max(0.0)).sum();
        widths.iter_mut().for_each(|(_, width)| *width = width.max(LEAST));
        if let Some((_, widest)) = widths.iter_mut().max_by(|a, b| a.1.total_cmp(&b.1)) {
            *widest -= missing;
        }
        let mut x = 0.0;
        let place = |(fill, width): (Fill, f64)| {
            x += width;
            (fill, x - width, width)
        };
        widths.into_iter().map(place).collect()
    }

    /// Renders the bar for a page.
    #[must_use]
    pub fn html(&self) -> Markup {
        let words = self.words();
        let placed = self.placed();
        html! {
            figure.shares id=(self.id) {
                svg class="shares" viewBox={ "0 0 " (SIZE.0) " " (SIZE.1) } preserveAspectRatio="none" role="img" aria-labelledby={ (self.id) "-title" } aria-describedby={ (self.id) "-desc" } {
                    title id={ (self.id) "-title" } { (plain_name(&self.title)) }
                    desc id={ (self.id) "-desc" } { (plain(&words, usize::MAX)) "." }
                    @for (fill, x, width) in placed {
                        rect class=(fill.class()) x=(place(x)) width=(place(width)) height=(SIZE.1) {}
                        @if fill == Fill::Held { path class="bar-hatch" d=(hatch(x, width)) {} }
                    }
                }
                ul.legend {
                    @for (part, percent) in self.legend() {
                        li { svg viewBox="0 0 16 12" aria-hidden="true" {
                            rect class=(part.fill.class()) width="16" height="12" {}
                            @if part.fill == Fill::Held { path class="bar-hatch" d="M1 12L7 0M9 12L15 0" {} }
                        } " " (plain(&part.name, 200)) " " b { (percent) } }
                    }
                }
                figcaption { (plain(&self.caption, 600)) }
            }
        }
    }
}

/// Formats a coordinate.
fn place(x: f64) -> String {
    format!("{:.2}", x.max(0.0))
}

/// Draws slanted lines within a part.
fn hatch(x: f64, width: f64) -> String {
    let end = x + width;
    let starts = std::iter::successors(Some(x + 1.0), |at| Some(at + HATCH)).take_while(|at| at + HATCH <= end).take(200);
    starts.map(|at| format!("M{} {}L{} 0", place(at), SIZE.1, place(at + HATCH))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(units: [u64; 4]) -> Shares {
        let fills = [(Fill::Spent, "spent"), (Fill::Held, "held"), (Fill::Planned, "this job"), (Fill::Left, "left")];
        let part = |((fill, name), units): ((Fill, &str), u64)| Part { fill, name: name.to_owned(), units };
        Shares {
            id: "b",
            title: "Budget <b>".to_owned(),
            parts: fills.into_iter().zip(units).map(part).collect(),
            caption: "room for <b>".to_owned(),
        }
    }

    /// Many divisions of a whole: the shown shares sum to 100%, and each is within a tenth of the exact one.
    #[test]
    fn shown_shares_sum_to_the_whole() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> (20 + state % 40)
        };
        for _ in 0..2000 {
            let units = [next(), next(), next(), next() + 1];
            let tenths = shares(units).tenths();
            assert_eq!(tenths.iter().sum::<u64>(), 1000, "{units:?}");
            let whole: f64 = units.iter().map(|u| *u as f64).sum();
            for (unit, tenth) in units.iter().zip(&tenths) {
                assert!((*tenth as f64 - 1000.0 * *unit as f64 / whole).abs() < 1.0, "{units:?}: {tenths:?}");
            }
        }
        assert_eq!(apportion(&[0, 0], 10), [0, 0]);
        assert_eq!(apportion(&[u64::MAX, u64::MAX, u64::MAX], 1000), [334, 333, 333]);
    }

    #[test]
    fn a_bar_has_its_figures_as_text_everywhere() {
        let bar = shares([30, 10, 20, 40]);
        let text = bar.text();
        assert!(text.starts_with("[############////========................]  # spent 30.0%   / held 10.0%"), "{text}");
        assert!(text.ends_with("\n  room for <b>\n"), "{text}");
        assert_eq!(bar.words(), "spent 30.0%, held 10.0%, this job 20.0%, left 40.0%");
        let page = bar.html().into_string();
        for part in ["x=\"180.00\" width=\"60.00\"", "bar-hatch", "spent <b>30.0%</b>", "room for &lt;b&gt;", "Budget &lt;b&gt;"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("style=") && !page.contains("url("), "{page}");
        let tiny = shares([1, 0, 0, 1_000_000]);
        assert_eq!(tiny.words(), "spent <0.1%, held 0.0%, this job 0.0%, left 100.0%");
        let page = tiny.html().into_string();
        assert!(!page.contains("bar-planned\" x"));
        // A part that is not empty is seen, and the bar keeps its length.
        for part in ["bar-spent\" x=\"0.00\" width=\"5.00\"", "bar-left\" x=\"5.00\" width=\"595.00\""] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
