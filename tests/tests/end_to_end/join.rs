//! A fourth party joins a running coordinator with the commands of the data owner's page, exactly as printed there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conclave_tests::cluster::{Cluster, PartySetup, json};

use crate::EXE;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/data-owner/join-a-study.md");
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the commands under a heading, one per line.
fn commands(heading: &str) -> Vec<String> {
    let page = fs::read_to_string(PAGE).expect("the data owner's page");
    let section = page.split(heading).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let block = section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.unwrap_or_else(|| panic!("no shell block under {heading}"));
    block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// Generates records with the page's columns for a seed.
fn records(rows: u32, seed: u32) -> String {
    let mut state = seed;
    let mut next = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % bound
    };
    let row = |_| format!("{},{},{},{}\n", next(80) + 15, next(30) + 16, next(12), next(2));
    "age,bmi,prior_visits,readmitted\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_fourth_party_joins_in_five_commands_and_takes_part() {
    let mut cluster = Cluster::new(EXE);
    let columns = ["age", "bmi", "prior_visits", "readmitted"];
    for (seed, name) in ["hospital-a", "hospital-b", "hospital-c"].into_iter().enumerate() {
        let data = cluster.path(&format!("{name}.csv"));
        fs::write(&data, records(300, seed as u32)).expect("records");
        let policy_extra = "reply_delay_ms = 0";
        let setup =
            PartySetup { name, data: &data, columns: &columns, epsilon: 8.0, data_extra: "", budget_extra: "", policy_extra };
        let party = cluster.enrol(&setup);
        cluster.start_party(party);
    }
    fs::create_dir(cluster.path("hospital-d")).expect("a folder");
    fs::write(cluster.path("hospital-d/records.csv"), records(300, 4)).expect("records");
    let bin = cluster.path("bin");
    fs::create_dir(&bin).expect("bin");
    for (name, word) in [("conclave", ""), ("conclave-party", "__party")] {
        fs::write(bin.join(name), format!("#!/bin/sh\nexec {EXE} {word} \"$@\"\n")).expect("a wrapper");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &command.replace("https://localhost:8443", &cluster.url)]);
        shell.env("PATH", &path).current_dir(cluster.path("")).stdin(Stdio::null());
        shell
    };

    let commands = commands("# Join a study");
    assert!(commands.len() <= 5, "{commands:#?}");
    let (daemon, before) = commands.split_last().expect("commands");
    let mut printed = String::new();
    for command in before {
        let output = shell(command).output().expect("sh");
        let text = [output.stdout, output.stderr].concat();
        printed.push_str(&String::from_utf8_lossy(&text));
        assert!(output.status.success(), "{command}: {printed}");
    }
    // The fingerprint that the owner reads aloud equals the one that the CA's keeper sees.
    let fingerprints: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("Fingerprint of its key: ").or(line.strip_prefix("fingerprint of its key: ")))
        .collect();
    assert!(fingerprints.len() == 2 && fingerprints[0] == fingerprints[1] && fingerprints[0].len() == 79, "{printed}");
    let _running = Stopped(shell(&format!("exec {daemon}")).stderr(Stdio::null()).spawn().expect("sh"));

    let job = r#"
name = "with four"
algorithm = "penalty"
parties = ["hospital-a", "hospital-b", "hospital-c", "hospital-d"]
[model]
kind = "logistic"
outcome = "readmitted"
predictors = ["age", "bmi"]
[columns]
age = { min = 0, max = 100 }
bmi = { min = 10, max = 60 }
readmitted = { binary = true }
[prior]
default = "normal(0, 2.5)"
[sampler]
chains = 1
draws = 10
warmup = 1
proposal = { kind = "guided", radius = 0.01 }
start = { intercept = 0.0, age = 0.0, bmi = 0.0 }
[privacy]
epsilon = 3.0
delta = 1e-6
"#;
    let until = |command: &str| {
        let end = Instant::now() + PATIENCE;
        while !shell(command).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("sh").success() {
            assert!(Instant::now() < end, "timed out: {command}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    // The party receives its welcome a moment before the coordinator has registered it.
    let file = cluster.write_job(job);
    until(&format!("conclave submit {file} --coordinator {} --identity alice --json > submitted.json", cluster.url));
    let submitted = json(&fs::read_to_string(cluster.path("submitted.json")).expect("a submission"));
    let id = submitted["job"].as_str().expect("a job id").to_owned();
    until(&format!("conclave-party approve {id} --yes --config hospital-d/party.toml"));
    cluster.wait_status(&id, PATIENCE, "the end", |status| status["state"] == "finished");
    let summary = json(&cluster.must(&["summary", &id, "--json"]));
    let parties: Vec<&str> = summary["parties"].as_array().expect("parties").iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(parties, ["hospital-a", "hospital-b", "hospital-c", "hospital-d"], "{summary}");
    assert!(summary["parties"][3]["queries"].as_u64() > Some(10), "{summary}");
}
