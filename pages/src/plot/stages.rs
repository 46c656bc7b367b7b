//! Estimates after each stage of a run, as small multiples: one picture of the budget and one for each parameter.

use maud::{Markup, html};

use super::axis::Axis;
use super::figure::{Field, at, framed, left_out, picture};
use super::label::Labels;
use super::measure::{TICK, width};
use crate::precision::by_sd;
use crate::table::{Cell, Table};
use crate::text::{percent, plain_name, share};

const MAX_PARAMETERS: usize = 12;
const SIZE: (f64, f64) = (210.0, 124.0);
/// Font size of a heading.
const HEADING: f64 = 11.0;

/// A stage and the estimates after it.
#[derive(Debug, Clone, PartialEq)]
pub struct StageEstimate {
    /// The stage's share of the budget.
    pub share: f64,
    /// True if the draws are conditioned on the stage's release.
    pub last: bool,
    /// The mean of each parameter after the stage, and the mean minus and plus one sd; `NaN` if unknown.
    pub after: Vec<[f64; 3]>,
}

/// Several stages of one run.
#[derive(Debug, Clone, Copy)]
pub struct Stages<'a> {
    /// Distinguishes the pictures' elements from those of other plots on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The scale of the parameters.
    pub scale: &'a str,
    /// The parameters' names.
    pub names: &'a [String],
    /// The stages in order.
    pub stages: &'a [StageEstimate],
}

/// Plots the shares of the budget and the mean ± sd of at most twelve parameters by stage; the table holds all of them.
#[must_use]
pub fn stages(of: &Stages<'_>) -> Markup {
    // A parameter of each party and their sd have no estimate before the last stage's draws.
    let is_estimated =
        |index: &usize| of.stages.iter().any(|stage| stage.after.get(*index).is_some_and(|[mean, ..]| mean.is_finite()));
    let estimated: Vec<usize> = (0..of.names.len()).filter(is_estimated).collect();
    let more = left_out(MAX_PARAMETERS, estimated.len(), "parameters");
    let description = format!(
        "Each stage's share of the budget, and for each parameter, on the {}, the mean after each stage (dot) with one sd to either side \
         (line). The draws are conditioned on the releases of stages with a filled dot. Each parameter has its own scale.{more}",
        of.scale
    );
    let pictures = html! {
        div.multiples {
            (shares(of))
            @for index in estimated.iter().take(MAX_PARAMETERS) { (parameter(of, *index)) }
        }
    };
    let legend = html! { ul.legend {
        li { svg viewBox="0 0 24 8" aria-hidden="true" { path class="interval s0" d="M4 4h16" {} } " mean ± sd after the stage" }
        li { svg viewBox="0 0 24 8" aria-hidden="true" { circle class="dot s0" cx="12" cy="4" r="3.5" {} } " stage used by the draws" }
        li { svg viewBox="0 0 24 8" aria-hidden="true" { circle class="hollow s0" cx="12" cy="4" r="3" {} } " earlier stage that located the posterior" }
    } };
    framed(of.id, ("Estimates after each stage", &description), &pictures, &legend, &numbers(of))
}

fn column(field: &Field, index: usize, stages: usize) -> f64 {
    field.x((index as f64 + 0.5) / stages.max(1) as f64)
}

/// Draws the frame of one picture: its heading in lines, the stage numbers, and the ticks of an axis.
fn frame(field: &Field, heading: &Labels, stages: usize, ticks: &[(f64, String)]) -> Markup {
    let (left, right, bottom) = (field.x(0.0), field.x(1.0), field.y(0.0));
    html! {
        (heading.draw(0, "label", (4.0, 2.0 + 0.5 * heading.height(0)), "start"))
        @for (share, text) in ticks {
            path.grid d={ "M" (at(left)) " " (at(field.y(*share))) "H" (at(right)) } {}
            text.tick x=(at(left - 4.0)) y=(at(field.y(*share) + 3.5)) text-anchor="end" { (text) }
        }
        @for index in 0..stages {
            text.tick x=(at(column(field, index, stages))) y=(at(bottom + 13.0)) text-anchor="middle" { (index + 1) }
        }
        path.axis d={ "M" (at(left)) " " (at(field.y(1.0))) "V" (at(bottom)) "H" (at(right)) } {}
    }
}

/// Returns the field below a heading, which may have several lines.
fn field(heading: &Labels, ticks: &[(f64, String)]) -> Field {
    let more = heading.height(0) - heading.height(1);
    let left = ticks.iter().map(|(_, text)| width(text, TICK) + 6.0).fold(40.0, f64::max);
    Field { left, bottom: 18.0, top: 20.0 + more, right: 6.0, ..Field::new(SIZE.0, SIZE.1 + more) }
}

/// Divides a heading into lines.
fn heading(text: &str) -> Labels {
    Labels::new([text], SIZE.0 - 8.0, HEADING)
}

fn ticks(axis: &Axis) -> Vec<(f64, String)> {
    axis.ticks(4).into_iter().filter_map(|(value, text)| Some((axis.share(value)?, text))).collect()
}

/// Draws the shares of the budget as bars.
fn shares(of: &Stages<'_>) -> Markup {
    let heading = heading("share of the budget");
    let greatest = of.stages.iter().map(|stage| stage.share).filter(|share| share.is_finite()).fold(0.0, f64::max);
    let axis = Axis { least: 0.0, greatest: if greatest > 0.0 { greatest } else { 1.0 } };
    let ticks: Vec<(f64, String)> = [0.0, 0.5, 1.0].map(|share| (share, percent(share * axis.greatest))).into();
    let (field, count) = (field(&heading, &ticks), of.stages.len());
    let width = 0.6 * (field.x(1.0) - field.x(0.0)) / count.max(1) as f64;
    let words: Vec<String> = of.stages.iter().map(|stage| share(stage.share)).collect();
    let content = html! {
        (frame(&field, &heading, count, &ticks))
        @for (index, stage) in of.stages.iter().enumerate() {
            @let top = field.y(axis.share(stage.share).unwrap_or(0.0));
            @let middle = column(&field, index, count);
            rect.bar-spent x=(at(middle - 0.5 * width)) y=(at(top)) width=(at(width)) height=(at(field.y(0.0) - top)) {}
        }
    };
    let description = format!("Shares of the budget by stage, in order: {}.", words.join(", "));
    picture(&format!("{}-shares", of.id), "chart", SIZE, ("Share of the budget by stage", &description), &content)
}

/// Draws one parameter's mean ± sd.
fn parameter(of: &Stages<'_>, index: usize) -> Markup {
    let heading = heading(&of.names[index]);
    let (count, name) = (of.stages.len(), plain_name(&of.names[index]));
    let after = || of.stages.iter().map(|stage| stage.after.get(index).copied().unwrap_or([f64::NAN; 3]));
    let axis = Axis::around(after().flatten());
    let ticks = ticks(&axis);
    let field = field(&heading, &ticks);
    let content = html! {
        (frame(&field, &heading, count, &ticks))
        @for (at_stage, (stage, [mean, low, high])) in of.stages.iter().zip(after()).enumerate() {
            @let x = column(&field, at_stage, count);
            @if let [Some(mean), Some(low), Some(high)] = [mean, low, high].map(|value| axis.share(value)) {
                path class="interval s0" d={ "M" (at(x)) " " (at(field.y(low))) "V" (at(field.y(high))) } {}
                circle class=(if stage.last { "dot s0" } else { "hollow s0" }) cx=(at(x)) cy=(at(field.y(mean))) r=(if stage.last { "4" } else { "3" }) {}
            }
        }
    };
    let words: Vec<String> = after().map(spread).collect();
    let description = format!("Mean ± sd after each stage, in order: {}.", words.join(", "));
    let title = format!("{name} after each stage");
    picture(&format!("{}-{index}", of.id), "chart", (field.width, field.height), (&title, &description), &content)
}

/// Formats a mean and half the distance between the ends around it.
fn spread([mean, low, high]: [f64; 3]) -> String {
    let half = 0.5 * high - 0.5 * low;
    if mean.is_finite() && half.is_finite() { format!("{} ± {}", by_sd(mean, half), by_sd(half, half)) } else { "-".to_owned() }
}

/// Builds the table of every parameter after every stage.
fn numbers(of: &Stages<'_>) -> Markup {
    let mut table = Table::new("Mean ± sd after each stage", of.names, &[("parameter", &|name| Cell::name(name))]);
    for (number, stage) in (1..).zip(of.stages) {
        let used = if stage.last { ", used by the draws" } else { "" };
        let after = (0..of.names.len()).map(|index| stage.after.get(index).copied().map_or_else(|| "-".to_owned(), spread));
        table.push(format!("stage {number}, {} of the budget{used}", share(stage.share)), after.map(Cell::Number));
    }
    table.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(names: &[&str], stages: &[StageEstimate]) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        super::stages(&Stages { id: "s", scale: "scale of the priors", names: &names, stages }).into_string()
    }

    #[test]
    fn each_stage_has_its_share_and_estimates() {
        let stage = |share, sd: f64, last| StageEstimate { share, last, after: vec![[0.3, 0.3 - sd, 0.3 + sd]] };
        let text = drawn(&["dose"], &[stage(0.05, 0.8, false), stage(0.15, 0.4, false), stage(0.8, 0.1, true)]);
        for part in ["5%, 15%, 80%", "0.30 ± 0.80, 0.30 ± 0.40, 0.30 ± 0.10", "stage 3, 80% of the budget, used by the draws"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        // The bars are proportional, and only the last of three dots is filled.
        let heights: Vec<f64> = text.split("height=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
        assert!(
            (heights[2] / heights[0] - 16.0).abs() < 0.5 && (heights[2] / heights[1] - 16.0 / 3.0).abs() < 0.1,
            "{heights:?}"
        );
        let pictures = text.split("ul class=\"legend\"").next().unwrap_or_default();
        assert_eq!((pictures.matches("circle class=\"hollow").count(), pictures.matches("circle class=\"dot").count()), (2, 1));
        assert_eq!(text.matches("role=\"img\"").count(), text.matches("<desc id=").count());
    }

    #[test]
    fn any_stages_make_pictures() {
        let odd = StageEstimate { share: f64::NAN, last: true, after: vec![[f64::NAN, f64::INFINITY, f64::MAX], [1.0; 3]] };
        // Only `b` has an estimate.
        assert_eq!(drawn(&["<i>", "b", "without"], std::slice::from_ref(&odd)).matches("role=\"img\"").count(), 2);
        for stages in [vec![], vec![odd.clone()], vec![odd; 16]] {
            let text = drawn(&["<i>", "b", "without"], &stages);
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("<i>"), "{text}");
        }
        let names: Vec<String> = (0..40).map(|i| format!("x{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = drawn(&names, &[StageEstimate { share: 1.0, last: true, after: vec![[1.0, 0.5, 1.5]; 40] }]);
        assert_eq!(text.matches("role=\"img\"").count(), 1 + MAX_PARAMETERS);
        assert!(text.contains("The first 12 of 40") && text.matches("<th scope=\"row\">").count() == 40, "{text}");
    }
}
