#![allow(clippy::unwrap_used)]
use super::*;

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
    let absolute = GOOD.replace("admissions.csv", "/srv/a.csv");
    assert_eq!(parse(&absolute).unwrap().data.path, Path::new("/srv/a.csv"));
}

#[test]
fn unknown_keys_name_the_nearest() {
    let e = refusal("min_noise_sd", "min_nois_sd");
    assert!(e.contains("policy.min_nois_sd") && e.contains("`min_noise_sd`"), "{e}");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for (from, to, named) in [
        ("ledger = \"ledger.sqlite\"", "ledger = \"l\"\ndurability = \"reserve\"", "strict"),
        ("path = \"admissions.csv\"", "path = \"a.csv\"\nadjacency = \"add-remove\"", "replace"),
        ("path = \"admissions.csv\"", "path = \"a.csv\"\nperson = \"patient_id\"", "data.person"),
        ("path = \"admissions.csv\"", "path = \"a.csv\"\nmax_records_per_person = 3", "max_records_per_person"),
        ("\"automatic\"", "\"manual\"", "automatic"),
        ("min_noise_sd = 0.5", "reply_delay_ms = \"auto\"", "reply_delay_ms"),
        ("min_noise_sd = 0.5", "reply_delay_ms = 5", "reply_delay_ms"),
    ] {
        let e = refusal(from, to);
        assert!(e.contains("not built yet") && e.contains(named), "{e}");
    }
    parse(&GOOD.replace("min_noise_sd = 0.5", "reply_delay_ms = 0")).unwrap();
}

#[test]
fn approval_must_be_written_down() {
    let e = refusal("approve = \"automatic\"", "");
    assert!(e.contains("manual") && e.contains("approve = \"automatic\""), "{e}");
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
