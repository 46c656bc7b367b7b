#![allow(clippy::unwrap_used)]
mod failed;
mod forest;
mod methods;
mod released;
mod repeat;
mod written;

use conclave_common::job::JobSpec;
use conclave_common::schema::{Family, ModelSpec};
use conclave_draws::{Draws, PhaseDraws};
use conclave_inference::diagnostics::summarise;
use conclave_proto::v1::JobStatus;
use serde_json::{Map, Value, json};

use super::material::Material;
use super::page::page;
use super::units::Units;
use crate::ended::result_of;

/// A simulated run: chains that vary around a mean of their parameter.
struct Run {
    status: JobStatus,
    source: String,
    spec: JobSpec,
    result: Value,
    draws: Draws,
}

impl Run {
    /// Makes a logistic regression with an intercept and `predictors` columns, and `odd` in its name and column names.
    fn new(predictors: usize, chains: u32, length: usize, odd: &str) -> Self {
        let quoted = |name: &str| Value::from(name).to_string();
        let names: Vec<String> = (1..=predictors).map(|i| format!("x{i}{odd}")).collect();
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let columns: String = list.iter().map(|name| format!("{name} = {{ min = 0, max = 10 }}\n")).collect();
        let source = format!(
            "name = {}\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [{}]\n[columns]\n\
             y = {{ binary = true }}\n{columns}[sampler]\nchains = {chains}\ndraws = {length}\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n",
            quoted(&format!("a job{odd}")),
            list.join(", ")
        );
        Self::of(source, odd)
    }

    /// Makes the run of a job file, with the number of chains and draws that it states.
    fn of(source: String, odd: &str) -> Self {
        let spec = JobSpec::parse(&source).unwrap();
        let (chains, length) = (spec.sampler.chains, spec.sampler.draws as usize);
        let parameters = spec.draw_names();
        let theta: Vec<Vec<Vec<f64>>> =
            (0..parameters.len()).map(|p| (0..chains).map(|c| walk(length, p as u64 * 1000 + u64::from(c))).collect()).collect();
        let sampling = PhaseDraws { theta, accepted: vec![vec![true; length]; chains as usize], ..PhaseDraws::default() };
        let mut run = Self {
            status: JobStatus {
                job: "4f-1".to_owned(),
                analyst: "alice".to_owned(),
                state: "finished".to_owned(),
                ..JobStatus::default()
            },
            draws: Draws {
                original: None,
                name: spec.name.clone(),
                seed: 1,
                created_by: "conclave 0.1.0".to_owned(),
                unusable: None,
                parameters,
                warmup: PhaseDraws::default(),
                sampling,
            },
            source,
            spec,
            result: Value::Null,
        };
        run.result = run.object(odd);
        // The fabricated draws mix too badly for it; the verdict has tests of its own.
        run.result["verdict"] = json!({"grade": "fit_to_publish", "reasons": []});
        run.status.result_json = run.result.to_string();
        run
    }

    /// Makes the run of a job file, with its figures in the data's units.
    fn in_units(source: String) -> Self {
        let mut run = Self::of(source, "");
        let original = run.in_original_units();
        run.result["posterior_original"] = original.iter().map(|(row, _)| row.clone()).collect();
        let kind = match &run.spec.model {
            ModelSpec::Regression(regression) if regression.family == Family::Logistic => Some("odds_ratio"),
            ModelSpec::PiecewiseExponential(_) => Some("hazard_ratio"),
            _ => None,
        };
        let ratio = |(row, _): &(Value, Vec<f64>)| {
            let [q5, median, q95] = ["q5", "median", "q95"].map(|key| libm::exp(row[key].as_f64().unwrap()));
            json!({"name": row["name"], "kind": kind, "q5": q5, "median": median, "q95": q95})
        };
        let is_coefficient = |name: &str| !name.starts_with("intercept") && !name.starts_with("log_hazard");
        let coefficients = original.iter().filter(|(row, _)| kind.is_some() && is_coefficient(row["name"].as_str().unwrap()));
        run.result["ratios"] = coefficients.map(ratio).collect();
        run.status.result_json = run.result.to_string();
        run
    }

    /// Returns the summary and the draws of each value in the data's units.
    fn in_original_units(&self) -> Vec<(Value, Vec<f64>)> {
        let theta = self.draws.sampling.theta.iter();
        let samples: Vec<Vec<&[f64]>> = theta.map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
        let row = |(name, chains): (String, Vec<Vec<f64>>)| {
            let parts: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
            let mut row = serde_json::to_value(summarise(&parts)).unwrap();
            row["name"] = name.into();
            (row, chains.concat())
        };
        self.spec.draw_names().into_iter().zip(self.spec.in_original_units(&samples)).map(row).collect()
    }

    fn object(&self, odd: &str) -> Value {
        let rows: Vec<Value> = self
            .draws
            .parameters
            .iter()
            .zip(&self.draws.sampling.theta)
            .map(|(name, chains)| {
                let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
                let mut row: Map<String, Value> = serde_json::to_value(summarise(&chains)).unwrap().as_object().unwrap().clone();
                row.insert("name".to_owned(), name.as_str().into());
                row.into()
            })
            .collect();
        let party = |name: &str| {
            json!({"name": format!("{name}{odd}"), "records": 1234, "protects": "row, replace", "queries": 48_000, "epsilon_spent": 1.234_567_890_123,
                   "delta": 1e-6, "epsilon_budget": 3.0, "mu_squared_spent": 0.078_901_234_567, "epsilon_zcdp": 1.345_678_901_234})
        };
        let fitted = |by: f64| -> Map<String, Value> {
            let one =
                |name: &String| (name.clone(), json!({"mean": 0.301_234 * by, "sd": 0.051_234 * by, "noise_sd": 0.021_234 * by}));
            self.draws.parameters.iter().map(one).collect()
        };
        let ratio = |row: &Value| {
            let [q5, median, q95] = ["q5", "median", "q95"].map(|key| row[key].as_f64().map(libm::exp));
            json!({"name": row["name"], "kind": "odds_ratio", "q5": q5, "median": median, "q95": q95})
        };
        let ratios: Vec<Value> = rows.iter().skip(1).map(ratio).collect();
        let surrogate = json!({"parameters": fitted(1.0), "parameters_original": fitted(2.0), "answers": 49_380, "answers_left_out": 44,
                               "chi2": 3.456_789, "degrees_of_freedom": 4, "p_value": 0.484_321});
        json!({"job": "4f-1", "surrogate": surrogate, "iterations": 12_345, "chains": self.spec.sampler.chains, "draws_per_chain": self.draws.sampling.draws(),
               "seconds": 83.4, "acceptance_rate": 0.371_234, "stopped_by": "budget", "budget_party": format!("a{odd}"),
               "posterior": rows, "posterior_original": rows, "ratios": ratios, "parties": [party("a"), party("b")], "warnings": [format!("beware of {odd}")],
               "mcse_to_sd": 0.012_345_678, "budget_error": "The noise share is 20%."})
    }

    fn page(&self) -> String {
        self.page_with(Some(&self.draws))
    }

    fn page_with(&self, draws: Option<&Draws>) -> String {
        self.rendered(draws, &Units::default())
    }

    fn page_in(&self, units: &Units) -> String {
        self.rendered(Some(&self.draws), units)
    }

    fn rendered(&self, draws: Option<&Draws>, units: &Units) -> String {
        let Self { status, source, spec, result, .. } = self;
        page(&Material {
            status,
            source,
            spec,
            result,
            draws,
            units,
            log: Some("ab12"),
            coordinator: "https://coordinator.example:8443",
        })
    }
}

/// Returns draws with some autocorrelation.
fn walk(length: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut at = 0.0;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        at = 0.7 * at + (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        0.3 + 0.05 * at
    };
    (0..length).map(|_| step()).collect()
}

#[test]
fn every_number_is_that_of_the_summary() {
    let run = Run::new(3, 4, 500, "");
    let page = run.page();
    for (table, keys) in [
        ("posterior", &["mean", "mcse_mean", "sd", "q5", "median", "q95"][..]),
        ("posterior_original", &["mean", "mcse_mean", "sd", "q5", "median", "q95"]),
        ("posterior", &["rhat", "ess_bulk", "ess_tail"]),
        ("parties", &["queries", "epsilon_spent", "epsilon_zcdp", "mu_squared_spent", "delta", "epsilon_budget"]),
    ] {
        for row in run.result[table].as_array().unwrap() {
            let name = format!("><bdi>{}</bdi></th>", row["name"].as_str().unwrap());
            let expected: Vec<String> = keys.iter().map(|key| row[key].to_string()).collect();
            let found = page.split(&name).skip(1).any(|rest| {
                let values = rest.split("</tr>").next().unwrap().split("<data value=\"").skip(1);
                let values: Vec<(&str, &str)> =
                    values.map(|cell| (cell.split('"').next().unwrap(), cell.split(['>', '<']).nth(1).unwrap())).collect();
                // The shown text is the same number, rounded.
                values.iter().zip(keys).all(|((exact, shown), key)| {
                    let decimals = shown.split_once('.').map_or(0, |(_, rest)| rest.len() as i32);
                    let (exact, shown) = (exact.parse::<f64>().unwrap(), shown.replace(',', "").parse::<f64>().unwrap());
                    let error = (exact - shown).abs();
                    // A spent epsilon is rounded up, to two decimals, and an effective sample size down.
                    let is_spent = matches!(*key, "epsilon_spent" | "epsilon_zcdp");
                    let of_shown = match is_spent {
                        true => 10f64.powi(-decimals),
                        false if key.starts_with("ess") => 1.0,
                        false => 0.51 * 10f64.powi(-decimals),
                    };
                    error <= of_shown && (decimals >= 3 || is_spent && decimals == 2 || exact >= 3.0 || exact == 1e-6)
                }) && values.iter().map(|(exact, _)| *exact).eq(expected.iter().map(String::as_str))
            });
            assert!(found, "{table} {keys:?} {expected:?}");
        }
    }
    for figure in ["iterations", "chains", "draws_per_chain", "seconds", "acceptance_rate", "mcse_to_sd"] {
        assert!(page.contains(&format!("<data value=\"{}\">", run.result[figure])), "{figure}");
    }
    for figure in ["answers", "chi2", "p_value"] {
        assert!(page.contains(&format!("<data value=\"{}\">", run.result["surrogate"][figure])), "{figure}");
    }
    for parameter in run.result["surrogate"]["parameters_original"].as_object().unwrap().values() {
        for figure in ["mean", "sd", "noise_sd"] {
            assert!(page.contains(&format!("<data value=\"{}\">", parameter[figure])), "{figure}");
        }
    }
    let object = page.split("id=\"result\">").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&object.replace("&quot;", "\"")).unwrap(), run.result);
}

/// With another level, tables and the plot of intervals follow it, and the object at the page's end stays.
#[test]
fn a_report_has_intervals_of_the_level_asked_for() {
    let mut run = Run::new(2, 2, 200, "");
    let before = run.page();
    assert!(before.contains("OR [5%, 95%]") && before.contains("5% and 95% bound the central 90% interval."));
    for key in ["posterior", "posterior_original", "ratios"] {
        for row in run.result[key].as_array_mut().unwrap() {
            row["interval"] = json!({ "level": 0.99, "low": -7.25, "high": 7.75 });
        }
    }
    let page = run.page();
    for part in ["OR [0.5%, 99.5%]", "line 99%", "0.5% and 99.5% bound the central 99% interval.", "<data value=\"-7.25\">"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("central 90% interval") && !page.contains("&quot;interval&quot;"));
}

/// Returns true if a page has no external reference and nothing that its own policy forbids.
fn is_self_contained(page: &str) -> bool {
    let is_inside = |rest: &str| rest.starts_with('#') || rest.starts_with("data:image/svg+xml;base64,");
    let anchors = page.split("href=\"").skip(1).all(is_inside);
    let none =
        ["http:", "https:", "url(", "src=", "@import", "<script", "<img", "<link", "<iframe", "style=\"", " onload", " onclick"];
    anchors && none.iter().all(|part| !page.contains(part))
}

#[test]
fn a_large_report_is_one_small_file() {
    let run = Run::new(19, 4, 10_000, "");
    let page = run.page();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(is_self_contained(&page));
    assert!(page.contains(&run.source.replace('"', "&quot;")), "the job file");
    assert_eq!(page, run.page());
    // Every plot has a description, and every anchor and label has a target.
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("<desc id=").count());
    for reference in ["href=\"#", "aria-labelledby=\"", "aria-describedby=\""] {
        for id in page.split(reference).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        }
    }
    for part in [
        "logit Pr(",
        "normal(0, 2.5)",
        "Silverman",
        "A budget ended it",
        "μ²",
        "conclave-party verify 4f-1",
        "one row, not one person",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_model_is_named_whole() {
    let run = Run::new(60, 2, 40, "_of_a_long_name");
    let page = run.page();
    let names: Vec<String> = (1..=60).map(|i| format!("x{i}_of_a_long_name")).collect();
    assert!(
        page.contains(&format!("logistic regression of y on {}, with an intercept", names.join(", "))),
        "the line of the model"
    );
    let formula = page.split("class=\"formula\"").nth(1).unwrap().split("</div>").next().unwrap();
    assert!(names.iter().all(|name| formula.contains(name)), "{formula}");
}

#[test]
fn hostile_names_stay_text() {
    for odd in ["<script>alert(1)</script>", "\" onload=\"x", "]]>'&amp;"] {
        let page = Run::new(2, 2, 40, odd).page();
        assert!(!page.contains("<script") && !page.contains("\" onload=") && !page.contains("]]>"), "{odd}");
        assert!(page.contains("</html>"), "{odd}");
    }
    // No job file has such names; a coordinator's text may.
    let mut run = Run::new(2, 2, 40, "");
    let marks = "\u{202e}\u{200f}";
    run.spec.name.push_str(marks);
    run.result = run.object(marks);
    let page = run.page();
    assert!(!page.contains(['\u{202e}', '\u{200f}']) && page.contains("\u{fffd}\u{fffd}"));
    // Neither the job file nor the object shows them, and a program reads the object's own value.
    run.source.push_str(&format!("# {marks}\n"));
    run.status.result_json = run.result.to_string();
    let page = run.page();
    assert!(!page.contains(['\u{202e}', '\u{200f}']) && page.contains("are replaced here"));
    let object = page.split("id=\"result\">").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&object.replace("&quot;", "\"")).unwrap(), run.result);
    let mut run = Run::new(2, 2, 40, "");
    run.result = run.object(&"é".repeat(1000));
    assert!(run.page().len() < 300_000);
}

#[test]
fn what_does_not_exist_is_said() {
    let mut run = Run::new(1, 1, 3, "");
    let page = run.page();
    assert!(
        page.contains("class=\"n\">-</td>") && page.contains("One chain can’t be compared") && !page.contains("NaN"),
        "{page}"
    );
    run.draws.sampling.theta.iter_mut().flatten().flatten().for_each(|x| *x = f64::NAN);
    assert!(!run.page().contains("NaN"));
    assert!(run.page_with(None).contains("nothing to plot"));
    run.result["surrogate"] = json!({"parameters": {}, "suppressed": "the answers <b>are few"});
    assert!(run.page().contains("is shown: the answers &lt;b&gt;are few."));
    run.result = json!({});
    assert!(run.page_with(None).contains("</html>"), "an object of another version");
}

#[test]
fn a_job_without_a_result_says_what_to_do() {
    let of = |state: &str| {
        let status = JobStatus {
            job: "4f-1".to_owned(),
            state: state.to_owned(),
            error_code: "budget".to_owned(),
            ..JobStatus::default()
        };
        result_of(&status, " --identity x").unwrap_err()
    };
    assert!(of("running").to_string().contains("conclave watch 4f-1 --identity x"));
    assert_eq!((of("running").code.exit_code(), of("cancelled").code.exit_code(), of("failed").code.exit_code()), (2, 2, 3));
    assert!(of("cancelled").message.contains("before its first draw"));
}
