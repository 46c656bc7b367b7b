//! The verdict on a job: its words and its sign on every surface, and where the figures of an answer may stand.

use conclave_tests::visit::Visit;
use serde_json::Value;

use super::Ended;
use crate::stderr;

pub(super) const NONE: &str = "no adequate answer";
const NOT_USABLE: &str = "not usable";
pub(super) const GRADES: [(&str, &str); 4] = [("fit to publish", "✓"), ("preliminary", "◐"), (NOT_USABLE, "!"), (NONE, "!")];
/// Keys of estimates: a reader could take any of them for a result.
const ESTIMATES: [&str; 10] = ["mean", "sd", "q5", "median", "q95", "surrogate", "releases", "frame", "at", "noise_share"];

/// Returns the grade in the words of the wire, from the result's object.
fn grade(result: &Value) -> &'static str {
    match (result["adequacy"]["adequate"].as_bool(), result["verdict"]["grade"].as_str()) {
        (Some(false), _) => NONE,
        (_, Some("fit_to_publish")) => "fit to publish",
        (_, Some("preliminary")) => "preliminary",
        (_, Some("not_usable")) => NOT_USABLE,
        other => panic!("{other:?} in {result:#}"),
    }
}

fn capital(words: &str) -> String {
    words[..1].to_uppercase() + &words[1..]
}

/// Compares all surfaces, and returns the verdict's words.
pub(super) fn check(ended: &Ended<'_>, operator: &Visit) -> &'static str {
    let words = grade(ended.result);
    check_object(ended.result, words);
    check_terminal(ended, words);
    check_pages(ended, operator, words);
    check_draws(ended, words);
    words
}

/// Returns all keys within a value.
fn keys(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(object) => {
            object.iter().flat_map(|(key, value)| std::iter::once(key.as_str()).chain(keys(value))).collect()
        }
        Value::Array(all) => all.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

/// Figures of an answer that is none stand apart, and nowhere else. Rows that cannot be relied on are marked.
fn check_object(result: &Value, words: &str) {
    let none = words == NONE;
    for key in ["posterior", "posterior_original"] {
        assert_eq!(result[key].as_array().map(Vec::is_empty), Some(none), "{key} of {result:#}");
        assert_eq!(result["inadequate"][key].as_array().is_some_and(|rows| !rows.is_empty()), none, "{key} of {result:#}");
    }
    assert_eq!(result["ratios"].is_array(), !none, "{result:#}");
    let figures = if none { &result["inadequate"] } else { result };
    for key in ["posterior", "posterior_original", "ratios"] {
        for row in figures[key].as_array().expect("rows") {
            let unusable = none || words == NOT_USABLE;
            assert_eq!(row.get("usable"), unusable.then_some(&Value::Bool(false)), "{key}: {row:#}");
        }
    }
    if none {
        let mut apart = result.clone();
        apart["inadequate"] = Value::Null;
        for key in keys(&apart) {
            assert!(!ESTIMATES.contains(&key), "{key} in {apart:#}");
        }
    }
}

fn check_terminal(ended: &Ended<'_>, words: &str) {
    let Ended { cluster, job, .. } = *ended;
    let sign = GRADES.iter().find(|(of, _)| *of == words).map(|(_, sign)| *sign).expect("a grade");
    let first = format!("{sign} {}", capital(words));
    assert_eq!(cluster.status(job)["verdict"], words);
    let list = cluster.must(&["jobs"]);
    let row = list.lines().find(|line| line.starts_with(&job[..8])).unwrap_or_else(|| panic!("{job} in {list}"));
    assert!(row.contains(&format!("{sign} {words}")), "{row}");
    // A short id names the job.
    for command in ["summary", "watch"] {
        let run = cluster.run(&[command, &job[..8]]);
        let text = String::from_utf8(run.stdout).expect("UTF-8");
        assert!(text.starts_with(&first), "{command}: {text}");
        let shown = text.contains("95%") || text.contains("median");
        assert_eq!(shown, words != NONE && words != NOT_USABLE, "{command}: {text}");
    }
    let all = String::from_utf8(cluster.run(&["summary", job, "--all"]).stdout).expect("UTF-8");
    assert_eq!(all.contains("95%"), words != NONE, "{all}");
    assert_eq!(all.contains("Not usable, not to be reported: Posterior"), words == NOT_USABLE, "{all}");
    let allowed = cluster.run(&["summary", job, "--allow-inadequate", "--json"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", stderr(&allowed));
}

/// Returns a page without the parts that a reader must unfold.
fn outside_folds(page: &str) -> String {
    let (mut open, mut depth) = (String::new(), 0_usize);
    for (at, part) in page.split("<details").enumerate() {
        depth += usize::from(at > 0);
        for (at, part) in part.split("</details>").enumerate() {
            depth -= usize::from(at > 0);
            if depth == 0 {
                open += part;
            }
        }
    }
    open
}

fn check_pages(ended: &Ended<'_>, operator: &Visit, words: &str) {
    let sign = GRADES.iter().find(|(of, _)| *of == words).map(|(_, sign)| *sign).expect("a grade");
    let job = ended.job;
    let (_, list) = operator.get("/");
    let row = list.split("<tr").find(|row| row.contains(job)).unwrap_or_else(|| panic!("{job} in {list}"));
    assert!(row.contains(&format!("{sign} {words}")), "{row}");
    let heading = format!("<span class=\"mark\" aria-hidden=\"true\">{sign}</span> {}</p>", capital(words));
    for (surface, text) in [("page", ended.page), ("report", ended.report)] {
        assert!(text.contains(&heading), "{surface}: {heading} in {}", &text[..text.len().min(20_000)]);
        // Intervals of an answer that cannot be relied on are within folds alone.
        let unusable = words == NONE || words == NOT_USABLE;
        let open = outside_folds(text);
        for part in [">95%</th>", ">median</th>", "class=\"whisker\"", "class=\"with-noise\"", "Density of"] {
            assert!(!unusable || !open.contains(part), "{surface}: {part} in {open}");
        }
        assert_eq!(text.contains("anyway</summary>"), unusable, "{surface}");
    }
}

/// Exported draws of an answer that cannot be relied on say so.
fn check_draws(ended: &Ended<'_>, words: &str) {
    let Ended { cluster, job, at, .. } = *ended;
    let out = format!("draws-{at}");
    let run = cluster.run(&["draws", job, "--format", "csv", "--out", &out, "--json"]);
    assert!(run.status.success(), "{}", stderr(&run));
    let object: Value = serde_json::from_slice(&run.stdout).expect("an object");
    assert_eq!(object["verdict"], words);
    let chain = std::fs::read_to_string(cluster.path(&format!("{out}/chain-1.csv"))).expect("a chain");
    let unusable = words == NONE || words == NOT_USABLE;
    assert_eq!(chain.contains(&format!("# VERDICT: {words}.")), unusable, "{}", &chain[..2000.min(chain.len())]);
    assert_eq!(stderr(&run).contains(&format!("verdict on this job is {words}")), unusable, "{}", stderr(&run));
}
