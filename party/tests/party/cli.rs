//! The command line: its output, refusals and exit codes.

use std::process::{Command, Output};

use crate::town::Town;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conclave-party")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_names_the_commands() {
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for command in ["init", "run", "budget"] {
        assert!(text(&help.stdout).contains(command));
    }
    let run_help = run(&["run", "--help"]);
    assert!(text(&run_help.stdout).contains("--config") && !text(&run_help.stdout).contains("ready-file"));
    assert_eq!(run(&["frobnicate"]).status.code(), Some(2));
}

#[test]
fn an_owner_sets_up_checks_and_looks() {
    let town = Town::new();
    town.config(1);
    let config = town.path("party.toml").display().to_string();
    // A new owner has no key yet.
    std::fs::remove_dir_all(town.path("hospital-a")).unwrap();
    let missing = run(&["run", "--check", "--config", &config]);
    assert_eq!(missing.status.code(), Some(2));
    let made = run(&["init", "--yes", "--config", &config]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert!(text(&made.stdout).contains("conclave ca sign"));
    for file in ["key.pem", "request.pem"] {
        assert!(town.path("hospital-a").join(file).exists());
    }
    assert!(town.path("ledger.sqlite").exists());
    let again = run(&["init", "--yes", "--config", &config]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("already"), "{}", text(&again.stderr));

    town.sign_request();
    let checked = run(&["run", "--check", "--json", "--config", &config]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    let json: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((&json["records"], &json["faults"]), (&2.into(), &0.into()), "{json}");
    let budget = run(&["budget", "--json", "--config", &config]);
    let json: serde_json::Value = serde_json::from_slice(&budget.stdout).unwrap();
    assert_eq!((json["epsilon_spent"].as_f64(), json["queries"].as_u64()), (Some(0.0), Some(0)));
    let shown = run(&["budget", "--config", &config]);
    assert!(text(&shown.stdout).contains("left 100"), "{}", text(&shown.stdout));

    std::fs::write(town.path("a.csv"), "height\n170\n\"\"\n").unwrap();
    let bad = run(&["run", "--check", "--config", &config]);
    assert_eq!(bad.status.code(), Some(2));
    let found = text(&bad.stdout);
    assert!(found.lines().any(|l| l.starts_with("FAULT  data") && l.contains("a.csv, line 3, column \"height\"")), "{found}");
    assert_eq!(found.matches("FAULT").count(), 1, "{found}");
    let before = std::fs::read(town.path("ledger.sqlite")).unwrap();
    let status = run(&["status", "--brief", "--config", &config]);
    assert_eq!(status.status.code(), Some(4));
    assert!(text(&status.stdout).contains("not running"), "{}", text(&status.stdout));
    assert_eq!(std::fs::read(town.path("ledger.sqlite")).unwrap(), before);
    let nowhere = run(&["run", "--config", "/nowhere/party.toml"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("/nowhere/party.toml"));
}

/// A budget is permanent: one in a copied configuration is not accepted as the owner's.
#[test]
fn init_freezes_no_budget_that_the_owner_has_not_named() {
    let town = Town::new();
    town.config(1);
    let config = town.path("party.toml").display().to_string();
    std::fs::remove_dir_all(town.path("hospital-a")).unwrap();
    let init = |more: &[&str]| run(&[&["init", "--config", &config], more].concat());
    let unconfirmed = init(&[]);
    let said = text(&unconfirmed.stderr);
    assert_eq!(unconfirmed.status.code(), Some(2), "{said}");
    assert!(
        ["epsilon = 8", "delta = 0.000001", "--epsilon 8 --delta 0.000001", "--yes"].iter().all(|part| said.contains(part)),
        "{said}"
    );
    let another = init(&["--epsilon", "3", "--delta", "1e-6"]);
    assert_eq!(another.status.code(), Some(2));
    assert!(text(&another.stderr).contains("use the same values in both"), "{}", text(&another.stderr));
    assert_eq!(init(&["--epsilon", "8"]).status.code(), Some(2), "one without the other");
    assert!(!town.path("ledger.sqlite").exists() && !town.path("hospital-a/key.pem").exists());
    let named = init(&["--epsilon", "8", "--delta", "1e-6"]);
    assert_eq!(named.status.code(), Some(0), "{}", text(&named.stderr));
    assert!(town.path("ledger.sqlite").exists());
}

/// `init` writes the path as typed: a relative path starts at the configuration's folder, as everywhere in it.
#[test]
fn the_records_of_a_new_configuration_are_where_the_configuration_says() {
    let town = Town::new();
    town.config(1);
    let config = town.path("new/party.toml").display().to_string();
    let new = [
        "--name",
        "hospital-z",
        "--coordinator",
        "https://c.example",
        "--data",
        "records/a.csv",
        "--epsilon",
        "8",
        "--delta",
        "1e-6",
    ];
    let made = run(&[&["init", "--config", &config], &new[..]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let written = std::fs::read_to_string(&config).unwrap();
    assert!(written.contains("path = \"records/a.csv\""), "{written}");
    std::fs::create_dir_all(town.path("new/records")).unwrap();
    std::fs::write(town.path("new/records/a.csv"), "height\n170\n180\n").unwrap();
    let checked = run(&["run", "--check", "--config", &config]);
    assert!(
        text(&checked.stdout).lines().any(|line| line.starts_with("good   data") && line.contains("2 rows")),
        "{}",
        text(&checked.stdout)
    );
}

/// A new ledger is a new budget: if a party's key exists but its ledger does not, none is made without the owner's confirmation.
#[test]
fn init_wants_a_word_where_a_party_was_before() {
    let town = Town::new();
    town.config(1);
    let config = town.path("party.toml").display().to_string();
    let (key, ledger) = (town.path("hospital-a/key.pem"), town.path("ledger.sqlite"));
    std::fs::remove_dir_all(town.path("hospital-a")).unwrap();
    // A failed attempt leaves no key behind, which would look like an earlier ledger's.
    std::fs::write(town.path("ledger.sqlite-wal"), "of another ledger").unwrap();
    assert_eq!(run(&["init", "--yes", "--config", &config]).status.code(), Some(2));
    assert!(!key.exists() && !ledger.exists());
    std::fs::remove_file(town.path("ledger.sqlite-wal")).unwrap();
    assert_eq!(run(&["init", "--yes", "--config", &config]).status.code(), Some(0));
    let made = std::fs::read(&key).unwrap();
    std::fs::remove_file(&ledger).unwrap();
    let refused = run(&["init", "--yes", "--config", &config]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(["key.pem", "backup", "--keep-identity"].iter().all(|part| said.contains(part)) && !ledger.exists(), "{said}");
    assert_eq!(run(&["init", "--yes", "--keep-identity", "--config", &config]).status.code(), Some(0));
    assert!(ledger.exists() && std::fs::read(&key).unwrap() == made);
}

#[cfg(unix)]
#[test]
fn the_private_key_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let town = Town::new();
    town.config(1);
    std::fs::remove_dir_all(town.path("hospital-a")).unwrap();
    run(&["init", "--yes", "--config", &town.path("party.toml").display().to_string()]);
    let mode = std::fs::metadata(town.path("hospital-a/key.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A party's files are private to their owner even under an open umask; only the ledger is readable by its auditors.
#[cfg(unix)]
#[test]
fn no_umask_opens_what_a_party_keeps() {
    use std::os::unix::fs::PermissionsExt;
    let town = Town::new();
    town.config(1);
    std::fs::remove_dir_all(town.path("hospital-a")).unwrap();
    let config = town.path("party.toml").display().to_string();
    for command in [&["init", "--yes"][..], &["refresh", "--reason", "to open it"]] {
        let open = ["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_conclave-party")];
        let done = Command::new("sh").args(open).args(command).args(["--config", &config]).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    }
    for (file, expected) in [
        ("ledger.sqlite.lock", 0o600),
        ("ledger.sqlite", 0o640),
        ("hospital-a/key.pem", 0o600),
        ("hospital-a/ledger-secret.key", 0o600),
        ("hospital-a/ledger-head", 0o600),
    ] {
        let mode = std::fs::metadata(town.path(file)).unwrap_or_else(|e| panic!("{file}: {e}")).permissions().mode();
        assert_eq!(mode & 0o777, expected, "{file}");
    }
}

/// `run` and `run --check` refuse a finding of `doctor`: a key that others may read.
#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let town = Town::new();
    town.config(1);
    let config = town.path("party.toml").display().to_string();
    assert_eq!(run(&["init", "--yes", "--keep-identity", "--config", &config]).status.code(), Some(0));
    assert_eq!(run(&["run", "--check", "--config", &config]).status.code(), Some(0));
    for file in ["hospital-a/key.pem", "hospital-a/ledger-secret.key"] {
        let set = |mode| std::fs::set_permissions(town.path(file), std::fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o640, 0o604] {
            set(mode);
            let checked = run(&["run", "--check", "--config", &config]);
            assert_eq!(checked.status.code(), Some(2));
            let found = text(&checked.stdout);
            assert!(found.lines().any(|l| l.starts_with("FAULT") && l.contains(file) && l.contains("chmod 600")), "{found}");
            let refused = run(&["run", "--config", &config]);
            assert_eq!(refused.status.code(), Some(2));
            assert!(text(&refused.stderr).contains("chmod 600"), "{}", text(&refused.stderr));
        }
        set(0o600);
    }
}

#[test]
fn owners_pin_each_other_by_one_list() {
    let town = Town::new();
    town.config(1);
    let config = town.path("party.toml").display().to_string();
    let own = run(&["fingerprint", "--config", &config]);
    assert_eq!(own.status.code(), Some(0), "{}", text(&own.stderr));
    let line = text(&own.stdout).trim_end().to_owned();
    assert!(line.starts_with("hospital-a sha256:") && line.len() == "hospital-a sha256:".len() + 64, "{line}");
    let json: serde_json::Value = serde_json::from_slice(&run(&["fingerprint", "--json", "--config", &config]).stdout).unwrap();
    assert_eq!((json["party"].as_str(), json["fingerprint"].as_str()), (Some("hospital-a"), line.split(' ').nth(1)));

    let other = format!("hospital-b sha256:{}", "0b".repeat(32));
    let list = town.path("members.txt").display().to_string();
    let pin = |members: &str, more: &[&str]| {
        std::fs::write(&list, members).unwrap();
        run(&[&["pin", "--list", &list, "--config", &config], more].concat())
    };
    let before = std::fs::read(town.path("party.toml")).unwrap();
    let members = format!("{other}\n{line}\n");
    let printed = pin(&members, &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    let digest = json["sha256"].as_str().unwrap().to_owned();
    assert_eq!(json["pinned"], serde_json::json!({ "hospital-b": [format!("sha256:{}", "0b".repeat(32))] }));
    // For people: the digest to read out, and text to paste, all of it TOML.
    let shown = pin(&members, &[]);
    let shown: toml::Table = text(&shown.stdout).parse().unwrap();
    assert!(shown["secure"]["pinned"].as_table().unwrap().contains_key("hospital-b"));
    // For scripts: no output unless the list has the stated digest, in any grouping.
    let groups: Vec<&str> = digest.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).unwrap()).collect();
    let good = pin(&members, &["--sha256", &groups.join(" ").to_uppercase()]);
    assert!(good.status.success() && text(&good.stdout).starts_with("[secure.pinned]\n"), "{}", text(&good.stdout));
    let longer = format!("{members}hospital-c sha256:{}\n", "0c".repeat(32));
    let own_changed = members.replace(&line, &format!("hospital-a sha256:{}", "0a".repeat(32)));
    for (members, heard, said) in [
        (longer.as_str(), digest.as_str(), "which differs from the stated one"),
        (&other, "", "does not name this party: add the line"),
        (&own_changed, "", "the list has been changed"),
        ("hospital-b sha256:1", "", "line 1"),
    ] {
        let more = ["--sha256", heard];
        let refused = pin(members, if heard.is_empty() { &[] } else { &more });
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
    }
    assert_eq!(std::fs::read(town.path("party.toml")).unwrap(), before);
}
