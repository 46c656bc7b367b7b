//! The listing after a power cut in reserve mode.

use conclave_vault::ledger::*;
use conclave_vault::testing::{JOB, key};

use super::super::{Listing, list};
use super::Fixture;

#[test]
fn answers_that_were_given_afresh_are_listed_with_their_attempt() {
    let mut fixture = Fixture::with(|settings| settings.durability = Durability::Reserve { block: 6 });
    let files = ["ledger.sqlite", "ledger.sqlite-wal"].map(|name| fixture.folder.path().join(name));
    let keys = |attempt| [0, 1].map(|chain| QueryKey { attempt, ..key(chain, 0, 1 << 28) });
    let mut ledger = fixture.open();
    let ChargeOutcome::Granted(grants) = ledger.charge(JOB, 0, &keys(0)).unwrap() else { panic!("refused") };
    // The block is synced; what follows is not.
    let durable = files.each_ref().map(|file| std::fs::read(file).unwrap());
    fixture.record(&mut ledger, grants);
    drop(ledger);
    let _ = std::fs::remove_file(fixture.folder.path().join("ledger.sqlite-shm"));
    for (file, bytes) in files.iter().zip(durable) {
        std::fs::write(file, bytes).unwrap();
    }
    let mut ledger = fixture.open();
    let refused = ledger.charge(JOB, 0, &keys(0)).unwrap();
    assert!(matches!(refused, ChargeOutcome::Refused(Refusal::Attempt { chain: 0, least: 1 })), "{refused:?}");
    fixture.answer(&mut ledger, 0, &keys(1));
    ledger.close().unwrap();
    let mut listed = Vec::new();
    list::<LedgerError>(&fixture.settings, &Listing::default(), |row| {
        listed.push(row.attempt);
        Ok(())
    })
    .unwrap();
    assert_eq!(listed, [1, 1]);
}
