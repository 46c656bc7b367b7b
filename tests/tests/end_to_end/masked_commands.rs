//! Masked jobs at the command line before anything is spent: an analyst's rehearsal and plan, and an owner's audit.

use std::fs;

use conclave_tests::cluster::json;
use conclave_tests::study;
use serde_json::Value;

use crate::{EXE, stderr};

const NAMES: [&str; 3] = ["a", "b", "c"];
const MASKED: &str = "\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n";

fn run(args: &[&str]) -> std::process::Output {
    std::process::Command::new(EXE).args(args).output().expect("a start")
}

fn must(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the number at a JSON pointer.
fn at(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {pointer} of {value:#}"))
}

/// With the same noise a masked job is the same job, at half its price where the noise of two parties protects each. Its analyst
/// is informed of who is protected from whom.
#[test]
fn a_masked_job_is_rehearsed_and_planned_at_its_price() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let files: Vec<String> = NAMES.iter().map(|name| path(&format!("{name}.csv"))).collect();
    for (seed, file) in (0..).zip(&files) {
        study::write(file.as_ref(), &study::csv(&study::records(150, seed)));
    }
    let sampler = "chains = 2\ndraws = 300\nwarmup = 5\nseed = 4\nproposal = { kind = \"guided\", radius = 0.15 }\n\
                   start = { intercept = 0.0, treated = 0.5, age = 0.5 }";
    let plain = study::job(&NAMES, sampler, "noise_sd = 0.5\nepsilon = 150\ndelta = 1e-6");
    let [local, masked] = [("local.toml", plain.clone()), ("masked.toml", plain.clone() + MASKED)].map(|(name, text)| {
        fs::write(path(name), text).expect("a job file");
        path(name)
    });
    let rehearsal = |job: &str, more: &[&str]| {
        let data = files.iter().flat_map(|file| ["--data", file]);
        let args: Vec<&str> =
            ["rehearse", job, "--noise-seed", "3"].into_iter().chain(data).chain(more.iter().copied()).collect();
        must(&args)
    };
    let [in_plain, in_masks] = [&local, &masked].map(|job| json(&rehearsal(job, &["--json"])));
    assert_eq!(in_plain["aggregation"], Value::Null);
    assert_eq!(in_masks["aggregation"], json(r#"{ "mode": "secure", "colluders": 1, "honest": 2, "parties": 3 }"#));
    assert_eq!((&in_masks["stopped_by"], &in_plain["stopped_by"]), (&"draws".into(), &"draws".into()));
    // Equal to the last bit.
    for same in ["posterior", "iterations", "acceptance_rate"] {
        assert_eq!(in_masks[same], in_plain[same], "{same}");
    }
    for party in 0..NAMES.len() {
        let of = |result: &Value, what: &str| at(result, &format!("/parties/{party}/{what}"));
        assert_eq!(of(&in_masks, "queries"), of(&in_plain, "queries"));
        let ratio = of(&in_plain, "mu_squared_spent") / of(&in_masks, "mu_squared_spent");
        assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
        assert!(of(&in_masks, "epsilon_spent") < of(&in_plain, "epsilon_spent"));
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = words(&rehearsal(&masked, &[]));
    for part in [
        "only the sum over all 3 parties was unmasked",
        "as if protected by the noise of 2 parties",
        "while at most 1 of the other 2 (seats, not people) collude with the coordinator",
        "If more collude",
        "mu is up to 1.41 times as large",
        "no ledger was charged",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    assert!(!words(&rehearsal(&local, &[])).contains("masked"));

    let plan = |job: &str, result: &Value| {
        let file = path("rehearsal.json");
        fs::write(&file, result.to_string()).expect("a file");
        (json(&must(&["plan", job, "--rehearsal", &file, "--json"])), words(&must(&["plan", job, "--rehearsal", &file])))
    };
    let ((of_local, printed_local), (of_masked, printed)) = (plan(&local, &in_plain), plan(&masked, &in_masks));
    assert_eq!((&of_masked["aggregation"]["honest"], &of_local["aggregation"]), (&2.into(), &Value::Null));
    // Twice the rounds within the same budget; slightly more, since the slack is a smaller part of a lower price.
    let rounds = at(&of_masked, "/parties/0/iterations_gdp") / at(&of_local, "/parties/0/iterations_gdp");
    assert!((1.98..2.05).contains(&rounds), "{rounds}");
    for part in [
        "only their sum over 3 parties is opened: prices use the noise of 2 of them, with 1 of the others colluding with the coordinator",
        "2 times as many rounds",
    ] {
        assert!(printed.contains(part) && !printed_local.contains(part), "{part}: {printed}");
    }

    // Too many colluders, which leave fewer than two parties to protect each other, make an invalid job.
    fs::write(&masked, plain + &MASKED.replace("colluders = 1", "colluders = 2")).expect("a job file");
    for command in ["plan", "rehearse"] {
        let data = if command == "rehearse" { files.iter().flat_map(|file| ["--data", file]).collect() } else { Vec::new() };
        let refused = run(&[&[command, masked.as_str()], data.as_slice()].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("colluders"), "{}", stderr(&refused));
    }
}

/// Audits masked prices. They hold beside the others' noise; without it, only the ledger's second figure holds.
#[test]
fn masked_prices_are_audited_beside_the_others_noise_and_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("audit.svg");
    let audit = |more: &[&str]| run(&[&["__party", "audit", "--synthetic", "--replicates", "1000"], more].concat());
    let report = |more: &[&str]| {
        // A valid claim is rejected once in a thousand runs, so it is tried twice.
        let output = Some(audit(more)).filter(|output| output.status.success()).unwrap_or_else(|| audit(more));
        assert!(output.status.success(), "{more:?}: {}", stderr(&output));
        json(&String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let beside = report(&["--mu-b", "1", "--honest", "4", "--json", "--out", plot.to_str().expect("a plain path")]);
    assert_eq!((&beside["holds"], &beside["honest"], &beside["all_collude"]), (&true.into(), &4.into(), &false.into()));
    assert!((at(&beside, "/mu_claimed") - 1.0).abs() < 1e-3, "{beside:#}");
    // Not vacuous: the audit finds about 0.87 of the claimed mu, give or take 0.07.
    assert!(at(&beside, "/mu_lower") > 0.4, "{beside:#}");
    assert!(fs::read_to_string(&plot).expect("a plot").contains("<svg"));

    let alone = report(&["--mu-b", "1", "--honest", "4", "--all-collude", "--json"]);
    assert_eq!((&alone["holds"], &alone["all_collude"]), (&true.into(), &true.into()));
    assert!((at(&alone, "/mu_charged") - 1.0).abs() < 1e-3 && (at(&alone, "/mu_claimed") - 2.0).abs() < 1e-3, "{alone:#}");
    // The wrong claim, that the price holds against all others, is clearly rejected.
    assert!(at(&alone, "/mu_lower_999") > 1.2 * at(&alone, "/mu_charged"), "{alone:#}");

    let printed = |more: &[&str]| String::from_utf8(audit(more).stdout).expect("UTF-8");
    let text = printed(&["--mu-b", "1", "--honest", "2"]);
    assert!(text.contains("priced by the noise of 2 parties"), "{text}");
    assert!(printed(&["--mu-b", "1", "--honest", "2", "--all-collude"]).contains("of which all others collude here"));

    let refused = audit(&["--all-collude"]);
    assert!(
        !refused.status.success() && stderr(&refused).contains("--all-collude needs --honest of at least 2"),
        "{}",
        stderr(&refused)
    );
    for honest in ["0", "-1", "many"] {
        assert_eq!(audit(&[&format!("--honest={honest}")]).status.code(), Some(2), "{honest}");
    }
}
