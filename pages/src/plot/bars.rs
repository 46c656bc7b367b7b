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
}

/// Draws a budget as a bar of the spent, projected and remaining parts, with its numbers as text.
#[must_use]
pub fn budget(of: &Budget<'_>) -> Markup {
    let party = plain_name(of.party);
    let share = |x: f64| Axis::between(0.0, of.limit).share(x).unwrap_or(0.0);
    let spent = share(of.spent);
    let projected = of.projected.filter(|p| p.is_finite()).map_or(spent, |p| share(p).max(spent));
    let remaining = (of.limit - of.spent).max(0.0);
    let words = format!("epsilon {} of {} spent ({})", epsilon::spent(of.spent), of.limit, share_of(of.spent / of.limit));
    let rest = match of.projected.filter(|p| p.is_finite() && projected > spent) {
        Some(p) => format!("{} remaining; {} expected at the end", epsilon::room(remaining), epsilon::spent(p)),
        // A budget is rarely used to the last digit.
        None if remaining > 0.0 && remaining < NOTHING * of.limit => "as good as nothing remaining".to_owned(),
        None => format!("{} remaining", epsilon::room(remaining)),
    };
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
        let text = budget(&Budget { id: "b", party: "<b>", spent: 1.5, projected: Some(2.25), limit: 3.0 }).into_string();
        for part in
            ["epsilon 1.50 of 3 spent (50.0%)", "1.50 remaining; 2.25 expected at the end", "width=\"150\"", "width=\"225\""]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        let used = budget(&Budget { id: "b", party: "a", spent: 2.999_9, projected: None, limit: 3.0 }).into_string();
        assert!(used.contains("epsilon 3.00 of 3 spent (99.9%); as good as nothing remaining"), "{used}");
        assert!(!text.contains("<b><b>") && text.contains("&lt;b&gt;"));
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let text = budget(&Budget { id: "b", party: "a", spent: odd, projected: Some(odd), limit: 3.0 }).into_string();
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
