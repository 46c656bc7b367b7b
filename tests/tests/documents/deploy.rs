//! What is deployed keeps to itself what is the owner's, and to bounds.

use std::fs;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn read(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn rules(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The build's context is an allow-list: a study in a folder of this repository, keys and records and all, is no part of it.
#[test]
fn an_image_is_built_from_sources_alone() {
    let ignored = read(".dockerignore");
    let rules = rules(&ignored);
    assert_eq!(rules[0], "*", "everything is left out first");
    let manifest: toml::Table = read("Cargo.toml").parse().expect("a manifest");
    let members: Vec<&str> =
        manifest["workspace"]["members"].as_array().expect("members").iter().filter_map(toml::Value::as_str).collect();
    let others = [".cargo", "Cargo.lock", "Cargo.toml", "deploy/docker/manifests.sh"];
    for allowed in rules.iter().filter_map(|rule| rule.strip_prefix('!')) {
        assert!(members.contains(&allowed) || others.contains(&allowed), "{allowed} is let into the build's context");
    }
    assert!(members.iter().chain(&others).all(|needed| rules.contains(&format!("!{needed}").as_str())), "{rules:?}");
    // After what lets the folders in.
    let last_allowed = rules.iter().rposition(|rule| rule.starts_with('!'));
    for secret in ["**/*.pem", "**/*.key", "**/*.csv", "**/*.sqlite*"] {
        assert!(rules.iter().position(|rule| *rule == secret) > last_allowed, "{secret}");
    }
}

/// A daemon that asks for more memory or processes than it has reason to is ended, and not the machine's other programs.
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
    let confined = compose.split("x-confined:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("what all share");
    assert!(confined.contains("mem_limit:") && confined.contains("pids_limit:"), "{confined}");
    for manifest in ["party", "coordinator"] {
        assert!(read(&format!("deploy/kubernetes/{manifest}.yaml")).contains("limits: { memory:"), "{manifest}");
    }
}

/// A party reaches its coordinator and whoever resolves its name, and nobody else; its configuration is its group's to read.
#[test]
fn a_party_reaches_its_coordinator_alone() {
    let party = read("deploy/kubernetes/party.yaml");
    let policy = party.split("kind: NetworkPolicy").nth(1).expect("a policy");
    assert!(policy.contains("policyTypes: [Ingress, Egress]") && !policy.contains("0.0.0.0/0"), "{policy}");
    assert_eq!(policy.matches("- to:").count(), 2, "names, and the coordinator");
    let unit = read("deploy/systemd/conclave-party.service");
    assert!(unit.contains("install -D -m 640 -g conclave-party party.toml"), "it may hold a proxy's password");
}

/// A party that hangs is found by what watches it: two looks, five seconds apart, after the fifteen in which it says nothing.
#[test]
fn a_hung_party_is_found_within_thirty_seconds() {
    let party = read("deploy/kubernetes/party.yaml");
    let probe = party.split("livenessProbe:").nth(1).and_then(|rest| rest.split("Probe:").next()).expect("a probe");
    assert!(
        probe.contains("status, --brief") && probe.contains("periodSeconds: 5") && probe.contains("failureThreshold: 2"),
        "{probe}"
    );
    assert!(party.contains("startupProbe:"), "records may take long to read");
    let compose = read("deploy/docker-compose.yml");
    assert_eq!(compose.matches("conclave-party, status, --attached").count(), 3, "each party's check reads the heartbeat");
    assert!(compose.contains("interval: 2s") && compose.contains("retries: 4"), "four looks, two seconds apart");
    for unit in ["party", "coordinator"] {
        assert!(
            read(&format!("deploy/systemd/conclave-{unit}.service")).contains("ExecReload=/bin/kill -HUP $MAINPID"),
            "{unit}"
        );
    }
}

/// One toolchain builds the images, wherever its version is written.
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
