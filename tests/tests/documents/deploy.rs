//! Deployments publish nothing that belongs to the owner, and have resource limits.

use std::fs;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn read(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn rules(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The build's context is an allow-list: a study in a folder of this repository, with its keys and records, is not part of it.
#[test]
fn an_image_is_built_from_sources_only() {
    let ignored = read(".dockerignore");
    let rules = rules(&ignored);
    assert_eq!(rules[0], "*", "everything is left out first");
    let manifest: toml::Table = read("Cargo.toml").parse().expect("a manifest");
    let members: Vec<&str> =
        manifest["workspace"]["members"].as_array().expect("members").iter().filter_map(toml::Value::as_str).collect();
    let others = [".cargo", "Cargo.lock", "Cargo.toml", "deploy/docker/manifests.sh"];
    for allowed in rules.iter().filter_map(|rule| rule.strip_prefix('!')) {
        assert!(members.contains(&allowed) || others.contains(&allowed), "{allowed} is admitted to the build's context");
    }
    assert!(members.iter().chain(&others).all(|needed| rules.contains(&format!("!{needed}").as_str())), "{rules:?}");
    // They come after the rules that admit folders.
    let last_allowed = rules.iter().rposition(|rule| rule.starts_with('!'));
    for secret in ["**/*.pem", "**/*.key", "**/*.csv", "**/*.sqlite*"] {
        assert!(rules.iter().position(|rule| *rule == secret) > last_allowed, "{secret}");
    }
}

/// A daemon that uses more memory or processes than it needs is killed instead of other programs on the machine.
#[test]
fn daemons_are_bounded_wherever_they_run() {
    for unit in ["party", "coordinator"] {
        let text = read(&format!("deploy/systemd/conclave-{unit}.service"));
        assert!(
            ["MemoryMax=", "TasksMax="].iter().all(|limit| rules(&text).iter().any(|line| line.starts_with(limit))),
            "{unit}"
        );
    }
    let compose = read("deploy/docker-compose.yml");
    let confined = compose.split("x-confined:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the shared settings");
    assert!(confined.contains("mem_limit:") && confined.contains("pids_limit:"), "{confined}");
    for manifest in ["party", "coordinator"] {
        assert!(read(&format!("deploy/kubernetes/{manifest}.yaml")).contains("limits: { memory:"), "{manifest}");
    }
}

/// A party can reach only its coordinator and its resolver; its configuration is readable by its group.
#[test]
fn a_party_reaches_only_its_coordinator() {
    let party = read("deploy/kubernetes/party.yaml");
    let policy = party.split("kind: NetworkPolicy").nth(1).expect("a policy");
    assert!(policy.contains("policyTypes: [Ingress, Egress]") && !policy.contains("0.0.0.0/0"), "{policy}");
    assert_eq!(policy.matches("- to:").count(), 2, "the resolver and the coordinator");
    let unit = read("deploy/systemd/conclave-party.service");
    assert!(unit.contains("install -D -m 640 -g conclave-party party.toml"), "it may hold a proxy's password");
}

/// A hung party is found by its supervisor: two probes, five seconds apart, after fifteen seconds of silence.
#[test]
fn a_hung_party_is_found_within_thirty_seconds() {
    let party = read("deploy/kubernetes/party.yaml");
    let probe = party.split("livenessProbe:").nth(1).and_then(|rest| rest.split("Probe:").next()).expect("a probe");
    assert!(
        probe.contains("status, --alive") && probe.contains("periodSeconds: 5") && probe.contains("failureThreshold: 2"),
        "{probe}"
    );
    assert!(party.contains("startupProbe:"), "records may take long to read");
    let compose = read("deploy/docker-compose.yml");
    assert_eq!(compose.matches("conclave-party, status, --attached").count(), 3, "each party's check reads the heartbeat");
    assert!(compose.contains("interval: 2s") && compose.contains("retries: 4"), "four probes, two seconds apart");
    for unit in ["party", "coordinator"] {
        assert!(
            read(&format!("deploy/systemd/conclave-{unit}.service")).contains("ExecReload=/bin/kill -HUP $MAINPID"),
            "{unit}"
        );
    }
}

/// A restart of a halted daemon would delete what only its process still holds: liveness passes for it, and readiness turns.
#[test]
fn no_liveness_probe_restarts_a_halted_daemon() {
    for (manifest, ready) in [("party", "status, --attached"), ("coordinator", "health, --config")] {
        let text = read(&format!("deploy/kubernetes/{manifest}.yaml"));
        let probe = |name: &str| {
            let rest = text.split(&format!("{name}:\n")).nth(1).expect("a probe");
            let exec = rest.lines().map(str::trim).find(|line| line.starts_with("exec:")).expect("a command");
            match exec.strip_prefix("exec: *") {
                None => exec.to_owned(),
                Some(anchor) => {
                    text.lines().find(|line| line.contains(&format!("exec: &{anchor} "))).expect("an anchor").to_owned()
                }
            }
        };
        for name in ["livenessProbe", "startupProbe"] {
            assert!(probe(name).contains("--alive"), "{manifest}: {}", probe(name));
        }
        let readiness = probe("readinessProbe");
        assert!(readiness.contains(ready) && !readiness.contains("--alive"), "{manifest}: {readiness}");
    }
}

/// All files name the same toolchain version for the images.
#[test]
fn one_toolchain_builds_the_images() {
    let versions: std::collections::BTreeSet<String> =
        ["deploy/docker/Dockerfile", "deploy/docker-compose.yml", "deploy/README.md"]
            .iter()
            .flat_map(|file| {
                let text = read(file);
                let found: Vec<String> = text
                    .split("rust:")
                    .skip(1)
                    .filter_map(|rest| rest.split_once("-bookworm").map(|(version, _)| version.to_owned()))
                    .collect();
                assert!(!found.is_empty(), "{file}");
                found
            })
            .collect();
    assert_eq!(versions.len(), 1, "{versions:?}");
}
