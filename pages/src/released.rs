//! Results of runs that infer from few releases, and of a surrogate fitted to released ratios: the share of noise in each
//! interval, the estimates after each stage, or the reasons why there is no answer. All are built from the run's result object.

use maud::{Markup, html};
use serde_json::Value;

use crate::page::{Tone, notice};
use crate::plot::{NoisyInterval, StageEstimate, Stages, format_noise_share, noisy_intervals, stages};
use crate::table::{Cell, table};
use crate::text::{number, plain};

/// Maximum length of a sentence.
const SENTENCE: usize = 1000;

/// Returns true if the result has an answer. A run that does not infer from a release always has one.
#[must_use]
pub fn is_adequate(result: &Value) -> bool {
    result["adequacy"]["adequate"] != false
}

/// Returns a notice with the reasons why the releases do not suffice for an answer; nothing if they do.
#[must_use]
pub fn inadequacy_notice(result: &Value) -> Markup {
    if is_adequate(result) {
        return Markup::default();
    }
    let adequacy = &result["adequacy"];
    let body = html! {
        p { "No interval is shown because none would be reliable." }
        ul { @for reason in list(&adequacy["reasons"]).iter().filter_map(Value::as_str) { li { (plain(reason, SENTENCE)) } } }
        p {
            "Use a larger epsilon, more records, narrower bounds or fewer predictors. " code { "algorithm = \"penalty\"" }
            " needs no such checks, but an even larger budget. The figures are in the result’s JSON object, under “posterior”."
        }
    };
    let check = |(name, check): (&String, &Value)| {
        let (value, limit) = (check["value"].as_f64()?, check["limit"].as_f64()?);
        let verdict = if value <= limit {
            html! { span.ok { "✓ passed" } }
        } else {
            html! { span.bad { "! failed" } }
        };
        Some(vec![Cell::Name(name.clone()), Cell::Number(number(value)), Cell::Number(number(limit)), Cell::markup(verdict)])
    };
    let checks: Vec<Vec<Cell>> = adequacy.as_object().into_iter().flatten().filter_map(check).collect();
    html! {
        (notice(Tone::Warning, "Not an adequate answer", &body, false))
        @if !checks.is_empty() { (table("Checks of the release", &["check", "value", "at most", "result"], &checks)) }
    }
}

/// Returns the header of the columns of [`noise_cells`]; empty for a run whose intervals contain no noise of a release.
#[must_use]
pub fn noise_header(result: &Value) -> &'static [&'static str] {
    if result["adequacy"].is_null() { &[] } else { &["sd without noise", "noise share"] }
}

/// Returns a sentence that explains the columns of [`noise_header`]; empty without those columns.
#[must_use]
pub fn noise_note(result: &Value) -> &'static str {
    if result["adequacy"].is_null() { "" } else { " “Noise share” is the fraction of the variance that is due to the noise." }
}

/// Returns the cells of a posterior row for the columns of [`noise_header`].
#[must_use]
pub fn noise_cells(result: &Value, row: &Value) -> Vec<Cell> {
    if result["adequacy"].is_null() {
        return Vec::new();
    }
    let cell = |key: &str, show: fn(f64) -> String| match row[key].as_f64() {
        Some(x) => Cell::Exact { value: row[key].to_string(), shown: show(x) },
        None => Cell::Number("unknown".to_owned()),
    };
    vec![cell("sd_data", number), cell("noise_share", format_noise_share)]
}

/// Plots the intervals of an adequate answer with and without the noise, for at most `limit` parameters; nothing for another run.
#[must_use]
pub fn noise_plot(result: &Value, scale: &str, limit: usize) -> Markup {
    if result["adequacy"].is_null() || !is_adequate(result) {
        return Markup::default();
    }
    let interval = |row: &Value| NoisyInterval {
        name: row["name"].as_str().unwrap_or_default().to_owned(),
        mean: figure(&row["mean"]),
        ends: [figure(&row["q5"]), figure(&row["q95"])],
        sd_data: row["sd_data"].as_f64(),
        noise_share: row["noise_share"].as_f64(),
    };
    let rows: Vec<NoisyInterval> = list(&result["posterior"]).iter().take(limit).map(interval).collect();
    noisy_intervals("noise", "Intervals with and without the noise", scale, &rows)
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
            sd_data: (share <= 1.0).then(|| sd * (1.0 - share).sqrt()),
            noise_share: (share <= 1.0).then_some(share),
        })
    };
    let rows: Vec<NoisyInterval> = list(&result["posterior"]).iter().take(limit).filter_map(fitted).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    noisy_intervals("fitted-noise", "Intervals of the surrogate with and without the noise", scale, &rows)
}

/// Plots the estimates after each stage of an adequate answer; nothing for another run. `logarithms` is true for a parameter
/// whose sd is that of its logarithm.
#[must_use]
pub fn stage_plots(result: &Value, logarithms: &[bool], scale: &str, limit: usize) -> Markup {
    let releases = list(&result["releases"]);
    if releases.is_empty() || !is_adequate(result) {
        return Markup::default();
    }
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = list(&result["posterior"]).iter().take(limit).map(name).collect();
    let around = |stage: &Value, parameter: usize| {
        let (mean, sd) = (figure(&stage["mean"][parameter]), figure(&stage["sd"][parameter]));
        match logarithms.get(parameter) {
            Some(true) => [mean, mean * (-sd).exp(), mean * sd.exp()],
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

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
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
            "adequacy": {"adequate": adequate, "rho_h": {"value": 1.5, "limit": 1.0}, "reasons": ["the <b>information is noise"]},
        })
    }

    #[test]
    fn an_answer_shows_the_noise_and_each_stage() {
        let of = result(true);
        let text = noise_plot(&of, "scale of the priors", 80).into_string();
        assert!(text.contains("noise 76%") && text.contains("unknown") && !text.contains("<i>"), "{text}");
        let text = stage_plots(&of, &[false, true], "scale of the priors", 80).into_string();
        // The second sd is a logarithm's: from 2 e^-.2 to 2 e^.2.
        for part in ["25%, 75%", "0.5000 ± 0.9000", &format!("2.0000 ± {}", number(2.0 * 0.2_f64.sinh()))] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let cells = noise_cells(&of, &of["posterior"][1]);
        assert_eq!((cells.len(), &cells[0]), (noise_header(&of).len(), &Cell::Number("unknown".to_owned())));
        assert!(inadequacy_notice(&of).into_string().is_empty());
    }

    #[test]
    fn an_inadequate_answer_shows_its_reasons_and_no_interval() {
        let of = result(false);
        let text = inadequacy_notice(&of).into_string();
        for part in ["Not an adequate answer", "the &lt;b&gt;information is noise", "rho_h", "1.5000", "failed"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(noise_plot(&of, "s", 80).into_string().is_empty() && stage_plots(&of, &[], "s", 80).into_string().is_empty());
    }

    #[test]
    fn other_runs_have_no_noise_plots() {
        let mut of = json!({"posterior": [{"name": "a", "mean": 0.5, "q5": 0.1, "q95": 0.9}]});
        assert!(noise_header(&of).is_empty() && noise_cells(&of, &of["posterior"][0]).is_empty());
        for part in
            [noise_plot(&of, "s", 80), stage_plots(&of, &[], "s", 80), inadequacy_notice(&of), surrogate_noise_plot(&of, "s", 80)]
        {
            assert!(part.into_string().is_empty());
        }
        // A fit with 36% of its variance from the noise; a suppressed fit; and an object of another shape.
        of["surrogate"] = json!({"parameters": {"a": {"mean": 0.4, "sd": 0.1, "noise_sd": 0.06}}});
        assert!(surrogate_noise_plot(&of, "s", 80).into_string().contains("noise 36%"));
        of["surrogate"] = json!({"parameters": {}, "suppressed": "few"});
        assert!(surrogate_noise_plot(&of, "s", 80).into_string().is_empty());
        let odd = json!({"adequacy": 7, "releases": [3], "posterior": [{}, 1]});
        assert!(
            !stage_plots(&odd, &[true], "s", 80).into_string().contains("NaN")
                && !noise_plot(&odd, "s", 80).into_string().contains("NaN")
        );
    }
}
