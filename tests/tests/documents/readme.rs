//! The commands that the documentation gives to a newcomer, executed.

use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use conclave_common::job::JobSpec;
use conclave_coordinator::Config;
use conclave_party::PartyConfig;

use crate::EXE;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the shell block under a heading of the README.
fn block(heading: &str) -> String {
    let readme = fs::read_to_string(format!("{ROOT}/README.md")).expect("the README");
    let section = readme.split(heading).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let block = section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("no shell block under {heading}")).to_owned()
}

#[test]
fn the_sample_configurations_are_valid() {
    let sample = Path::new(ROOT).join("deploy/sample");
    let job = JobSpec::parse(&fs::read_to_string(sample.join("job.toml")).expect("job.toml")).expect("a valid job");
    Config::load(&sample.join("coordinator/coordinator.toml")).expect("a valid coordinator");
    for party in ["a", "b", "c"] {
        PartyConfig::load(&sample.join(party).join("party.toml")).expect("a valid party");
        assert!(job.parties.contains(&format!("hospital-{party}")));
    }
}

#[test]
fn the_configurations_of_containers_are_valid() {
    let deploy = Path::new(ROOT).join("deploy");
    let read = |file: &str| fs::read_to_string(deploy.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let job = JobSpec::parse(&read("compose/job.toml")).expect("a valid job");
    Config::load(&deploy.join("compose/coordinator.toml")).expect("a valid coordinator");
    for party in ["a", "b", "c"] {
        let config = PartyConfig::load(&deploy.join("compose").join(party).join("party.toml")).expect("a valid party");
        assert!(job.parties.contains(&config.name), "{}", config.name);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let embedded = |manifest: &str, name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text_block(&read(manifest), name)).expect("a file");
        path
    };
    let config = Config::load(&embedded("kubernetes/coordinator.yaml", "coordinator.toml")).expect("a valid coordinator");
    assert_eq!(config.identity, Path::new("/identity"));
    let config = PartyConfig::load(&embedded("kubernetes/party-init.yaml", "party.toml")).expect("a valid party");
    assert_eq!(config.ledger, Path::new("/state/ledger.sqlite"));
}

#[test]
fn pages_omitted_from_the_samples_can_be_enabled() {
    let deploy = Path::new(ROOT).join("deploy");
    let folder = tempfile::tempdir().expect("a folder");
    let enable = |file: &str, embedded: Option<&str>| {
        let text = fs::read_to_string(deploy.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let text = embedded.map_or_else(|| text.clone(), |name| text_block(&text, name));
        let path = folder.path().join("config.toml");
        fs::write(&path, text.replace("# dashboard", "dashboard").replace("# page", "page")).expect("a file");
        path
    };
    for (file, embedded, tls) in [
        ("sample/coordinator/coordinator.toml", None, false),
        ("compose/coordinator.toml", None, true),
        ("kubernetes/coordinator.yaml", Some("coordinator.toml"), false),
    ] {
        let config = Config::load(&enable(file, embedded)).expect("a valid coordinator");
        assert!(config.dashboard.is_some() && config.dashboard_tls == tls && config.dashboard_hosts.len() == 1, "{file}");
        assert!(config.dashboard_token.ends_with("dashboard-token"), "{file}");
    }
    for (file, embedded) in [("sample/a/party.toml", None), ("kubernetes/party-init.yaml", Some("party.toml"))] {
        let config = PartyConfig::load(&enable(file, embedded)).expect("a valid party");
        assert!(config.page.is_some(), "{file}");
    }
}

/// Returns the text under `name: |` in a manifest, without its indentation.
fn text_block(manifest: &str, name: &str) -> String {
    let rest = manifest.split(&format!("  {name}: |\n")).nth(1).unwrap_or_else(|| panic!("no {name} in the manifest"));
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn the_readme_names_the_commands_that_ci_runs() {
    let commands = block("## Try it");
    assert!(commands.contains("cargo run --profile demo --no-default-features --bin conclave -- demo"));
    assert!(commands.contains("cargo test --workspace"));
}

/// Generates records for a seed, enough for an answer at the sample budget.
fn records(seed: u32) -> String {
    let mut state = seed;
    let mut next = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % bound
    };
    let mut text = String::from("patient,age,bmi,prior_visits,readmitted\n");
    for patient in 0..30_000 {
        let (age, bmi, visits) = (next(80) + 15, next(30) + 16, next(12));
        let readmitted = u32::from(next(100) < 20 + 4 * visits);
        writeln!(text, "p{patient},{age},{bmi},{visits},{readmitted}").expect("a string");
    }
    text
}

/// Runs the README's block for one's own files line by line, except for the build and with another port.
#[test]
fn a_job_on_ones_own_files_in_ten_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("bin");
    for (name, word) in [("conclave", ""), ("conclave-party", "__party"), ("conclave-coordinator", "__coordinator")] {
        let path = bin.join(name);
        let exe = EXE;
        fs::write(&path, format!("#!/bin/sh\nexec {exe} {word} \"$@\"\n")).expect("a wrapper");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port().to_string();
    let block = block("## A job on your own files");
    assert!(block.trim().lines().count() < 10, "under ten lines");
    let (build, commands) = block.split_once('\n').expect("several lines");
    assert!(build.starts_with("cargo build --release") && build.ends_with("cp -r deploy/sample my-study && cd my-study"));

    let study = folder.path().join("my-study");
    let copied = Command::new("cp").args(["-r", &format!("{ROOT}/deploy/sample")]).arg(&study).status().expect("cp");
    assert!(copied.success());
    for (seed, party) in ["a", "b", "c"].into_iter().enumerate() {
        fs::write(study.join(party).join("records.csv"), records(seed as u32)).expect("records");
    }
    for file in ["coordinator/coordinator.toml", "a/party.toml", "b/party.toml", "c/party.toml"] {
        let path = study.join(file);
        let text = fs::read_to_string(&path).expect("a configuration");
        fs::write(&path, text.replace("8443", &port)).expect("a configuration");
    }
    let script = format!("set -e\ntrap 'kill $(jobs -p)' EXIT\n{}", commands.replace("8443", &port));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let output = Command::new("bash").args(["-c", &script]).env("PATH", path).current_dir(&study).output().expect("bash");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for name in ["intercept", "age", "bmi", "prior_visits", "hospital-a", "hospital-b", "hospital-c"] {
        assert!(out.contains(name), "{name} is not in\n{out}\n{err}");
    }
    // The sample budget gives an answer, and the sample policy admits what the job asks for.
    assert!(out.contains("the whole budget released") && !out.contains("Not an adequate answer"), "{out}\n{err}");
}
