//! Ledgers of the format before in exports, reports and inspections.

use std::path::Path;

use conclave_vault::ledger::*;
use conclave_vault::noise::Noise;
use conclave_vault::testing::{budget, key};
use rusqlite::Connection;

use super::super::{export, inspect, report_kept};
use super::Fixture;

/// The vault's ledger of the version before, with `export.jsonl`, what its software exported.
const OLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vault/tests/ledger-format-3");
const FILES: [&str; 4] = ["ledger.sqlite", "ledger.sqlite-wal", "ledger-secret.key", "ledger-head"];
/// The format before.
const FORMER: i32 = 3;

impl Fixture {
    fn old() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in FILES {
            std::fs::copy(Path::new(OLD).join(name), at(name)).unwrap();
        }
        let settings = LedgerSettings {
            secret: at("ledger-secret.key"),
            head_file: at("ledger-head"),
            ..LedgerSettings::beside(&at("ledger.sqlite"), "hospital-a", &budget())
        };
        Self { folder, noise: Noise::from_os().unwrap(), settings }
    }

    fn format(&self) -> i32 {
        let connection = Connection::open(self.path()).unwrap();
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    fn exported(&self) -> Vec<String> {
        let mut text = Vec::new();
        export::write(&self.settings, &mut text).unwrap();
        String::from_utf8(text).unwrap().lines().skip(1).map(str::to_owned).collect()
    }
}

/// Entry by entry what it was, and then that it was converted, once.
#[test]
fn a_converted_ledger_is_exported_as_its_own_version_exported_it() {
    let mut fixture = Fixture::old();
    assert_eq!(fixture.format(), FORMER);
    let old: Vec<String> =
        std::fs::read_to_string(Path::new(OLD).join("export.jsonl")).unwrap().lines().skip(1).map(str::to_owned).collect();
    // The last line is the signature's.
    let old = &old[..old.len() - 1];
    let mut ledger = fixture.open();
    let seq = ledger.state().seq();
    fixture.answer(&mut ledger, 21, &[key(0, 5, 1 << 22), key(1, 6, 1 << 22)]);
    ledger.close().unwrap();
    let new = fixture.exported();
    assert_eq!(new[..old.len()], *old);
    assert!(new[old.len()].contains(r#""kind":"convert""#), "{}", new[old.len()]);
    assert_eq!(new.iter().filter(|line| line.contains(r#""kind":"convert""#)).count(), 1);
    let entries = fixture.open().state().seq();
    assert_eq!(fixture.exported().iter().filter(|line| line.contains("convert")).count(), 1);
    assert!(entries > seq);
}

/// An export by the previous version is still checked.
#[test]
fn an_export_of_the_version_before_is_read() {
    let file = std::fs::File::open(Path::new(OLD).join("export.jsonl")).unwrap();
    let checked = export::check(std::io::BufReader::new(file)).unwrap();
    assert!(checked.state.answers() > 20 && checked.state.genesis().unwrap().format == FORMER);
}

#[test]
fn until_its_party_starts_it_is_read_by_its_own_version_alone() {
    let fixture = Fixture::old();
    let error = report_kept(&fixture.settings).unwrap_err().to_string();
    assert!(error.contains("format 3") && error.contains("start it once"), "{error}");
    assert!(matches!(inspect(&fixture.settings, 1.0), Err(LedgerError::Former(_))));
    assert_eq!(fixture.format(), FORMER);
    drop(fixture.open());
    report_kept(&fixture.settings).unwrap();
}
