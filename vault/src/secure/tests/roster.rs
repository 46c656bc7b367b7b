//! Valid rosters, and each reason for a refusal.

use std::time::{Duration, SystemTime};

use conclave_privacy::secagg::{MaskPublic, MaskSecret, Roster};
use conclave_proto::ca::KeyedPem;
use conclave_proto::identity::Role;
use conclave_proto::revoked::RevokedList;
use conclave_proto::{mask_key, v1};

use super::town::{DAYS, authority, fingerprint, identity};
use crate::secure::{MemberStanding, Peers, Pins, RosterCheck, RosterRefusal, SecureSettings};

const JOB: &str = "job-1";
const SPEC: [u8; 32] = [5; 32];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn public(byte: u8) -> MaskPublic {
    MaskSecret::from_bytes([byte; 32].into()).public()
}

fn entry(ca: &KeyedPem, role: Role, name: &str, job: &str, public: &MaskPublic) -> v1::RosterEntry {
    let folder = tempfile::tempdir().unwrap();
    let signer = identity(ca, folder.path(), role, name);
    v1::RosterEntry { name: name.to_owned(), key: mask_key::sign(&signer, job, &SPEC, public).ok() }
}

/// Four parties of one CA; "b" checks the roster.
struct Town {
    ca: KeyedPem,
    entries: Vec<v1::RosterEntry>,
    parties: Vec<String>,
    settings: SecureSettings,
    members: Pins,
    revoked: Option<RevokedList>,
    job: &'static str,
    spec: [u8; 32],
    colluders: u32,
    own: MaskPublic,
    moment: SystemTime,
}

impl Town {
    fn new() -> Self {
        let ca = authority("town");
        let entries: Vec<_> = (1..).zip(NAMES).map(|(byte, name)| entry(&ca, Role::Party, name, JOB, &public(byte))).collect();
        let mut settings = SecureSettings::default();
        for of in entries.iter().filter(|entry| entry.name != "b") {
            settings.pins.add(&of.name, fingerprint(&of.key.as_ref().unwrap().certificate)).unwrap();
        }
        Self {
            parties: NAMES.map(str::to_owned).to_vec(),
            entries,
            ca,
            settings,
            members: Pins::default(),
            revoked: None,
            job: JOB,
            spec: SPEC,
            colluders: 2,
            own: public(2),
            moment: SystemTime::now(),
        }
    }

    fn check(&self) -> Result<(Roster, Vec<MemberStanding>), RosterRefusal> {
        let check = RosterCheck {
            job: self.job,
            spec_digest: &self.spec,
            parties: &self.parties,
            colluders: self.colluders,
            members: &self.members,
            own: ("b", self.own),
            ca_pem: &self.ca.pem,
            revoked: self.revoked.as_ref(),
            settings: &self.settings,
            moment: self.moment,
        };
        check.check(&self.entries).map(|checked| (checked.roster, checked.standing))
    }

    /// Returns the outcome for a changed roster.
    fn with(change: impl FnOnce(&mut Self)) -> Result<(Roster, Vec<MemberStanding>), RosterRefusal> {
        let mut town = Self::new();
        change(&mut town);
        town.check()
    }

    fn key(&mut self, place: usize) -> &mut v1::MaskKey {
        self.entries[place].key.as_mut().unwrap()
    }

    fn certificate(&self, place: usize) -> &str {
        &self.entries[place].key.as_ref().unwrap().certificate
    }

    /// Replaces the identity key of "c", certified by the same CA or another.
    fn with_another_c(&mut self, ca: &KeyedPem) {
        self.entries[2] = entry(ca, Role::Party, "c", JOB, &public(3));
    }
}

#[test]
fn a_roster_passes_and_states_who_is_pinned() {
    let town = Town::new();
    let (roster, standing) = town.check().unwrap();
    assert_eq!((roster.members().len(), roster.honest(), roster.place("b")), (4, 2, Some(1)));
    for (place, member) in roster.members().iter().enumerate() {
        assert_eq!((member.name.as_str(), member.public), (NAMES[place], public(place as u8 + 1)));
        assert_eq!(member.identity, fingerprint(town.certificate(place)).0);
    }
    assert!(standing.iter().all(|member| member.pinned && member.serial.len() > 8));
    // By the CA's word alone only this party is pinned.
    let (same, standing) = Town::with(|town| {
        (town.settings.peers, town.settings.pins) = (Peers::Ca, Pins::default());
    })
    .unwrap();
    assert_eq!(same.members().len(), 4);
    assert_eq!(standing.iter().map(|member| member.pinned).collect::<Vec<_>>(), [false, true, false, false]);
}

#[test]
fn other_members_and_other_orders_are_refused() {
    let refused = |change: fn(&mut Town)| Town::with(change).unwrap_err();
    assert_eq!(refused(|town| town.entries.swap(0, 3)), RosterRefusal::Members);
    assert_eq!(refused(|town| drop(town.entries.pop())), RosterRefusal::Members);
    assert_eq!(refused(|town| town.entries.push(town.entries[0].clone())), RosterRefusal::Members);
    assert_eq!(refused(|town| town.entries[2].name = "e".into()), RosterRefusal::Members);
    // A job without this party.
    assert_eq!(
        refused(|town| {
            town.parties.remove(1);
            town.entries.remove(1);
        }),
        RosterRefusal::Members
    );
    // One member twice.
    assert_eq!(
        refused(|town| {
            town.parties[3] = "a".into();
            town.entries[3] = town.entries[0].clone();
        }),
        RosterRefusal::NoRoster
    );
    for colluders in [0, 3, 4, u32::MAX] {
        assert_eq!(Town::with(|town| town.colluders = colluders).unwrap_err(), RosterRefusal::NoRoster);
    }
}

#[test]
fn a_key_that_its_party_has_not_signed_for_this_job_is_refused() {
    let refused = |change: fn(&mut Town)| Town::with(change).unwrap_err();
    for change in [
        // Another key, that of another member, one in another form, none.
        (|town| town.key(2).public = public(9).bytes().to_vec()) as fn(&mut Town),
        |town| town.entries[2].key = Some(v1::MaskKey { ..town.entries[3].key.clone().unwrap() }),
        |town| town.key(2).public[31] |= 0x80,
        |town| town.entries[2].key = None,
        |town| town.key(2).signature[10] ^= 1,
        |town| town.key(2).certificate.clear(),
        |town| town.key(2).certificate = "c".repeat(1 << 20),
        // A key of another job, of another text, of another role.
        |town| town.entries[2] = entry(&town.ca, Role::Party, "c", "job-2", &public(3)),
        |town| town.spec = [6; 32],
        |town| town.job = "job-2",
        |town| town.entries[2] = entry(&town.ca, Role::Analyst, "c", JOB, &public(3)),
    ] {
        assert_eq!(refused(change), RosterRefusal::Signature);
    }
}

#[test]
fn certificates_are_of_ones_own_ca_valid_and_not_revoked() {
    assert_eq!(Town::with(|town| town.with_another_c(&authority("rogue"))).unwrap_err(), RosterRefusal::Certificate);
    let late = Duration::from_secs(u64::from(DAYS + 1) * 24 * 3600);
    assert_eq!(Town::with(|town| town.moment += late).unwrap_err(), RosterRefusal::Certificate);
    for named in ["c", "party/c"] {
        let revoke = |town: &mut Town| town.revoked = Some(RevokedList::parse(named).unwrap());
        assert_eq!(Town::with(revoke).unwrap_err(), RosterRefusal::Revoked);
    }
    let serial = |town: &mut Town| {
        let serial = town.check().unwrap().1[2].serial.clone();
        town.revoked = Some(RevokedList::parse(&serial).unwrap());
    };
    assert_eq!(Town::with(serial).unwrap_err(), RosterRefusal::Revoked);
    assert!(Town::with(|town| town.revoked = Some(RevokedList::parse("analyst/c\nparty/e").unwrap())).is_ok());
}

#[test]
fn pins_and_the_jobs_own_fingerprints_must_agree() {
    // A party of the right CA with another key: anyone who keeps the CA can make one.
    let swap = |town: &mut Town| {
        let ca = KeyedPem { pem: town.ca.pem.clone(), key_pem: town.ca.key_pem.clone() };
        town.with_another_c(&ca);
    };
    assert_eq!(Town::with(swap).unwrap_err(), RosterRefusal::NotPinned);
    let trusting = |town: &mut Town| {
        swap(town);
        town.settings.peers = Peers::Ca;
    };
    assert_eq!(Town::with(trusting).unwrap_err(), RosterRefusal::NotPinned, "a pin holds with the CA's word, too");
    let unpinned = |town: &mut Town| {
        trusting(town);
        town.settings.pins = Pins::default();
    };
    let (_, standing) = Town::with(unpinned).unwrap();
    assert!(!standing[2].pinned);
    assert_eq!(Town::with(|town| town.settings.pins = Pins::default()).unwrap_err(), RosterRefusal::NotPinned);
    // Old and new key side by side.
    let both = |town: &mut Town| {
        let old = fingerprint(town.certificate(2));
        swap(town);
        let mut pins = Pins::default();
        for (place, name) in [(0, "a"), (2, "c"), (3, "d")] {
            pins.add(name, fingerprint(town.certificate(place))).unwrap();
        }
        pins.add("c", old).unwrap();
        town.settings.pins = pins;
    };
    assert!(Town::with(both).unwrap().1[2].pinned);
    // The job file's fingerprints, where it names any; this party's own among them.
    for place in [0, 1] {
        let named = |town: &mut Town| town.members.add(NAMES[place], fingerprint(town.certificate(place))).unwrap();
        assert!(Town::with(named).is_ok());
        let another = |town: &mut Town| town.members.add(NAMES[place], fingerprint(town.certificate(3))).unwrap();
        assert_eq!(Town::with(another).unwrap_err(), RosterRefusal::NotTheJobs);
    }
}

#[test]
fn a_roster_has_ones_own_key_and_each_key_once() {
    assert_eq!(Town::with(|town| town.own = public(9)).unwrap_err(), RosterRefusal::NotOwn);
    // "c" signs this party's mask key as its own.
    let reflected = |town: &mut Town| {
        town.entries[2] = entry(&town.ca, Role::Party, "c", JOB, &public(2));
        let mut pins = Pins::default();
        for (place, name) in [(0, "a"), (2, "c"), (3, "d")] {
            pins.add(name, fingerprint(town.certificate(place))).unwrap();
        }
        town.settings.pins = pins;
    };
    assert_eq!(Town::with(reflected).unwrap_err(), RosterRefusal::NoRoster);
}

/// A reason is one sentence and repeats none of the owner's settings.
#[test]
fn reasons_do_not_repeat_pins() {
    for reason in [
        RosterRefusal::Members,
        RosterRefusal::Signature,
        RosterRefusal::Certificate,
        RosterRefusal::Revoked,
        RosterRefusal::NotTheJobs,
        RosterRefusal::NotPinned,
        RosterRefusal::NotOwn,
        RosterRefusal::NoRoster,
    ] {
        let text = reason.to_string();
        assert!(!text.contains("sha256") && !text.contains('"') && text.len() < 100, "{text}");
    }
}
