//! Adequacy of any run's answer, and results of runs that infer from few releases or from a surrogate fitted to released ratios: the
//! share of noise in each interval, the estimates after each stage, or the reasons why there is no answer. All are built from the
//! run's result object.

use maud::{Markup, html};
use serde_json::Value;

use crate::checks::in_words;
use crate::object::{rows, text};
use crate::plot::{NoisyInterval, StageEstimate, Stages, format_noise_share, noisy_intervals, stages};
use crate::precision::{of_row, rough};
use crate::table::{Cell, Column, Table};

/// Returns true if the result has an answer. Results of earlier versions state it for runs that infer from a release only.
#[must_use]
pub fn is_adequate(result: &Value) -> bool {
    result["adequacy"]["adequate"] != false
}

/// Returns the object with the rows of the posterior: the result itself, or the part of a result that holds those of an answer that is
/// not adequate.
#[must_use]
pub fn figures(result: &Value) -> &Value {
    if result["inadequate"].is_object() { &result["inadequate"] } else { result }
}

/// Returns a section of a result: at its top, or among the figures of an answer that is not adequate.
#[must_use]
pub fn section<'a>(result: &'a Value, key: &str) -> &'a Value {
    let apart = &result["inadequate"][key];
    if apart.is_null() { &result[key] } else { apart }
}

/// Returns true for a run that infers from few releases, whose intervals contain their noise.
#[must_use]
pub fn is_from_releases(result: &Value) -> bool {
    result["conditional_on"] == "noisy_release"
}

/// Returns the remedies for an answer that cannot be relied on, as the end of a sentence.
#[must_use]
pub fn remedies(result: &Value) -> &'static str {
    match is_from_releases(result) {
        true => "request a larger epsilon, more records, narrower bounds or fewer predictors",
        false => {
            "request more draws if a budget remains (`conclave extend`), or a larger epsilon; `conclave plan` shows the effective draws that a \
             budget allows"
        }
    }
}

/// Returns the table of the checks of an answer that is not adequate, in words; nothing if it is.
#[must_use]
pub fn failed_checks(result: &Value) -> Markup {
    if is_adequate(result) {
        return Markup::default();
    }
    let is_check = |check: &Value| check["limit"].is_number();
    let checks: Vec<_> = result["adequacy"].as_object().into_iter().flatten().filter(|(_, check)| is_check(check)).collect();
    if checks.is_empty() {
        return Markup::default();
    }
    let columns: [Column<'_, (&String, &Value)>; 4] = [
        ("check", &|(name, _)| Cell::name(in_words(name))),
        ("value", &|(_, check)| known(&check["value"], rough)),
        ("at most", &|(_, check)| Cell::figure(&check["limit"], rough)),
        ("result", &|(_, check)| match figure(&check["value"]) <= figure(&check["limit"]) {
            true => Cell::markup(html! { span.ok { "✓ passed" } }),
            false => Cell::markup(html! { span.bad { "! failed" } }),
        }),
    ];
    Table::new("Checks of the answer", &checks, &columns).html()
}

/// Returns the columns of the noise in the posterior's table, for a run whose intervals contain that of a release, and of the estimand of a
/// weighted fit.
pub fn noise_columns(result: &Value) -> &'static [Column<'static, Value>] {
    const NOISE: [Column<'static, Value>; 3] = [
        ("sd without noise", &|row| known(&row["sd_data"], |x| of_row(row, x))),
        ("noise share", &|row| known(&row["noise_share"], format_noise_share)),
        ("estimand", &|row| Cell::name(text(row, "estimand"))),
    ];
    match (is_from_releases(result), result["weighted"].is_object()) {
        (false, false) => &[],
        (false, true) => &NOISE[2..],
        (true, false) => &NOISE[..2],
        (true, true) => &NOISE,
    }
}

/// Returns a cell with a figure, or the word for its absence.
fn known(value: &Value, show: impl Fn(f64) -> String) -> Cell {
    if value.is_number() { Cell::figure(value, show) } else { Cell::number("unknown") }
}

/// Returns a sentence that explains the columns of [`noise_columns`]; empty without those columns.
#[must_use]
pub fn noise_note(result: &Value) -> &'static str {
    if is_from_releases(result) { " “Noise share” is the fraction of the variance that is due to the noise." } else { "" }
}

/// Plots the intervals of an adequate answer with and without the noise, for at most `limit` parameters; nothing for another run.
#[must_use]
pub fn noise_plot(result: &Value, scale: &str, limit: usize) -> Markup {
    if !is_from_releases(result) || !is_adequate(result) {
        return Markup::default();
    }
    let interval = |row: &Value| NoisyInterval {
        name: text(row, "name").to_owned(),
        mean: figure(&row["mean"]),
        ends: [figure(&row["q5"]), figure(&row["q95"])],
        noise_share: row["noise_share"].as_f64(),
    };
    let drawn: Vec<NoisyInterval> = rows(result, "posterior").iter().take(limit).map(interval).collect();
    noisy_intervals("noise", "Intervals with and without the noise", scale, &drawn)
}

/// Plots the intervals of the surrogate, a quadratic fitted to released ratios, with and without the noise; nothing without a
/// fit.
#[must_use]
pub fn surrogate_noise_plot(result: &Value, scale: &str, limit: usize) -> Markup {
    let fitted = |row: &Value| {
        let name = row["name"].as_str()?;
        let of = &result["surrogate"]["parameters"][name];
        let (mean, sd, noise) = (of["mean"].as_f64()?, of["sd"].as_f64()?, of["noise_sd"].as_f64()?);
        let share = (noise / sd) * (noise / sd);
        Some(NoisyInterval {
            name: name.to_owned(),
            mean,
            ends: [mean - NoisyInterval::TO_90 * sd, mean + NoisyInterval::TO_90 * sd],
            noise_share: (share <= 1.0).then_some(share),
        })
    };
    let drawn: Vec<NoisyInterval> = rows(result, "posterior").iter().take(limit).filter_map(fitted).collect();
    if drawn.is_empty() {
        return Markup::default();
    }
    noisy_intervals("fitted-noise", "Intervals of the surrogate with and without the noise", scale, &drawn)
}

/// Plots the estimates after each stage of an adequate answer; nothing for another run. `logarithms` is true for a parameter
/// whose sd is that of its logarithm.
#[must_use]
pub fn stage_plots(result: &Value, logarithms: &[bool], scale: &str, limit: usize) -> Markup {
    let releases = rows(result, "releases");
    if releases.is_empty() || !is_adequate(result) {
        return Markup::default();
    }
    let names: Vec<String> = rows(result, "posterior").iter().take(limit).map(|row| text(row, "name").to_owned()).collect();
    let around = |stage: &Value, parameter: usize| {
        let (mean, sd) = (figure(&stage["mean"][parameter]), figure(&stage["sd"][parameter]));
        match logarithms.get(parameter) {
            Some(true) => [mean, mean * libm::exp(-sd), mean * libm::exp(sd)],
            _ => [mean, mean - sd, mean + sd],
        }
    };
    let stage = |stage: &Value| StageEstimate {
        share: figure(&stage["share"]),
        last: stage["last"] == true,
        after: (0..names.len()).map(|parameter| around(stage, parameter)).collect(),
    };
    let estimates: Vec<StageEstimate> = releases.iter().map(stage).collect();
    stages(&Stages { id: "stages", scale, names: &names, stages: &estimates })
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(adequate: bool) -> Value {
        let row = |name: &str, share: Option<f64>| json!({"name": name, "mean": 0.5, "sd": 0.2, "q5": 0.2, "q95": 0.8, "noise_share": share, "sd_data": share.map(|s| 0.2 * (1.0 - s).sqrt())});
        let stage = |share: f64, sd: f64, last: bool| json!({"theta": [0.0, 1.0], "share": share, "mean": [0.5, 2.0], "sd": [sd, sd], "last": last});
        json!({
            "posterior": [row("dose", Some(0.76)), row("<i>sigma", None)],
            "releases": [stage(0.25, 0.9, false), stage(0.75, 0.2, true)],
            "conditional_on": "noisy_release",
            "adequacy": {"adequate": adequate, "mcse_to_sd": {"value": null, "limit": 0.4}, "rho_h": {"value": 1.5, "limit": 1.0}, "reasons": ["the <b>information is noise"]},
        })
    }

    #[test]
    fn an_answer_shows_the_noise_and_each_stage() {
        let of = result(true);
        let text = noise_plot(&of, "scale of the priors", 80).into_string();
        assert!(text.contains("noise 76%") && text.contains("unknown") && !text.contains("<i>"), "{text}");
        let text = stage_plots(&of, &[false, true], "scale of the priors", 80).into_string();
        // The second sd is a logarithm's: from 2 e^-.2 to 2 e^.2.
        for part in ["25%, 75%", "0.50 ± 0.90", "2.00 ± 0.40"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let mut weighted = of.clone();
        weighted["weighted"] = json!({"clip": 3.0});
        weighted["posterior"][0]["estimand"] = json!("weighted");
        let last = noise_columns(&weighted).last().map(|(name, cell)| (*name, cell(&weighted["posterior"][0])));
        assert_eq!(last, Some(("estimand", Cell::name("weighted"))));
        let cells: Vec<Cell> = noise_columns(&of).iter().map(|(_, cell)| cell(&of["posterior"][1])).collect();
        assert_eq!((cells.len(), &cells[0]), (2, &Cell::Number("unknown".to_owned())));
    }

    #[test]
    fn an_inadequate_answer_shows_its_checks_in_words_and_no_interval() {
        let mut of = result(false);
        let text = failed_checks(&of).into_string();
        for part in ["noise of the released information", "1.5", "failed", "Monte Carlo error of a mean", "unknown"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("rho_h") && !text.contains("mcse_to_sd"), "{text}");
        assert!(noise_plot(&of, "s", 80).into_string().is_empty() && stage_plots(&of, &[], "s", 80).into_string().is_empty());
        of["conditional_on"] = Value::Null;
        assert!(noise_columns(&of).is_empty() && noise_note(&of).is_empty() && noise_plot(&of, "s", 80).into_string().is_empty());
        assert!(failed_checks(&result(true)).into_string().is_empty());
    }

    #[test]
    fn the_figures_are_where_the_verdict_puts_them() {
        let of = json!({"posterior": [], "inadequate": {"posterior": [{"name": "a"}]}});
        assert_eq!(figures(&of)["posterior"][0]["name"], "a");
        assert_eq!(rows(figures(&result(true)), "posterior").len(), 2);
    }

    #[test]
    fn other_runs_have_no_noise_plots() {
        let mut of = json!({"posterior": [{"name": "a", "mean": 0.5, "q5": 0.1, "q95": 0.9}]});
        assert!(noise_columns(&of).is_empty());
        for part in
            [noise_plot(&of, "s", 80), stage_plots(&of, &[], "s", 80), failed_checks(&of), surrogate_noise_plot(&of, "s", 80)]
        {
            assert!(part.into_string().is_empty());
        }
        // A fit with 36% of its variance from the noise; a suppressed fit; and an object of another shape.
        of["surrogate"] = json!({"parameters": {"a": {"mean": 0.4, "sd": 0.1, "noise_sd": 0.06}}});
        assert!(surrogate_noise_plot(&of, "s", 80).into_string().contains("noise 36%"));
        of["surrogate"] = json!({"parameters": {}, "suppressed": "few"});
        assert!(surrogate_noise_plot(&of, "s", 80).into_string().is_empty());
        let odd = json!({"conditional_on": "noisy_release", "adequacy": 7, "releases": [3], "posterior": [{}, 1]});
        assert!(
            !stage_plots(&odd, &[true], "s", 80).into_string().contains("NaN")
                && !noise_plot(&odd, "s", 80).into_string().contains("NaN")
        );
    }
}
