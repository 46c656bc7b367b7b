//! The budget of an owner on every surface: shares of the same bar, and the same spending of the same job.

use std::collections::BTreeMap;

use conclave_common::epsilon;
use conclave_tests::cluster::{Cluster, json};
use serde_json::Value;

use super::Ended;

/// Runs a command of an owner.
pub(super) fn owner(cluster: &Cluster, name: &str, args: &[&str]) -> String {
    let config = format!("{name}/party.toml");
    cluster.must(&[&["__party"], args, &["--config", &config]].concat())
}

/// Returns the words of a page or a text, without tags and line ends.
pub(super) fn words(text: &str) -> String {
    let mut plain = String::new();
    // A share below the last digit, in a text for a terminal, is no tag.
    let text = text.replace("<0", "&lt;0");
    for (at, part) in text.split('<').enumerate() {
        let words = if at == 0 { part } else { part.split_once('>').map_or("", |(_, words)| words) };
        plain += words;
        plain.push(' ');
    }
    let plain = plain.replace("&lt;", "<").replace("**", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first share of each part in a text: `spent`, `held`, `left`, and `planned` for the job under consideration.
pub(super) fn shares(text: &str) -> BTreeMap<&'static str, f64> {
    let mut shares = BTreeMap::new();
    let words = words(text);
    let words: Vec<&str> = words.split(' ').collect();
    for pair in words.windows(2) {
        let Some(percent) = pair[1].trim_end_matches([',', '.', ';']).strip_suffix('%') else { continue };
        let part = match pair[0] {
            "spent" => "spent",
            "job" | "jobs" => "held",
            "most" => "planned",
            "left" => "left",
            _ => continue,
        };
        let percent = percent.trim_start_matches(['\\', '<']).parse().unwrap_or_else(|e| panic!("{e}: {pair:?}"));
        shares.entry(part).or_insert(percent);
    }
    shares
}

pub(super) fn near(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance
}

pub(super) fn figure(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("{key} in {object:#}"))
}

/// Returns the part of a page from a heading on.
pub(super) fn after_heading(page: &str, heading: &str) -> String {
    page.split_once(heading).unwrap_or_else(|| panic!("{heading} in {page}")).1.to_owned()
}

/// Compares the owner's scale on its command line, page, statement and dossier, and returns the JSON objects of `budget` and `jobs`
/// with the shown shares.
pub(super) fn of_owner(cluster: &Cluster, name: &str, ended: &str) -> (Value, Vec<Value>, BTreeMap<&'static str, f64>) {
    let budget = json(&owner(cluster, name, &["budget", "--json"]));
    let status = json(&owner(cluster, name, &["status", "--json"]));
    let scale = &budget["scale"];
    assert_eq!(scale, &status["scale"]);
    for key in ["mu_squared_spent", "mu_squared_remaining", "epsilon_spent", "epsilon_new_job"] {
        assert_eq!(budget[key], status["budget"][key], "{key}");
    }
    let [spent, held, left] = ["spent", "held_by_open_jobs", "left"].map(|key| figure(scale, key));
    assert!(spent > 0.0 && left >= 0.0 && near(spent + held + left, 1.0, 1e-12), "{scale}");
    assert!(near(spent, figure(&budget, "mu_squared_spent") / figure(&budget, "mu_squared_budget"), 1e-12), "{budget:#}");

    // Each job's own figures add up to those of the owner.
    let jobs = json(&owner(cluster, name, &["jobs", "--json"]))["jobs"].as_array().expect("jobs").clone();
    let sum: f64 = jobs.iter().map(|job| figure(job, "mu_squared_spent")).sum();
    assert!(near(sum, figure(&budget, "mu_squared_spent"), 1e-9), "{sum} of {budget:#}");

    // Commands, page, statement and dossier show the same shares and the same room.
    let text = owner(cluster, name, &["budget"]);
    let expected = shares(&text);
    for (part, share) in [("spent", spent), ("held", held), ("left", left)] {
        // A part that is empty has no words.
        let shown = expected.get(part).copied().unwrap_or(0.0);
        assert!(near(shown, 100.0 * share, 0.1001), "{part}: {expected:?} and {scale}");
    }
    let room = words(&text);
    let room = room.split_once("Room for one more job of ε ").expect("the room").1.split(' ').next().unwrap_or_default();
    let stated: f64 = room.trim_end_matches(['.', ',']).parse().expect("a number");
    assert!(stated <= figure(scale, "room_epsilon"), "a job of the stated epsilon is admitted: {stated} and {scale}");
    assert!(near(stated, figure(scale, "room_epsilon"), 0.01), "{stated} and {scale}");
    let visit = cluster.visit_owner(name);
    let surfaces = [
        ("status", owner(cluster, name, &["status"])),
        ("statement", owner(cluster, name, &["statement", &ended[..8]])),
        ("dossier", owner(cluster, name, &["dossier"])),
        ("page", after_heading(&visit.get("/").1, "The data's budget")),
        ("page of the statement", visit.get(&format!("/jobs/{ended}/statement")).1),
    ];
    for (surface, text) in &surfaces {
        assert_eq!(shares(text), expected, "{surface}: {text}");
        assert!(words(text).contains(&format!("Room for one more job of ε {room}")), "{surface}: {room} in {text}");
    }
    // The analyst sees the same spending, and the room that the owner's scale states.
    let answer = json(&cluster.must(&["budget", name, "--json"]))["parties"][0].clone();
    assert!(near(figure(&answer, "epsilon_spent"), figure(&budget, "epsilon_spent"), 1e-9), "{answer} and {budget:#}");
    assert!(near(figure(&answer, "epsilon_left"), figure(scale, "room_epsilon"), 2e-3), "{answer} and {scale}");
    (budget, jobs, expected)
}

/// Compares the spending of a job that has ended at its first owner: on the owner's surfaces, in the result, on the dashboard and in the report.
pub(super) fn check(ended: &Ended<'_>) {
    let Ended { cluster, job, result, owner: name, .. } = *ended;
    let (_, jobs, _) = of_owner(cluster, name, job);
    let of_owner = jobs.iter().find(|row| row["job"] == job).unwrap_or_else(|| panic!("{job} in {jobs:#?}"));
    let row = result["parties"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == name)).expect("the owner");
    for key in ["epsilon_spent", "mu_squared_spent"] {
        assert!(near(figure(row, key), figure(of_owner, key), 1e-9), "{key}: {row} and {of_owner}");
    }
    let status = json(&cluster.must(&["jobs", "--json"]));
    assert!(status["jobs"].as_array().is_some_and(|jobs| jobs.iter().any(|row| row["job"] == job)), "{status:#}");
    // The report has every digit, and all surfaces the same words.
    let exact = row["epsilon_spent"].to_string();
    assert!(ended.report.contains(&format!("<data value=\"{exact}\">")), "{exact}");
    let rounded = epsilon::spent(figure(row, "epsilon_spent"));
    let own = after_heading(&cluster.visit_owner(name).get("/").1, "<h2>Jobs</h2>");
    let listed = owner(cluster, name, &["jobs"]);
    let surfaces = [("page", ended.page), ("report", ended.report), ("owner's page", &own), ("owner's jobs", &listed)];
    for (surface, text) in surfaces {
        assert!(words(text).contains(&rounded), "{surface}: {rounded} in {}", words(text));
    }
    let all = String::from_utf8(cluster.run(&["summary", job]).stdout).expect("UTF-8");
    assert!(all.contains(&format!("{rounded} of ")), "{rounded} in {all}");
}
