//! Predictions and intervals of another level from a finished job, with no party running.

use conclave_tests::cluster::{Cluster, json};
use conclave_tests::zarr;
use serde_json::Value;

use crate::{cluster, stderr};

const JOB: &str = "name = \"once\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"readmitted\"\npredictors = [\"treated\", \
    \"age\"]\n[columns]\nreadmitted = { binary = true }\ntreated = { binary = true }\nage = { min = 20, max = 80 }\n[sampler]\ndraws = 200\n[privacy]\n\
    epsilon = 8\ndelta = 1e-6\n";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn refused(cluster: &Cluster, args: &[&str], code: i32, words: &[&str]) {
    let output = cluster.run(args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)) && output.stdout.is_empty(), "{args:?}: {said}");
}

#[test]
fn predictions_and_intervals_are_those_of_the_job_s_draws() {
    let mut cluster = cluster(&["a", "b"], 4_000, 60.0);
    let result = cluster.submit(JOB);
    assert_eq!(result["adequacy"]["adequate"], true, "{result:#}");
    let id = result["job"].as_str().expect("an id").to_owned();
    cluster.kill_party(0);
    cluster.kill_party(1);
    let rounds = cluster.rounds();
    cluster.must(&["draws", &id, "--format", "zarr", "--out", "own.zarr"]);
    let [intercept, treated, age] = ["intercept", "treated", "age"].map(|name| {
        let chains: Vec<Vec<f64>> = zarr::read(&cluster.path("own.zarr").join("posterior").join(name));
        chains.concat()
    });

    // At age 65, which is coded 0.5.
    let p = |treatment: f64| -> Vec<f64> {
        let eta = intercept.iter().zip(&treated).zip(&age).map(|((a, b), c)| a + treatment * b + 0.5 * c);
        eta.map(|eta| 1.0 / (1.0 + (-eta).exp())).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let rows = ["--at", "age=65, treated=0", "--at", "treated=1, age=65"];
    let predict = |more: &[&str]| json(&cluster.must(&[&["predict", &id, "--json"], &rows[..], more].concat()));
    let found = predict(&["--contrast", "--outcome", "--interval", "0.5"]);
    let near = |value: &Value, expected: f64| assert!((number(value) - expected).abs() < 1e-9, "{value} {expected}");
    for (row, treatment) in [(0, 0.0), (1, 1.0)] {
        let line = &found["predictions"][row];
        near(&line["mean"], mean(&p(treatment)));
        let mut sorted = p(treatment);
        sorted.sort_by(f64::total_cmp);
        let inside = sorted.iter().filter(|x| (number(&line["low"])..=number(&line["high"])).contains(x)).count();
        assert!((inside as f64 / sorted.len() as f64 - 0.5).abs() < 0.01, "{line:#}");
        assert_eq!((&line["outcome"]["low"], &line["outcome"]["high"]), (&0.0.into(), &1.0.into()));
    }
    let ratios: Vec<f64> = treated.iter().map(|b| b.exp()).collect();
    near(&found["contrasts"][0]["odds_ratio"]["mean"], mean(&ratios));
    near(&found["contrasts"][0]["difference"]["mean"], mean(&p(1.0)) - mean(&p(0.0)));
    assert_eq!(found, predict(&["--contrast", "--outcome", "--interval", "50%"]), "one seed, one answer");
    let average = predict(&["--average", "treated"]);
    near(&average["average_effects"][0]["mean"], mean(&p(1.0)) - mean(&p(0.0)));
    let shown = cluster.run(&["predict", &id, "--at", "age=90, treated=1"]);
    assert!(stderr(&shown).contains("age = 90 lies outside the declared bounds, 20 to 80"), "{}", stderr(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Probability of readmitted = 1, with 90% intervals"));
    std::fs::write(cluster.path("new.csv"), "id,treated,age\n1,0,65\n2,1,65\n").expect("a file");
    cluster.must(&["predict", &id, "--data", "new.csv", "--out", "predicted.csv"]);
    let file = std::fs::read_to_string(cluster.path("predicted.csv")).expect("the file");
    assert!(
        file.lines().count() == 3 && file.contains(&format!("prediction,2,1,65,probability,{}", mean_of(&found, 1))),
        "{file}"
    );

    refused(&cluster, &["predict", &id], 2, &["--at or --data: the model has treated, age"]);
    refused(&cluster, &["predict", &id, "--at", "age=60"], 2, &["no value for treated"]);
    refused(&cluster, &["predict", &id, "--data", "new.csv", "--out", "predicted.csv"], 2, &["already exists"]);
    refused(&cluster, &["predict", &id, "--at", "age=60, treated=1", "--interval", "95"], 2, &["between 0 and 1"]);
    refused(&cluster, &["predict", &id, "--at", "age=60, treated=1", "--party", "a"], 2, &["share every parameter"]);
    refused(&cluster, &["predict", "00000000-0000-4000-8000-000000000000", "--at", "age=60, treated=1"], 2, &["has no job"]);
    from_a_store(&cluster, &id, &found);
    levels(&cluster, &id, &result);
    assert_eq!(cluster.rounds(), rounds);
}

/// A refit with the job's own prior has the job's draws, so its store gives the same predictions, without a coordinator.
fn from_a_store(cluster: &Cluster, id: &str, found: &Value) {
    let kept = ["--out", "same.zarr", "--job-out", "same.toml"];
    let object = cluster.must(&[&["refit", id, "--prior", "default=normal(0, 2.5)", "--json"], &kept[..]].concat());
    std::fs::write(cluster.path("same.json"), object).expect("a file");
    let rows = ["--at", "age=65, treated=0", "--at", "treated=1, age=65"];
    let from =
        |job: &'static str| [&["predict", "--from", "same.zarr", "--job-file", job, "--result", "same.json"], &rows[..]].concat();
    let again =
        json(&cluster.must(&[&from("same.toml")[..], &["--json", "--contrast", "--outcome", "--interval", "0.5"]].concat()));
    assert_eq!((&again["predictions"], &again["contrasts"]), (&found["predictions"], &found["contrasts"]));
    let text = std::fs::read_to_string(cluster.path("same.toml")).expect("the job of the refit");
    std::fs::write(cluster.path("other.toml"), text.replace("\"treated\", \"age\"", "\"age\"")).expect("a file");
    refused(cluster, &from("other.toml"), 2, &["same.zarr has other parameters than other.toml"]);
    refused(cluster, &["predict", "--from", "same.zarr", "--at", "age=65, treated=0"], 2, &["--job-file", "--result"]);
    refused(cluster, &["refit", id, "--draws", "9", "--job-out", "same.toml"], 2, &["same.toml already exists"]);
}

fn mean_of(found: &Value, row: usize) -> String {
    number(&found["predictions"][row]["mean"]).to_string()
}

/// `--interval` adds the interval to each row of the result, and changes the columns of tables.
fn levels(cluster: &Cluster, id: &str, result: &Value) {
    for command in [&["summary", id][..], &["watch", id], &["refit", id, "--prior", "default=normal(0, 2.5)"]] {
        let with = |more: &[&str]| cluster.must(&[command, more].concat());
        let found = json(&with(&["--json", "--interval", "0.99"]));
        for (key, row) in ["posterior", "posterior_original", "ratios"].iter().flat_map(|key| {
            let rows = found[*key].as_array().unwrap_or_else(|| panic!("{key} in {found:#}"));
            rows.iter().map(move |row| (key, row))
        }) {
            let interval = &row["interval"];
            assert_eq!(interval["level"], 0.99, "{command:?} {key}");
            assert!(number(&interval["low"]) < number(&row["q5"]) && number(&interval["high"]) > number(&row["q95"]), "{row:#}");
        }
        assert_eq!(json(&with(&["--json"]))["posterior"], result["posterior"], "{command:?}");
        let shown = with(&["--interval", "99%"]);
        let header = shown.lines().find(|line| line.starts_with("parameter")).unwrap_or_default();
        assert!(header.contains("0.5%") && header.contains("99.5%") && !header.contains(" 95%"), "{shown}");
    }
    let wide = cluster.run(&["summary", id, "--interval", "0.999"]);
    assert!(wide.status.success() && stderr(&wide).contains("of 800 draws lie beyond either end"), "{}", stderr(&wide));
    cluster.must(&["report", id, "-o", "wide.html", "--interval", "0.99"]);
    let page = std::fs::read_to_string(cluster.path("wide.html")).expect("a page");
    assert!(page.contains("[0.5%, 99.5%]") && page.contains("bound the central 99% interval"));
    cluster.must(&["report", id, "-o", "units.html", "--per", "age=10 years"]);
    let page = std::fs::read_to_string(cluster.path("units.html")).expect("a page");
    let age = result["ratios"].as_array().expect("ratios").iter().find(|row| row["name"] == "age").expect("a row of age");
    let shown: Vec<f64> = page.split("<data value=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
    let has_ten = |key: &str| {
        let ten: f64 = std::iter::repeat_n(number(&age[key]), 10).product();
        shown.iter().any(|value| (value / ten - 1.0).abs() < 1e-9)
    };
    assert!(page.contains("age, per 10 years") && ["q5", "median", "q95"].into_iter().all(has_ten), "{age}");
    refused(cluster, &["report", id, "-o", "none.html", "--per", "ages=10"], 2, &["`ages` is not a numeric predictor", "age"]);
    refused(cluster, &["report", id, "-o", "none.html", "--per", "age=0"], 2, &["must be finite and above 0"]);
}

/// A job at an epsilon at which the noise is all that there is.
#[test]
fn an_inadequate_answer_predicts_nothing() {
    let cluster = cluster(&["a", "b"], 60, 60.0);
    let result = cluster.submit(&JOB.replace("epsilon = 8", "epsilon = 0.1").replace("draws = 200", "draws = 200\nforce = true"));
    assert_eq!(result["adequacy"]["adequate"], false, "{result:#}");
    let id = result["job"].as_str().expect("an id");
    refused(&cluster, &["predict", id, "--at", "age=60, treated=1"], 1, &["no adequate answer", "nothing is predicted"]);
}
