//! What a page shows of a run that infers from what was released once, and of a fit to released ratios: how much of each interval is
//! the noise's, what each stage taught, or why there is no answer. Made of the run's own object.

use maud::{Markup, html};
use serde_json::Value;

use crate::page::{Tone, notice};
use crate::plot::{LearntStage, NoisyInterval, Stages, noisy_intervals, share_of_noise, stages};
use crate::table::{Cell, table};
use crate::text::{number, plain};

/// Longest sentence that is shown.
const SENTENCE: usize = 1000;

/// Whether a run's object has an answer: one that does not infer from a release always has.
#[must_use]
pub fn is_adequate(result: &Value) -> bool {
    result["adequacy"]["adequate"] != false
}

/// Why what was released does not suffice for an answer, in the place of one; nothing where it does.
#[must_use]
pub fn inadequate(result: &Value) -> Markup {
    if is_adequate(result) {
        return Markup::default();
    }
    let adequacy = &result["adequacy"];
    let body = html! {
        p { "No interval is shown, since none could be relied on." }
        ul { @for reason in list(&adequacy["reasons"]).iter().filter_map(Value::as_str) { li { (plain(reason, SENTENCE)) } } }
        p {
            "Ask for a larger epsilon, more records, narrower bounds or fewer predictors; " code { "algorithm = \"penalty\"" }
            " does not need the checks, and takes more budget still. The figures are in the result’s JSON object, under “posterior”."
        }
    };
    let check = |(name, check): (&String, &Value)| {
        let (value, limit) = (check["value"].as_f64()?, check["limit"].as_f64()?);
        let verdict = if value <= limit {
            html! { span.ok { "✓ holds" } }
        } else {
            html! { span.bad { "! does not hold" } }
        };
        Some(vec![Cell::Name(name.clone()), Cell::Number(number(value)), Cell::Number(number(limit)), Cell::markup(verdict)])
    };
    let checks: Vec<Vec<Cell>> = adequacy.as_object().into_iter().flatten().filter_map(check).collect();
    html! {
        (notice(Tone::Beware, "Not an adequate answer", &body, false))
        @if !checks.is_empty() { (table("What the release was checked for", &["check", "value", "at most", "verdict"], &checks)) }
    }
}

/// The header of the columns that [`noise_cells`] fills, empty for a run whose intervals have no noise of a release in them.
#[must_use]
pub fn noise_header(result: &Value) -> &'static [&'static str] {
    if result["adequacy"].is_null() { &[] } else { &["sd without noise", "noise’s share"] }
}

/// What the columns of [`noise_header`] mean, as a sentence; empty where there are none.
#[must_use]
pub fn noise_note(result: &Value) -> &'static str {
    if result["adequacy"].is_null() {
        ""
    } else {
        " “Noise’s share” is the part of the variance that is there because of the noise."
    }
}

/// What a row of the posterior says of the noise, for a table that has the columns of [`noise_header`].
#[must_use]
pub fn noise_cells(result: &Value, row: &Value) -> Vec<Cell> {
    if result["adequacy"].is_null() {
        return Vec::new();
    }
    let cell = |key: &str, show: fn(f64) -> String| match row[key].as_f64() {
        Some(x) => Cell::Exact { value: row[key].to_string(), shown: show(x) },
        None => Cell::Number("not known".to_owned()),
    };
    vec![cell("sd_data", number), cell("noise_share", share_of_noise)]
}

/// The intervals of an adequate answer with the noise and without it; nothing for another run. Of at most `most` parameters.
#[must_use]
pub fn with_and_without_noise(result: &Value, scale: &str, most: usize) -> Markup {
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
    let rows: Vec<NoisyInterval> = list(&result["posterior"]).iter().take(most).map(interval).collect();
    noisy_intervals("noise", "How much of each interval is the noise’s", scale, &rows)
}

/// The intervals of a quadratic fitted to released ratios, with the noise and without it; nothing where there is no fit.
#[must_use]
pub fn fitted_with_and_without_noise(result: &Value, scale: &str, most: usize) -> Markup {
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
    let rows: Vec<NoisyInterval> = list(&result["posterior"]).iter().take(most).filter_map(fitted).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    noisy_intervals("fitted-noise", "How much of each interval of the surrogate is the noise’s", scale, &rows)
}

/// What each stage of an adequate answer taught; nothing for another run. `logarithms` says of each parameter whether its sd is that of
/// its logarithm.
#[must_use]
pub fn taught(result: &Value, logarithms: &[bool], scale: &str, most: usize) -> Markup {
    let releases = list(&result["releases"]);
    if releases.is_empty() || !is_adequate(result) {
        return Markup::default();
    }
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = list(&result["posterior"]).iter().take(most).map(name).collect();
    let around = |stage: &Value, parameter: usize| {
        let (mean, sd) = (figure(&stage["mean"][parameter]), figure(&stage["sd"][parameter]));
        match logarithms.get(parameter) {
            Some(true) => [mean, mean * (-sd).exp(), mean * sd.exp()],
            _ => [mean, mean - sd, mean + sd],
        }
    };
    let stage = |stage: &Value| LearntStage {
        share: figure(&stage["share"]),
        last: stage["last"] == true,
        after: (0..names.len()).map(|parameter| around(stage, parameter)).collect(),
    };
    let learnt: Vec<LearntStage> = releases.iter().map(stage).collect();
    stages(&Stages { id: "stages", scale, names: &names, stages: &learnt })
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
    fn an_answer_shows_what_the_noise_and_what_each_stage_made() {
        let of = result(true);
        let text = with_and_without_noise(&of, "scale of the priors", 80).into_string();
        assert!(text.contains("noise 76%") && text.contains("not known") && !text.contains("<i>"), "{text}");
        let text = taught(&of, &[false, true], "scale of the priors", 80).into_string();
        // The second sd is a logarithm's: from 2 e^-.2 to 2 e^.2.
        for part in ["25%, 75%", "0.5000 ± 0.9000", &format!("2.0000 ± {}", number(2.0 * 0.2_f64.sinh()))] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let cells = noise_cells(&of, &of["posterior"][1]);
        assert_eq!((cells.len(), &cells[0]), (noise_header(&of).len(), &Cell::Number("not known".to_owned())));
        assert!(inadequate(&of).into_string().is_empty());
    }

    #[test]
    fn an_inadequate_answer_shows_its_reasons_and_no_interval() {
        let of = result(false);
        let text = inadequate(&of).into_string();
        for part in ["Not an adequate answer", "the &lt;b&gt;information is noise", "rho_h", "1.5000", "does not hold"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(
            with_and_without_noise(&of, "s", 80).into_string().is_empty() && taught(&of, &[], "s", 80).into_string().is_empty()
        );
    }

    #[test]
    fn other_runs_have_nothing_of_it() {
        let mut of = json!({"posterior": [{"name": "a", "mean": 0.5, "q5": 0.1, "q95": 0.9}]});
        assert!(noise_header(&of).is_empty() && noise_cells(&of, &of["posterior"][0]).is_empty());
        for part in [
            with_and_without_noise(&of, "s", 80),
            taught(&of, &[], "s", 80),
            inadequate(&of),
            fitted_with_and_without_noise(&of, "s", 80),
        ] {
            assert!(part.into_string().is_empty());
        }
        // A fit of whose variance 36% is the noise's; one that is none; and an object of another shape.
        of["surrogate"] = json!({"parameters": {"a": {"mean": 0.4, "sd": 0.1, "noise_sd": 0.06}}});
        assert!(fitted_with_and_without_noise(&of, "s", 80).into_string().contains("noise 36%"));
        of["surrogate"] = json!({"parameters": {}, "suppressed": "few"});
        assert!(fitted_with_and_without_noise(&of, "s", 80).into_string().is_empty());
        let odd = json!({"adequacy": 7, "releases": [3], "posterior": [{}, 1]});
        assert!(
            !taught(&odd, &[true], "s", 80).into_string().contains("NaN")
                && !with_and_without_noise(&odd, "s", 80).into_string().contains("NaN")
        );
    }
}
