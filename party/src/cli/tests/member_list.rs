//! Lists of members, and pins.
#![allow(clippy::unwrap_used)]

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::Honest;

use conclave_vault::secure::{Peers, SecureSettings};

use super::*;

fn print_of(byte: u8) -> Fingerprint {
    Fingerprint([byte; 32])
}

#[test]
fn fingerprints_read_as_they_are_written() {
    let written = print_of(0xa7).to_string();
    assert_eq!((written.len(), written.parse()), (71, Ok(print_of(0xa7))));
    for bad in [&written[7..], &written[..70], &written.to_uppercase(), &format!("{written}0"), "", "sha256:"] {
        assert!(bad.parse::<Fingerprint>().unwrap_err().to_string().contains("64 hexadecimal digits"), "{bad}");
    }
}

#[test]
fn a_list_is_its_lines_whatever_their_order() {
    let lines = [("b", 2), ("a", 1), ("b", 3), ("c", 4)].map(|(name, byte)| member_line(name, &print_of(byte)));
    let list = MemberList::parse(&lines.join("\n")).unwrap();
    let other =
        MemberList::parse(&format!("# of the study\n\n {} # new key\n{}\r\n{}\n{}\n", lines[2], lines[3], lines[0], lines[1]));
    assert_eq!(list.digest(), other.unwrap().digest());
    let marked = MemberList::parse(&format!("\u{feff}{}", lines.join("\n")));
    assert_eq!(list.digest(), marked.unwrap().digest());
    // Anybody can compute it with `sort | sha256sum`.
    let mut sorted = lines.to_vec();
    sorted.sort();
    let text = sorted.join("\n") + "\n";
    let digest: [u8; 32] = sha2::Digest::finalize(<sha2::Sha256 as sha2::Digest>::new_with_prefix(text)).into();
    assert_eq!(list.digest(), conclave_vault::ledger::events::hex(&digest));
    for changed in [lines[..3].join("\n"), lines.join("\n").replace("\nb", "\nd"), lines.join("\n").replace("0404", "0405")] {
        let Ok(changed) = MemberList::parse(&changed) else { continue };
        assert_ne!(changed.digest(), list.digest());
    }
    let toml = list.to_toml("a");
    assert!(!toml.contains(&print_of(1).to_string()), "{toml}");
    let table: toml::Table = toml.parse().unwrap();
    let pinned = &table["secure"]["pinned"];
    assert_eq!(pinned["c"].as_str(), Some(print_of(4).to_string().as_str()));
    assert_eq!(pinned["b"].as_array().unwrap().len(), 2);
}

#[test]
fn an_invalid_list_is_reported_with_its_line() {
    let good = member_line("a", &print_of(1));
    for (text, named) in [
        (String::new(), "nobody"),
        ("# a\n".into(), "nobody"),
        (format!("{good}\nB {}", print_of(2)), "line 2"),
        (format!("{good}\nb"), "line 2"),
        (format!("{good} x"), "line 1"),
        (format!("{good}\n\nb sha256:12"), "line 3"),
        (format!("{good}\n{good}"), "twice"),
        (format!("{good}\n{}", member_line("b", &print_of(1))), "one key is one party's"),
    ] {
        let why = MemberList::parse(&text).unwrap_err();
        assert!(why.contains(named), "{why}");
    }
}

#[test]
fn pins_belong_to_one_party() {
    let mut pins = Pins::default();
    assert!(pins.is_empty());
    pins.add("a", print_of(1)).unwrap();
    pins.add("a", print_of(2)).unwrap();
    assert_eq!((pins.of("a").unwrap().len(), pins.of("b")), (2, None));
    assert!(pins.add("a", print_of(2)).is_err() && pins.add("b", print_of(2)).is_err());
}

/// The noise of parties that are not pinned, and may be fictitious, does not count for the owner's limits; if all are pinned, the
/// job's number counts.
#[test]
fn only_pinned_parties_protect() {
    let spec = |aggregation: &str| {
        JobSpec::parse(&format!(
            "name = \"m\"\nparties = [\"a\", \"b\", \"c\", \"d\", \"e\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"bernoulli\"\n\
             outcome = \"y\"\n[columns]\ny = {{ binary = true }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{aggregation}"
        ))
        .unwrap()
    };
    let secure = |colluders: u32| spec(&format!("[aggregation]\nmode = \"secure\"\ncolluders = {colluders}\n"));
    let mut settings = SecureSettings { peers: Peers::Ca, ..SecureSettings::default() };
    let trusted = |settings: &SecureSettings, spec: &JobSpec| settings.trusted("a", spec).get();
    assert_eq!(trusted(&settings, &secure(1)), 1);
    for (pinned, expected) in [("b", 1), ("c", 2), ("x", 2), ("d", 3), ("e", 4)] {
        settings.pins.add(pinned, print_of(pinned.as_bytes()[0])).unwrap();
        assert_eq!(trusted(&settings, &secure(1)), expected, "{pinned}");
    }
    assert_eq!([2, 3].map(|colluders| trusted(&settings, &secure(colluders))), [3, 2]);
    assert_eq!(settings.trusted("a", &spec("")), Honest::ALONE);
}
