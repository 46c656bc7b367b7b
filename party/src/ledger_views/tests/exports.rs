//! Exports of single integers, line by line.

use conclave_vault::testing::key;

use super::super::export;
use super::Fixture;

#[test]
fn an_export_is_checked_line_by_line() {
    let mut fixture = Fixture::new();
    let mut ledger = fixture.open();
    for iteration in 0..3 {
        fixture.answer(&mut ledger, iteration, &[key(0, 1, 1000), key(1, 1, 1000)]);
    }
    // Also while the party runs.
    let mut text = Vec::new();
    let (signed, state) = export::write(&fixture.settings, &mut text).unwrap();
    assert_eq!((state.seq(), state.hash()), (ledger.state().seq(), ledger.state().hash()));
    let seal = export::Seal { signature: "00ff".into(), scheme: "none".into(), certificate: String::new() };
    export::write_line(&mut text, &seal).unwrap();
    let text = String::from_utf8(text).unwrap();
    let checked = export::check(text.as_bytes()).unwrap();
    assert_eq!((checked.signed, checked.state.hash(), checked.state.answers()), (signed.clone(), state.hash(), 6));
    assert_eq!(checked.seal.signature_bytes(), Some(vec![0, 255]));
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        // An entry that nothing follows is missed by the signature alone.
        let shorter = export::check(fewer.join("\n").as_bytes());
        assert!(shorter.is_err() || shorter.is_ok_and(|c| c.signed != signed), "line {at} is missing");
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert!(export::check(twice.join("\n").as_bytes()).is_err(), "line {at} stands twice");
        // Every digit counts: the entry shows it, or what was signed does.
        for (place, digit) in lines[at].char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let other = if digit == '9' { '8' } else { char::from(digit as u8 + 1) };
            let mut changed = lines.clone();
            let line = format!("{}{other}{}", &lines[at][..place], &lines[at][place + 1..]);
            changed[at] = &line;
            if let Ok(checked) = export::check(changed.join("\n").as_bytes()) {
                assert!(checked.signed != signed || at + 1 == lines.len(), "{line}");
            }
        }
    }
}
