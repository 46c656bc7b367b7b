//! Small pictures beside text: budget bars and sparklines.

use conclave_common::epsilon;
use maud::{Markup, html};

use super::axis::Axis;
use super::figure::picture;
use super::path::Path;
use crate::precision::rough;
use crate::text::plain_name;

/// Part of a budget below which the rest buys no release worth naming.
const NOTHING: f64 = 1e-3;

/// The state of a party's budget.
#[derive(Debug, Clone, Copy)]
pub struct Budget<'a> {
    /// Distinguishes the bar from other plots on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The party.
    pub party: &'a str,
    /// Epsilon spent.
    pub spent: f64,
    /// Epsilon expected to be spent at the end, if it can be predicted: at least `spent`.
    pub projected: Option<f64>,
    /// The total budget, above 0.
    pub limit: f64,
    /// True if the job has ended, and so spends no more.
    pub has_ended: bool,
}

/// Draws a budget as a bar of the spent, projected and remaining parts, with its numbers as text.
#[must_use]
pub fn budget(of: &Budget<'_>) -> Markup {
    let party = plain_name(of.party);
    let share = |x: f64| Axis::between(0.0, of.limit).share(x).unwrap_or(0.0);
    let spent = share(of.spent);
    let projected = of.projected.filter(|p| p.is_finite()).map_or(spent, |p| share(p).max(spent));
    let (words, rest) = (spending(of), rest(of, projected > spent));
    let whole = |x: f64| super::figure::at(300.0 * x);
    let content = html! {
        rect class="bar-left" width="300" height="14" rx="2" {}
        @if projected > spent { rect class="bar-projected" width=(whole(projected)) height="14" rx="2" {} }
        rect class="bar-spent" width=(whole(spent)) height="14" rx="2" {}
    };
    html! {
        div.budget {
            p { b { (crate::text::name(of.party)) } }
            (picture(of.id, "bar", (300.0, 14.0), (&format!("Privacy budget of {party}"), &format!("{words}; {rest}.")), &content))
            p.words { (words) "; " (rest) }
        }
    }
}

/// Returns true if the rest of a budget buys no release: a budget is rarely used to the last digit.
fn is_used_up(of: &Budget<'_>) -> bool {
    let shown: f64 = epsilon::spent(of.spent).parse().unwrap_or(of.spent);
    of.limit - of.spent < NOTHING * of.limit || shown >= of.limit
}

/// States the spent part. A budget that is used up has no percentage, which would be below 100% of the shown figure.
fn spending(of: &Budget<'_>) -> String {
    let (spent, limit) = (epsilon::spent(of.spent), of.limit);
    match of.spent {
        0.0 if of.has_ended => format!("nothing spent of epsilon {limit}"),
        _ if is_used_up(of) => format!("epsilon {spent} of {limit} spent"),
        _ => format!("epsilon {spent} of {limit} spent ({})", share_of(of.spent / limit)),
    }
}

/// States the rest, which a job that has ended can no longer spend. `grows` is true if the bar has a projected part.
fn rest(of: &Budget<'_>, grows: bool) -> String {
    let remaining = epsilon::room((of.limit - of.spent).max(0.0));
    match of.projected.filter(|p| p.is_finite() && grows) {
        _ if of.has_ended && of.spent == 0.0 => "the job has ended".to_owned(),
        _ if of.has_ended && is_used_up(of) => "nothing usable was left".to_owned(),
        _ if of.has_ended => "the job has ended and did not spend the rest".to_owned(),
        Some(p) => format!("{remaining} remaining; {} expected at the end", epsilon::spent(p)),
        None if is_used_up(of) => "nothing usable remains".to_owned(),
        None => format!("{remaining} remaining"),
    }
}

/// Formats a fraction in tenths of a percent, rounded down: a nearly exhausted budget is not shown as 100%.
fn share_of(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", (1000.0 * share).floor() / 10.0) } else { "-".to_owned() }
}

/// Draws a sparkline without axes and with its last value marked; values that are not finite are gaps.
#[must_use]
pub fn spark(id: &str, title: &str, values: &[f64]) -> Markup {
    let (width, height) = (120.0, 24.0);
    let y = Axis::around(values.iter().copied());
    let last = values.len().saturating_sub(1).max(1) as f64;
    let place = |index: usize, share: f64| (2.0 + (width - 6.0) * index as f64 / last, height - 3.0 - (height - 6.0) * share);
    let mut path = Path::default();
    let mut end = None;
    for (index, value) in values.iter().enumerate() {
        match y.share(*value).filter(|_| value.is_finite()) {
            Some(share) => {
                let (x, y) = place(index, share);
                path.to(x, y);
                end = Some((x, y));
            }
            None => path.lift(),
        }
    }
    let content = html! {
        path class="line s0" d=(path.finish()) {}
        @if let Some((x, y)) = end { circle class="dot s0" cx=(super::figure::at(x)) cy=(super::figure::at(y)) r="2.2" {} }
    };
    let finite = || values.iter().copied().filter(|x| x.is_finite());
    let words = match (finite().reduce(f64::min), finite().reduce(f64::max), finite().next_back()) {
        (Some(least), Some(greatest), Some(now)) => {
            format!("{} values from {} to {}, the last {}.", values.len(), rough(least), rough(greatest), rough(now))
        }
        _ => "No values yet.".to_owned(),
    };
    picture(id, "spark", (width, height), (title, &words), &content)
}

/// Draws a sparkline in characters for a terminal, of at most `width` of the last values.
#[must_use]
pub fn spark_text(values: &[f64], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    spark_texts(&[values]).concat()
}

/// Draws several sparklines in characters on a common scale. They are empty if no value is finite.
#[must_use]
pub fn spark_texts(rows: &[&[f64]]) -> Vec<String> {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let finite = || rows.iter().copied().flatten().copied().filter(|x| x.is_finite());
    let (Some(least), Some(greatest)) = (finite().reduce(f64::min), finite().reduce(f64::max)) else {
        return vec![String::new(); rows.len()];
    };
    let axis = Axis::between(least, greatest);
    // Equal values are drawn in the middle.
    let level = |x: f64| if least == greatest { 3 } else { (axis.share(x).unwrap_or(0.0) * 7.999) as usize };
    let one = |row: &&[f64]| row.iter().map(|x| if x.is_finite() { LEVELS[level(*x).min(7)] } else { ' ' }).collect();
    rows.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_states_its_numbers() {
        let of = |spent: f64, projected: Option<f64>, has_ended: bool| {
            budget(&Budget { id: "b", party: "<b>", spent, projected, limit: 3.0, has_ended }).into_string()
        };
        let text = of(1.5, Some(2.25), false);
        for part in
            ["epsilon 1.50 of 3 spent (50.0%)", "1.50 remaining; 2.25 expected at the end", "width=\"150\"", "width=\"225\""]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        // No percentage below 100 stands beside a figure that equals the limit.
        for spent in [2.999_9, 2.996, 3.0] {
            let used = of(spent, None, false);
            assert!(used.contains("epsilon 3.00 of 3 spent; nothing usable remains") && !used.contains('%'), "{used}");
        }
        // Nothing remains for a job that has ended.
        for (spent, words) in [
            (0.0, "nothing spent of epsilon 3; the job has ended"),
            (1.5, "epsilon 1.50 of 3 spent (50.0%); the job has ended and did not spend the rest"),
            (2.999_9, "epsilon 3.00 of 3 spent; nothing usable was left"),
        ] {
            let ended = of(spent, None, true);
            assert!(ended.contains(words) && !ended.contains("remain"), "{words} in {ended}");
        }
        assert!(!text.contains("<b><b>") && text.contains("&lt;b&gt;"));
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let text = of(odd, Some(odd), false);
            assert!(!text.contains("width=\"NaN") && !text.contains("width=\"-"), "{text}");
        }
    }

    #[test]
    fn sparks() {
        assert_eq!(spark_text(&[0.0, 1.0, f64::NAN, 2.0], 9), "▁▄ █");
        assert_eq!(spark_text(&[5.0, 5.0], 9), "▄▄");
        assert_eq!((spark_text(&[], 9), spark_text(&[f64::NAN], 9)), (String::new(), String::new()));
        assert_eq!(spark_text(&[1.0; 50], 9).chars().count(), 9);
        assert_eq!(spark_texts(&[&[0.0, 1.0], &[], &[2.0]]), ["▁▄", "", "█"]);
        assert_eq!(spark_texts(&[&[f64::NAN], &[]]), ["", ""]);
        for values in [&[][..], &[1.0], &[f64::NAN, f64::INFINITY], &[f64::MIN, f64::MAX]] {
            let text = spark("s", "rounds <a second>", values).into_string();
            assert!(!text.contains("NaN") && text.contains("&lt;a second&gt;"), "{text}");
        }
    }
}
