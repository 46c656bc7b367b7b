#![allow(clippy::unwrap_used)]
use super::*;

settings! {
    struct File { name: String, sampler: Chains, columns: BTreeMap<String, Column>, prior: BTreeMap<String, String> }
}
settings! {
    struct Chains { chains: u32 = 4 => within(1..=256), draws: Option<u64>, kind: Option<u8> => one_of(&[("guided", 1)]) }
}
settings! {
    struct Column { min: f64, max: Option<f64> }
}

fn fault(text: &str) -> String {
    read::<File>(&format!("name = \"f\"\n{text}")).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_file_has_its_values_and_defaults() {
    let text = "name = 'f'\n[sampler]\ndraws = 7\n[columns.x]\nmin = 1\n[prior]\nwhatever = 'x'";
    let (file, table) = read::<File>(text).unwrap();
    assert_eq!((file.name.as_str(), file.sampler.chains, file.sampler.draws, file.sampler.kind), ("f", 4, Some(7), None));
    assert_eq!((file.columns["x"].min, file.columns["x"].max, file.prior["whatever"].as_str()), (1.0, None, "x"));
    assert!(table.contains_key("sampler"));
    assert_eq!(read::<File>("name = 'f'").unwrap().0.sampler.chains, 4);
}

#[test]
fn faults_name_path_nearest_and_line() {
    let known = "`sampler.chanis` is not a known key (did you mean `chains`?); known here: chains, draws, kind";
    assert_eq!(fault("[sampler]\nchanis = 3"), known);
    assert!(fault("[columns.age]\nmni = 3").starts_with("`columns.age.mni` is not a known key (did you mean `min`?)"));
    assert!(!fault("zzzzzzzzzz = 3").contains("did you mean"));
    assert_eq!(fault("[columns.age]\nmax = 3"), "`columns.age.min` is missing");
    assert_eq!(fault("[sampler]\nchains = -3"), "`sampler.chains` must be between 1 and 256, not -3");
    assert_eq!(fault("[sampler]\ndraws = 'x'"), "`sampler.draws` must be a whole number, but is of type string (line 3)");
    assert_eq!(fault("[sampler]\nkind = 'gided'"), "`sampler.kind` is \"gided\" (did you mean \"guided\"?); known: guided");
    assert_eq!(fault("sampler = 3"), "`sampler` must be a table, but is of type integer (line 2)");
    assert!(fault("=").contains("line 2"));
}

#[test]
fn paths_are_those_of_all_keys() {
    let paths = ["name", "sampler.chains", "sampler.draws", "sampler.kind", "columns.NAME.min", "columns.NAME.max", "prior"];
    assert_eq!(File::KEYS.paths(), paths);
}

#[test]
fn ranges_are_stated_as_they_are_checked() {
    let open = within((Excluded(0.0), Excluded(1.0)));
    for (value, known) in [(Value::Float(0.5), true), (Value::Integer(1), false), (Value::Float(f64::NAN), false)] {
        assert_eq!(open(&value).is_ok(), known, "{value}");
    }
    assert_eq!(open(&Value::Float(0.0)).unwrap_err().message, "must lie strictly between 0 and 1, not 0.0");
    assert_eq!(within(1e-6..=1.0)(&Value::Integer(2)).unwrap_err().message, "must be between 1e-6 and 1, not 2");
    assert_eq!(within(0.0..1.0)(&Value::Integer(1)).unwrap_err().message, "must be at least 0 and below 1, not 1");
    for refused in [Value::Integer(0), Value::Float(f64::INFINITY), Value::Float(f64::NAN)] {
        assert!(positive(&refused).unwrap_err().message.starts_with("must be positive"), "{refused}");
    }
}
