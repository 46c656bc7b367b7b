//! A run's draws in every format, opened with the tools that analysts use.

use std::path::Path;
use std::process::Command;

use conclave_tests::cluster::Cluster;
use conclave_tests::study;

use crate::EXE;

/// All formats agree with `summary --json`: mean and sd to 1e-9, diagnostics to 1e-6 of ArviZ's. The script installs its packages
/// into the build folder on the first run.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_usual_tools_open_the_draws() {
    if Command::new("python3").args(["-c", "import venv, ensurepip"]).output().is_ok_and(|o| o.status.success()) {
        compare_formats();
    } else {
        eprintln!("skipped: python3 with its venv module is missing, so the draws were not opened");
    }
}

fn compare_formats() {
    let mut cluster = Cluster::new(EXE);
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let party = cluster.enrol_study(name, &study::records(4000, at as u64), 8.0);
        cluster.start_party(party);
    }
    let sampler = "chains = 3\ndraws = 400\nwarmup = 20\nproposal = { kind = \"guided\", radius = 0.02 }\n\
                   start = { intercept = -0.4, treated = 0.8, age = 0.6 }";
    let job = study::job(&["a", "b"], sampler, "epsilon = 8.0\ndelta = 1e-6");
    let summary = cluster.submit(&job);
    let id = summary["job"].as_str().expect("an id");
    let fetched = cluster.must(&["summary", id, "--json"]);
    std::fs::write(cluster.path("summary.json"), fetched).expect("a file");
    for (format, out) in [("zarr", "draws.zarr"), ("zarr", "draws.zarr.zip"), ("csv", "draws"), ("parquet", "draws.parquet")] {
        let fetch = ["draws", id, "--format", format, "--out", out];
        cluster.must(&fetch);
        assert!(!cluster.run(&fetch).status.success(), "nothing is overwritten");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arviz");
    let mut script = Command::new("python3");
    script.arg(root.join("python/open_draws.py")).arg(venv);
    script.args(["draws.zarr", "draws", "draws.parquet", "summary.json"].map(|name| cluster.path(name)));
    let output = script.output().expect("python3 starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    eprintln!("{text}");
}
