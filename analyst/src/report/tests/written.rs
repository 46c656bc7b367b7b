//! Reports of simulated runs in files, which `.ci/reports` opens in a browser.

use std::path::{Path, PathBuf};

use conclave_proto::v1::PartyStatus;
use serde_json::{Value, json};

use super::Run;
use crate::report::failed;

/// A name as long as names of registries are: 60 characters.
const LONG: &str = "number_of_admissions_in_the_twelve_months_before_the_index";

/// The job of a logistic regression of numeric predictors with long names, a factor, and more lines.
fn job(numeric: usize, algorithm: &str, more: &str) -> String {
    let names: Vec<String> = (10..10 + numeric).map(|number| format!("{LONG}{number}")).collect();
    let list: String = names.iter().map(|name| format!("\"{name}\", ")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = 0, max = 1 }}\n")).collect();
    format!(
        "name = \"Readmission by ward\"\nparties = [\"hospital-a\", \"hospital-b\", \"hospital-of-a-long-name-in-the-north-east-of-the-country\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"logistic\"\n\
         outcome = \"readmitted\"\npredictors = [{list}\"ward\"]\n[columns]\nreadmitted = {{ binary = true }}\n{columns}\
         ward = {{ levels = [\"internal medicine\", \"cardiology\", \"emergency department with a short stay of at most one night\"] }}\n[sampler]\n\
         chains = 4\ndraws = 500\n{more}[privacy]\nepsilon = 8.0\ndelta = 1e-6\n"
    )
}

/// Makes a run by `noisy-statistics` with the noise of each parameter and three stages.
fn released(numeric: usize, more: &str) -> Run {
    from_release(Run::in_units(job(numeric, "noisy-statistics", more)))
}

/// Gives a run the fields of one that infers from three releases.
fn from_release(mut run: Run) -> Run {
    let rows = run.result["posterior"].as_array_mut().unwrap();
    let count = rows.len();
    for (index, row) in rows.iter_mut().enumerate() {
        let (sd, share) = (row["sd"].as_f64().unwrap(), 0.4 * index as f64 / count as f64);
        row["noise_share"] = json!(share);
        row["sd_data"] = json!(sd * (1.0 - share).sqrt());
    }
    let stage = |share: f64, sd: f64, last: bool| json!({"theta": vec![0.0; count], "share": share, "mean": vec![0.3; count], "sd": vec![sd; count], "last": last});
    run.result["releases"] = json!([stage(0.003, 0.6, false), stage(0.1, 0.3, false), stage(0.897, 0.06, true)]);
    run.result["conditional_on"] = json!("noisy_release");
    run.result["adequacy"] = json!({"adequate": true});
    run.result["surrogate"] = Value::Null;
    run.result["stopped_by"] = json!("released");
    run
}

/// Makes a run of a survival regression, with the curves of its baseline and of a treatment.
fn survival() -> Run {
    let source = "name = \"Survival by ward\"\nparties = [\"hospital-a\", \"hospital-b\"]\nalgorithm = \"auto\"\n[model]\nkind = \"piecewise_exponential\"\n\
                  outcome = \"months\"\nevent = \"died\"\ncuts = [12, 24]\npredictors = [\"age\", \"treated\", \"ward\"]\n[columns]\n\
                  months = { min = 0, max = 61 }\ndied = { binary = true }\nage = { min = 40, max = 100 }\ntreated = { binary = true }\n\
                  ward = { levels = [\"medicine\", \"surgery\", \"geriatrics\"] }\n[sampler]\nchains = 4\ndraws = 500\n\
                  [privacy]\nepsilon = 30.0\ndelta = 1e-6\n";
    let mut run = from_release(Run::in_units(source.to_owned()));
    let curve = |of: &str, hazard: f64| {
        let survives = |time: f64, factor: f64| libm::exp(-hazard * factor * time);
        let point = |at: u32| {
            let time = f64::from(at) * 6.1;
            json!({"time": time, "q5": survives(time, 1.2), "median": survives(time, 1.0), "q95": survives(time, 0.8)})
        };
        let points: Vec<Value> = (0..=10).map(point).collect();
        let mean = json!({"q5": 0.8 / hazard, "median": 1.0 / hazard, "q95": 1.2 / hazard});
        json!({"of": of, "points": points, "restricted_mean": mean})
    };
    let curves = [("baseline", 0.030), ("treated", 0.018), ("ward[surgery]", 0.034), ("ward[geriatrics]", 0.043)];
    run.result["survival"] = curves.map(|(of, hazard)| curve(of, hazard)).to_vec().into();
    run
}

/// Makes a run whose answer is not adequate: its figures are under `inadequate` alone.
fn inadequate() -> Run {
    let mut run = released(1, "");
    let mut figures = serde_json::Map::new();
    for key in ["posterior", "posterior_original", "ratios"] {
        figures.insert(key.to_owned(), run.result[key].take());
        run.result[key] = json!([]);
    }
    figures.insert("releases".to_owned(), run.result["releases"].take());
    run.result["inadequate"] = figures.into();
    let reason = "the noise of the release is larger than the information in the data";
    run.result["adequacy"] = json!({"adequate": false, "rho_h": {"value": 1.5, "limit": 1.0}, "prior_share": {"value": 0.7, "limit": 0.5}, "reasons": [reason]});
    run.result["verdict"] = json!({"grade": "no_adequate_answer", "reasons": [reason]});
    run
}

/// Makes a run whose chains disagree.
fn not_usable() -> Run {
    let mut run = Run::in_units(job(1, "penalty", ""));
    let remedy = "`conclave extend 4f-1 --draws 4800 --epsilon 12` continues the chains: at this run's cost per draw its own draws would meet the limits";
    run.result["verdict"] =
        json!({"grade": "not_usable", "reasons": ["R-hat of ward[cardiology] is 1.182, above 1.01"], "remedy": remedy});
    run
}

/// Removes what the report of a simulated run would warn of.
fn without_warnings(mut run: Run) -> Run {
    run.result["warnings"] = json!([]);
    run.result["budget_error"] = Value::Null;
    run.status.result_json = run.result.to_string();
    run
}

fn write(folder: &Path, name: &str, page: &str) {
    std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
}

#[test]
fn a_survival_report_names_event_time_and_baseline() {
    let page = survival().page();
    for words in [
        "Hazard ratios of died, over months.",
        "event (0: censored)",
        "constant between changes at 12, 24",
        "every numeric predictor at the middle of its bounds",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    assert!(page.contains("Each other curve differs"));
}

/// Writes the reports to the folder `CONCLAVE_REPORTS`, else to a temporary one.
#[test]
#[ignore = "writes files for a browser; `.ci/reports` runs it"]
fn reports_are_written_for_a_browser() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("CONCLAVE_REPORTS").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    for (name, numeric) in [("few", 1), ("many", 37)] {
        write(&folder, &format!("chains-{name}"), &without_warnings(Run::in_units(job(numeric, "penalty", ""))).page());
        write(&folder, &format!("released-{name}"), &without_warnings(released(numeric, "")).page());
    }
    let by_party = format!("[parameters]\n{LONG}10 = {{ by = \"party\" }}\n");
    write(&folder, "by-party", &without_warnings(released(2, &by_party)).page());
    write(&folder, "survival", &without_warnings(survival()).page());
    write(&folder, "not-usable", &without_warnings(not_usable()).page());
    write(&folder, "inadequate", &without_warnings(inadequate()).page());
    let mut run = Run::new(2, 2, 10, "");
    run.status.error_code = "policy".to_owned();
    run.status.error = "hospital-b: the owner rejected the job: the bounds of `age` are too narrow for our records".to_owned();
    run.status.state = "failed".to_owned();
    let party = |name: &str| PartyStatus {
        name: name.to_owned(),
        records: 1234,
        queries: 40,
        epsilon_spent: 0.4,
        epsilon_budget: 3.0,
        ..PartyStatus::default()
    };
    run.status.parties = vec![party("a"), party("b")];
    write(
        &folder,
        "failed",
        &failed::page(&run.status, &run.source, &run.spec, Some("ab12"), "https://coordinator.example:8443"),
    );
}
