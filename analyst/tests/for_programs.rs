//! Commands as another program calls them: raw columns, faults and progress as JSON, exports of a store.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn conclave(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conclave"));
    command.env_remove("CONCLAVE_COORDINATOR").env_remove("CONCLAVE_IDENTITY");
    command.current_dir(folder).args(args).output().unwrap()
}

fn must(folder: &Path, args: &[&str]) -> Value {
    let output = conclave(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the last line of standard error, and the exit code.
fn fault(folder: &Path, args: &[&str]) -> (Value, Option<i32>) {
    let output = conclave(folder, args);
    let text = String::from_utf8(output.stderr).unwrap();
    let last = text.lines().last().unwrap_or_else(|| panic!("{args:?} printed nothing"));
    (serde_json::from_str(last).unwrap_or_else(|e| panic!("{args:?}: {e}: {text}")), output.status.code())
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Writes a CSV file of the examples as raw columns; a column of which a value is no number is one of categories.
fn raw(csv: &Path, folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let mut reader = csv::Reader::from_path(csv).unwrap();
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let column = |(at, name): (usize, &String)| {
        let texts: Vec<&str> = rows.iter().map(|row| &row[at]).collect();
        let file = format!("{at}.raw");
        let numbers: Result<Vec<f64>, _> = texts.iter().map(|text| text.parse::<f64>()).collect();
        let Ok(numbers) = numbers else {
            let mut categories: Vec<&str> = texts.clone();
            categories.sort_unstable();
            categories.dedup();
            let place = |text: &&str| categories.binary_search(text).unwrap() as i32;
            std::fs::write(folder.join(&file), texts.iter().map(place).flat_map(i32::to_le_bytes).collect::<Vec<_>>()).unwrap();
            return json!({ "name": name, "type": "category", "categories": categories, "file": file });
        };
        std::fs::write(folder.join(&file), numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        json!({ "name": name, "type": "float64", "file": file })
    };
    let columns: Vec<Value> = names.iter().enumerate().map(column).collect();
    std::fs::write(folder.join("columns.json"), json!({ "rows": rows.len(), "columns": columns }).to_string()).unwrap();
}

fn files(root: &Path, below: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(root, &name))
        } else {
            found.push((name, std::fs::read(entry.path()).unwrap()))
        }
    }
    found.sort();
    found
}

/// Raw columns give the draws of the CSV file, bit for bit; and a store of a rehearsal is exported as one of a job.
#[test]
fn raw_columns_are_the_file_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let job = examples().join("survival.toml");
    let job = job.to_str().unwrap();
    let described = must(folder, &["describe", job, "--json"]);
    assert_eq!(described["columns"]["ward"]["levels"], json!(["medicine", "surgery", "geriatrics"]));
    assert!(described["toml"].as_str().unwrap().contains("[columns]"), "{described}");
    let parties: Vec<&str> = described["parties"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let mut of_csv = vec!["rehearse", job, "--noise-seed", "7", "--json", "--out", "csv.zarr"];
    let mut of_raw = vec!["rehearse", job, "--noise-seed", "7", "--json", "--out", "raw.zarr", "--progress", "json"];
    let paths: Vec<String> =
        parties.iter().map(|party| examples().join(format!("data/{party}.csv")).display().to_string()).collect();
    for (party, path) in parties.iter().zip(&paths) {
        raw(Path::new(path), &folder.join(party));
        of_csv.extend(["--data", path]);
        of_raw.extend(["--data", party]);
    }
    must(folder, &of_csv);
    let output = conclave(folder, &of_raw);
    let events: Vec<Value> =
        String::from_utf8(output.stderr).unwrap().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let progress = &events.last().unwrap()["progress"];
    assert!(progress["phase"].is_string() && progress["rounds"].as_u64() > Some(0), "{events:?}");
    for group in ["posterior", "posterior_original", "sample_stats", "warmup_posterior"] {
        let (one, other) = (files(&folder.join("csv.zarr"), group), files(&folder.join("raw.zarr"), group));
        assert!(one.len() > 4 && one == other, "{group}");
    }
    let checked = must(folder, &["check", job, "--data", parties[0], "--json"]);
    assert_eq!(checked["records"][0]["unusable"], 0);
    let exported = must(folder, &["draws", "--from", "raw.zarr", "--format", "csv", "--out", "draws", "--json"]);
    assert_eq!(
        (&exported["from"], &exported["files"]),
        (&json!("raw.zarr"), &json!(std::fs::read_dir(folder.join("draws")).unwrap().count()))
    );
    must(folder, &["draws", "--from", "raw.zarr", "--format", "parquet", "--out", "draws.parquet", "--json"]);
    let (refused, code) = fault(folder, &["draws", "--from", "raw.zarr", "--format", "zarr", "--out", "again.zarr", "--json"]);
    assert_eq!((&refused["error"]["code"], code), (&json!("invalid_input"), Some(2)));
}

#[test]
fn a_fault_is_json_where_json_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("job.toml"), "nmae = 1\n").unwrap();
    std::fs::create_dir(folder.join("taken")).unwrap();
    std::fs::write(folder.join("taken/x"), "").unwrap();
    let example = examples().join("bernoulli.toml");
    let (data, example) = (examples().join("data/clinic-a.csv"), example.to_str().unwrap());
    let data = data.to_str().unwrap();
    let wrong_option = ["plan", "job.toml", "--jsno", "--json"];
    let taken = ["rehearse", example, "--data", data, "--data", data, "--out", "taken", "--json"];
    let away = ["jobs", "--coordinator", "https://127.0.0.1:1", "--identity", "none", "--json"];
    for (args, code, message, remedy) in [
        (&["plan", "job.toml", "--json"][..], "invalid_input", "nmae", None),
        (&wrong_option[..], "invalid_input", "unexpected argument '--jsno'", Some("`conclave COMMAND --help` lists the options")),
        (&taken[..], "invalid_input", "taken is not empty", Some("choose a new folder")),
        (&away[..], "invalid_input", "none", None),
    ] {
        let (printed, exit) = fault(folder, args);
        let error = &printed["error"];
        assert_eq!((error["code"].as_str(), exit), (Some(code), Some(2)), "{printed}");
        assert!(error["message"].as_str().unwrap().contains(message), "{printed}");
        assert_eq!((error["remedy"].as_str(), error["party"].is_null()), (remedy, true), "{printed}");
        // The text for people stays.
        let text: Vec<&str> = args.iter().filter(|word| **word != "--json").copied().collect();
        let shown = String::from_utf8(conclave(folder, &text).stderr).unwrap();
        assert!(shown.contains(message) && !shown.contains('{'), "{shown}");
    }
}

#[test]
fn the_stable_codes_are_listed() {
    let listed = must(Path::new("."), &["errors", "--json"]);
    let codes: Vec<&str> = listed["errors"].as_array().unwrap().iter().map(|row| row["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"policy") && codes.contains(&"budget") && codes.contains(&"unreachable"), "{codes:?}");
}
