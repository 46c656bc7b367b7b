#![allow(clippy::unwrap_used)]
use std::path::Path;

use super::*;
use conclave_vault::config::{Approve, ReplyDelay};
use conclave_vault::data::{BadRows, DateScale, Format, Memory, Precision};
use conclave_vault::ledger::Durability;
use conclave_vault::secure::{Fingerprint, Peers, SecureSettings};

const GOOD: &str = r#"
name = "hospital-a"
coordinator = "https://127.0.0.1:8443"
identity = "identity/"
ledger = "ledger.sqlite"
[data]
path = "admissions.csv"
[budget]
epsilon = 8
delta = 1e-6
[policy]
approve = "automatic"
analysts = ["alice"]
models = ["logistic"]
max_epsilon_per_job = 3.0
min_noise_sd = 0.5
columns = ["age", "readmitted"]
"#;

fn parse(text: &str) -> Result<PartyConfig, String> {
    PartyConfig::parse(text, Path::new("/etc/conclave"))
}

fn refusal(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    parse(&GOOD.replace(from, to)).unwrap_err()
}

#[test]
fn reads_a_whole_file_and_places_paths() {
    let c = parse(GOOD).unwrap();
    assert_eq!(c.ledger, Path::new("/etc/conclave/ledger.sqlite"));
    assert_eq!(c.data.path, Path::new("/etc/conclave/admissions.csv"));
    assert_eq!(c.data.bad_rows, BadRows::Stop);
    assert_eq!(c.policy.min_noise_sd, 0.5);
    assert_eq!(c.policy.max_epsilon_per_job, Some(3.0));
    assert_eq!(
        (c.key.clone(), c.ledger_settings().secret),
        ("/etc/conclave/identity/key.pem".into(), "/etc/conclave/identity/ledger-secret.key".into())
    );
    let apart = parse(&format!("key = \"/keys/key.pem\"\n{GOOD}")).unwrap();
    assert_eq!((apart.key.clone(), apart.ledger_settings().secret), ("/keys/key.pem".into(), "/keys/ledger-secret.key".into()));
    let absolute = GOOD.replace("admissions.csv", "/srv/a.csv");
    assert_eq!(parse(&absolute).unwrap().data.path, Path::new("/srv/a.csv"));
}

#[test]
fn threads_and_precision() {
    let defaults = parse(GOOD).unwrap();
    assert!(defaults.threads.get() >= 1 && defaults.precision == Precision::Double);
    assert_eq!(parse(&format!("threads = 3\n{GOOD}")).unwrap().threads.get(), 3);
    for bad in ["0", "-1", "100000"] {
        let refused = parse(&format!("threads = {bad}\n{GOOD}")).unwrap_err();
        assert!(refused.starts_with(&format!("`threads` must be between 1 and 1024, not {bad}")), "{refused}");
    }
    let with = |word: &str| parse(&GOOD.replace("[data]", &format!("[data]\nprecision = {word:?}"))).map(|c| c.precision);
    assert_eq!((with("f32"), with("f64")), (Ok(Precision::Single), Ok(Precision::Double)));
    let refused = with("f16").unwrap_err();
    assert!(refused.starts_with("`data.precision` is \"f16\"") && refused.ends_with("known: f64, f32"), "{refused}");
}

#[test]
fn the_way_to_the_coordinator() {
    let with = |lines: &str| parse(&format!("{lines}\n{GOOD}")).map(|c| (format!("{:?}", c.proxy.choice), c.proxy.ca_bundle));
    assert_eq!(with("").unwrap(), ("Environment".into(), None));
    assert_eq!(with("proxy = \"off\"").unwrap().0, "Off");
    let (proxy, bundle) = with("proxy = \"https://user:hunter2@proxy:3128\"\nca_bundle = \"proxy.pem\"").unwrap();
    assert_eq!((proxy.as_str(), bundle), ("Given(Proxy(https://proxy:3128))", Some("/etc/conclave/proxy.pem".into())));
    let refused = with("proxy = \"socks5://user:hunter2@proxy:1080\"").unwrap_err();
    assert!(refused.starts_with("`proxy` in party.toml names a SOCKS proxy") && !refused.contains("hunter2"), "{refused}");
}

#[test]
fn unknown_keys_name_the_nearest() {
    let e = refusal("min_noise_sd", "min_nois_sd");
    assert!(e.contains("policy.min_nois_sd") && e.contains("`min_noise_sd`"), "{e}");
}

#[test]
fn durability_and_where_the_head_is() {
    let c = parse(GOOD).unwrap();
    assert_eq!((c.durability, c.head_file), (Durability::Strict, "/etc/conclave/identity/ledger-head".into()));
    let with = |text: &str| {
        parse(&GOOD.replace(
            "ledger = \"ledger.sqlite\"",
            &format!(
                "ledger = \"l\"
{text}"
            ),
        ))
    };
    let reserve = with(
        "durability = \"reserve\"
head_file = \"/var/head\"",
    )
    .unwrap();
    assert_eq!((reserve.durability, reserve.head_file), (Durability::Reserve { block: 64 }, "/var/head".into()));
    let named = with(
        "durability = \"reserve\"
reserve_block = 7",
    )
    .unwrap();
    assert_eq!(named.durability, Durability::Reserve { block: 7 });
    for (text, named) in [
        ("durability = \"reserved\"", "did you mean \"reserve\""),
        ("reserve_block = 7", "durability = \"reserve\""),
        (
            "durability = \"reserve\"
reserve_block = 0",
            "reserve_block",
        ),
    ] {
        let e = with(text).unwrap_err();
        assert!(e.contains(named), "{e}");
    }
    let e = refusal(
        "min_noise_sd",
        "max_epsilon_per_analyst = -1
min_noise_sd",
    );
    assert!(e.contains("max_epsilon_per_analyst"), "{e}");
}

#[test]
fn approval_is_by_hand_unless_written_down() {
    let approve = |to: &str| parse(&GOOD.replace("approve = \"automatic\"", to)).map(|c| c.policy.approve);
    assert_eq!(approve(""), Ok(Approve::Manual));
    assert_eq!(approve("approve = \"manual\""), Ok(Approve::Manual));
    assert_eq!(approve("approve = \"automatic\""), Ok(Approve::Automatic));
    assert!(approve("approve = \"auto\"").unwrap_err().contains("manual, automatic"));
}

#[test]
fn the_unit_of_privacy() {
    let with = |data: &str, policy: &str| {
        let text = GOOD.replace("path = \"admissions.csv\"", &format!("path = \"a.csv\"\n{data}"));
        parse(&text.replace("min_noise_sd = 0.5", policy))
    };
    let unit = |data: &str| with(data, "reply_delay_ms = 5").map(|c| c.budget.unit.to_string());
    assert_eq!(unit("").unwrap(), "row, replace");
    assert_eq!(unit("adjacency = \"add-remove\"").unwrap(), "row, add-remove");
    let person = "person = \"patient_id\"\nmax_records_per_person = 5";
    assert_eq!(unit(person).unwrap(), "person of at most 5 records, replace");
    assert_eq!(with(person, "").unwrap().data.person.as_deref(), Some("patient_id"));
    for (data, named) in [
        ("person = \"patient_id\"", "max_records_per_person"),
        ("max_records_per_person = 5", "data.person"),
        ("person = \"patient_id\"\nmax_records_per_person = 0", "max_records_per_person"),
        ("person = \"patient_id\"\nmax_records_per_person = 70000", "65536"),
        ("person = \"age\"\nmax_records_per_person = 5", "policy.columns"),
        ("adjacency = \"both\"", "replace, add-remove"),
    ] {
        assert!(unit(data).unwrap_err().contains(named), "{data}");
    }
    let e = with("adjacency = \"add-remove\"", "").unwrap_err();
    assert!(e.contains("reply_delay_ms") && e.contains("number"), "{e}");
}

#[test]
fn bad_values_name_their_key() {
    for (from, to, named) in [
        ("epsilon = 8", "epsilon = 0", "epsilon"),
        ("epsilon = 8", "epsilon = nan", "epsilon"),
        ("delta = 1e-6", "delta = 1.0", "delta"),
        ("max_epsilon_per_job = 3.0", "max_epsilon_per_job = inf", "max_epsilon_per_job"),
        ("min_noise_sd = 0.5", "min_noise_sd = -1", "min_noise_sd"),
        ("\"logistic\"", "\"logistics\"", "did you mean \"logistic\""),
        ("min_noise_sd = 0.5", "max_iterations_per_job = 0", "max_iterations_per_job"),
        ("hospital-a", "Hospital A", "name"),
        ("https://", "http://", "coordinator"),
        ("\"age\", ", "\"readmitted\", ", "twice"),
        ("[\"age\", \"readmitted\"]", "[]", "columns"),
        ("path = \"admissions.csv\"", "path = \"a.csv\"\nbad_rows = \"skip\"", "stop, drop"),
        ("name = \"hospital-a\"", "", "name"),
    ] {
        let e = refusal(from, to);
        assert!(e.contains(named), "{e} should name {named}");
    }
}

#[test]
fn what_is_kept_in_memory() {
    let with = |file: &str, words: &str, delay: &str| {
        let data = format!("path = \"a.{file}\"\n{words}");
        parse(&GOOD.replace("path = \"admissions.csv\"", &data).replace("min_noise_sd = 0.5", delay)).map(|c| c.data.memory)
    };
    let fixed = "reply_delay_ms = 100";
    assert_eq!(with("csv", "", fixed), Ok(Memory::Copies));
    for (word, memory) in [("copies", Memory::Copies), ("lean", Memory::Lean), ("stream", Memory::Stream)] {
        assert_eq!(with("parquet", &format!("memory = {word:?}"), fixed), Ok(memory));
    }
    let persons = "memory = \"stream\"\nperson = \"who\"\nmax_records_per_person = 2";
    assert_eq!(
        (with("csv.gz", "memory = \"stream\"", fixed), with("csv", persons, fixed)),
        (Ok(Memory::Stream), Ok(Memory::Stream))
    );
    for (file, words, delay, said) in [
        ("csv", "snapshot = \"columns\"", fixed, "write memory = \"stream\""),
        ("parquet", "memory = \"stream\"", "", "`policy.reply_delay_ms` must be a number"),
        ("csv", "memory = \"lean\"", "", "`policy.reply_delay_ms` must be a number"),
        ("parquet", "memory = \"streams\"", fixed, "did you mean \"stream\""),
    ] {
        let e = with(file, words, delay).unwrap_err();
        assert!(e.contains(said), "{e}");
    }
}

#[test]
fn how_the_file_is_written() {
    let with = |file: &str, words: &str| {
        parse(&GOOD.replace("path = \"admissions.csv\"", &format!("path = \"a.{file}\"\n{words}"))).map(|c| c.data.format)
    };
    assert_eq!(with("csv", ""), Ok(Format::default()));
    let words = "delimiter = \"\\t\"\ndecimal = \",\"\nmissing = [\"NA\", \"-99\"]\ndates = { seen = \"days since 2020-01-01\" }";
    let read = with("csv.gz", words).unwrap();
    assert_eq!((read.delimiter, read.decimal, read.missing), (b'\t', b',', vec!["NA".to_owned(), "-99".to_owned()]));
    assert_eq!(read.dates["seen"], DateScale::parse("days since 2020-01-01").unwrap());
    assert!(with("csv", "quotes = true").unwrap().quotes && !with("csv", "quotes = false").unwrap().quotes);
    for (file, words, said) in [
        ("parquet", "quotes = false", "a Parquet file needs none"),
        ("csv", "delimiter = \"tab\"", "`data.delimiter` is \"tab\""),
        ("csv", "decimal = \";\"", "`data.decimal` is \";\""),
        ("parquet", "decimal = \",\"", "a Parquet file needs none"),
        ("parquet", "delimiter = \";\"", "a Parquet file needs none"),
        ("csv", "missing = [\" \"]", "an empty value is missing in any case"),
        ("csv", "dates = { seen = \"months\" }", "`data.dates.seen` is \"months\": it must be one of seconds"),
        ("csv", "text = [\"seen\"]\ndates = { seen = \"days\" }", "`data.dates` names \"seen\""),
        ("csv", "delimeter = \";\"", "`delimiter`"),
    ] {
        let e = with(file, words).unwrap_err();
        assert!(e.contains(said), "{e}");
    }
}

#[test]
fn reply_delays() {
    let delay = |value: &str| parse(&GOOD.replace("min_noise_sd = 0.5", value)).map(|c| c.policy.reply_delay);
    assert_eq!(delay(""), Ok(ReplyDelay::Auto));
    assert_eq!(delay("reply_delay_ms = \"auto\""), Ok(ReplyDelay::Auto));
    assert_eq!(delay("reply_delay_ms = 0"), Ok(ReplyDelay::Off));
    for (text, micros) in [("5", 5000), ("0.25", 250)] {
        let fixed = ReplyDelay::Fixed(std::time::Duration::from_micros(micros));
        assert_eq!(delay(&format!("reply_delay_ms = {text}")), Ok(fixed));
    }
    for bad in ["-1", "0.0", "nan", "inf", "1e9", "\"fast\"", "true"] {
        assert!(delay(&format!("reply_delay_ms = {bad}")).unwrap_err().contains("reply_delay_ms"), "{bad}");
    }
}

/// Automatic approval admits newer kinds of release only if the owner names them.
#[test]
fn releases_are_admitted_by_name() {
    let releases = |approve: &str, named: &str| {
        let text = GOOD.replace("approve = \"automatic\"", &format!("approve = \"{approve}\"\n{named}"));
        parse(&text).map(|c| c.policy.releases)
    };
    let of = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(releases("automatic", ""), Ok(of(&["ratio", "statistic"])));
    assert_eq!(releases("manual", ""), Ok(None));
    for approve in ["automatic", "manual"] {
        assert_eq!(releases(approve, "releases = [\"score\", \"moments\"]"), Ok(of(&["score", "moments"])));
        let e = releases(approve, "releases = [\"scores\"]").unwrap_err();
        for there in ["policy.releases", "\"scores\"", "did you mean \"score\"", "ratio, statistic, moments, score, table"] {
            assert!(e.contains(there), "{there} in {e}");
        }
    }
}

#[test]
fn secure_jobs_are_off_until_allowed() {
    let with = |lines: &str| parse(&format!("{GOOD}\n[secure]\n{lines}")).map(|c| c.secure);
    assert_eq!(parse(GOOD).unwrap().secure, SecureSettings::default());
    assert!(!with("").unwrap().allow && secure_concerns(&with("").unwrap()).is_empty());
    let print_of = |byte: &str| format!("sha256:{}", byte.repeat(32));
    let (b, c, d) = (print_of("0b"), print_of("0c"), print_of("0d"));
    let text = format!(
        "allow = true\ncolluders_at_least = 2\nmax_epsilon_if_all_collude = 12\nkeep_key_days = 7\n[secure.pinned]\n\
         hospital-b = \"{b}\"\nhospital-c = [\"{c}\", \"{d}\"]"
    );
    let secure = with(&text).unwrap();
    assert_eq!((secure.allow, secure.peers, secure.colluders_at_least), (true, Peers::Pinned, Some(2)));
    assert_eq!((secure.max_epsilon_if_all_collude, secure.keep_key_days), (Some(12.0), 7));
    assert_eq!(secure.pins.of("hospital-c").unwrap(), [c.as_str(), &d].map(|text| text.parse::<Fingerprint>().unwrap()));
    assert_eq!(secure.pins.of("hospital-d"), None);
    assert!(secure_concerns(&secure).is_empty());
    // Settings worth a warning.
    assert_eq!(secure_concerns(&with("allow = true").unwrap()).len(), 2);
    let by_ca = with("allow = true\npeers = \"ca\"\nmax_epsilon_if_all_collude = 8").unwrap();
    assert!(secure_concerns(&by_ca).len() == 1 && secure_concerns(&by_ca)[0].contains("make up the other parties"));
}

/// A head copied together with the ledger is no evidence that the ledger is the newest.
#[test]
fn secure_jobs_want_the_head_in_another_folder_than_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["identity", "state"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("state/ledger.sqlite"), "").unwrap();
    let apart = |ledger: &str, head: &str, allow: bool| {
        let at = GOOD.replace("ledger = \"ledger.sqlite\"", &format!("ledger = \"{ledger}\"\n{head}"));
        PartyConfig::parse(&format!("{at}\n[secure]\nallow = {allow}"), folder.path()).unwrap().check_head_location()
    };
    let head = |file: &str| format!("head_file = \"{file}\"");
    // The layout of `init`, the samples and the demo.
    assert_eq!(apart("ledger.sqlite", "", true), Ok(()));
    assert_eq!(apart("state/ledger.sqlite", &head("identity/../ledger-head"), true), Ok(()));
    for beside in ["state/ledger-head", "identity/../state/head", "./state/nothing-yet"] {
        let e = apart("state/ledger.sqlite", &head(beside), true).unwrap_err();
        let named = ["`head_file`", beside.rsplit('/').next().unwrap(), "`ledger`", "[secure] allow", "move that file"];
        assert!(named.iter().all(|part| e.contains(part)), "{e}");
        assert_eq!(apart("state/ledger.sqlite", &head(beside), false), Ok(()), "no masks, no keys");
    }
    // A start checks it first.
    let text = GOOD.replace("ledger = \"ledger.sqlite\"", "ledger = \"ledger.sqlite\"\nhead_file = \"head\"");
    let start = |more: &str| {
        let config = PartyConfig::parse(&format!("{text}\n{more}"), folder.path()).unwrap();
        crate::daemon::prepare(&config).err().unwrap().to_string()
    };
    assert!(start("[secure]\nallow = true").contains("`head_file` is "));
    assert!(!start("").contains("`head_file`"));
    // Also before the ledger exists, and with the identity folder's default.
    assert!(apart("state/none-yet.sqlite", &head("state/head"), true).is_err());
    assert!(apart("identity/ledger.sqlite", "", true).is_err());
    #[cfg(unix)]
    {
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(folder.path().join(to), folder.path().join(at)).unwrap();
        link("state", "elsewhere");
        assert!(apart("state/ledger.sqlite", &head("elsewhere/head"), true).is_err());
        link("state/ledger.sqlite", "identity/ledger.sqlite");
        assert!(apart("identity/ledger.sqlite", &head("state/head"), true).is_err());
        assert!(apart("identity/ledger.sqlite", &head("identity/head"), true).is_err());
    }
}

#[test]
fn the_greater_half_of_the_others_may_collude_unless_the_owner_says_otherwise() {
    let least = |given| SecureSettings { colluders_at_least: given, ..SecureSettings::default() };
    let by_default = [3, 4, 5, 6, 10, 11, 1024].map(|members| least(None).least_colluders(members));
    assert_eq!(by_default, [1, 2, 2, 3, 5, 5, 512]);
    assert_eq!(least(Some(1)).least_colluders(1024), 1);
}

#[test]
fn bad_settings_of_secure_jobs_name_their_key_and_the_remedy() {
    let print = format!("sha256:{}", "0b".repeat(32));
    for (lines, named) in [
        ("alow = true", "`allow`".to_owned()),
        ("peers = \"pined\"", "did you mean \"pinned\"".to_owned()),
        ("peers = \"ca\"", "`secure.max_epsilon_if_all_collude` must be set".to_owned()),
        ("max_epsilon_if_all_collude = 7.9", "below budget.epsilon of 8".to_owned()),
        ("max_epsilon_if_all_collude = nan", "finite".to_owned()),
        ("max_epsilon_if_all_collude = inf", "finite".to_owned()),
        ("colluders_at_least = 0", "`secure.colluders_at_least` must be between 1 and 1022, not 0".to_owned()),
        ("colluders_at_least = 1023", "1022".to_owned()),
        ("keep_key_days = 0", "`secure.keep_key_days` must be between 1 and 36500, not 0".to_owned()),
        ("keep_key_days = 36501", "36500".to_owned()),
        (&format!("pinned = {{ \"B x\" = \"{print}\" }}"), "`secure.pinned` contains \"B x\"".to_owned()),
        (
            "pinned = { b = \"0b0b\" }",
            "`secure.pinned.b` names \"0b0b\", which must be `sha256:` and 64 hexadecimal digits".to_owned(),
        ),
        ("pinned = { b = [] }", "`secure.pinned.b` is an empty list".to_owned()),
        ("pinned = { b = 7 }", "a fingerprint or a list".to_owned()),
        (&format!("pinned = {{ b = \"{print}\", c = \"{print}\" }}"), "one key is one party's".to_owned()),
        (&format!("pinned = {{ b = [\"{print}\", \"{print}\"] }}"), "twice".to_owned()),
    ] {
        let e = parse(&format!("{GOOD}\n[secure]\n{lines}")).unwrap_err();
        assert!(e.contains(&named), "{lines}: {e}");
    }
}
