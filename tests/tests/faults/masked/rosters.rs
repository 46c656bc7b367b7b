//! A coordinator, a CA or a colluder that replaces a party's key, and a coordinator that sends parties different rosters.

use conclave_privacy::secagg::{MaskPublic, opened};
use conclave_proto::identity::Role;
use conclave_proto::signature::Signature;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::party_frame::Body as Said;
use conclave_proto::{ca, mask_key};
use conclave_vault::secure::{Peers, Pins, SecureSettings};

use super::lab::{LANES, Lab, authority, identity, name, released, secret, secure};
use super::lies::look_uniform;

const OTHER: &str = "not the job's parties in their order";
const UNSIGNED: &str = "not signed by its party for this job";
const FOREIGN: &str = "not of the consortium's CA";
const REVOKED: &str = "is revoked here";
const UNPINNED: &str = "not one that the owner has pinned";
const NOT_OWN: &str = "does not have this party's own mask key";
const TWICE: &str = "two members with one key";
const SMALL: &str = "is of small order";

/// Returns the colluder's key at place 0 signed by an identity other than the pinned one.
fn substituted(lab: &Lab, by: &ca::KeyedPem) -> v1::MaskKey {
    let folder = lab.folder.path().join("substitute");
    identity(by, &folder, Role::Party, &name(0), 10);
    let identity = IdentityDir::load(&folder).expect("an identity");
    mask_key::sign(&identity, &lab.job.job, &lab.digest(), &secret(0).public()).expect("a signature")
}

/// Returns rosters that every party must refuse, each with the expected reason.
fn bad_rosters(lab: &Lab, good: &[v1::RosterEntry]) -> Vec<(&'static str, Vec<v1::RosterEntry>, &'static str)> {
    let with = |change: &dyn Fn(&mut Vec<v1::RosterEntry>)| {
        let mut entries = good.to_vec();
        change(&mut entries);
        entries
    };
    let keyed = |place: usize, key: v1::MaskKey| with(&|entries| entries[place].key = Some(key.clone()));
    let public = |place: usize| MaskPublic::parse(&good[place].key.as_ref().expect("a key").public).expect("a public key");
    let own = IdentityDir::load(&lab.seats[1].identity).expect("an identity");
    let of_another_job = mask_key::sign(
        &IdentityDir::load(&lab.seats[0].identity).expect("an identity"),
        "another-job",
        &lab.digest(),
        &secret(0).public(),
    );
    let mut twin = good[2].key.clone().expect("a key");
    twin.public[31] |= 0x80;
    let forged = {
        // A forger without the party's key signs with another.
        let Signature { bytes, scheme, .. } =
            IdentityDir::load(&lab.seats[0].identity).expect("an identity").sign(b"x").expect("a signature");
        v1::MaskKey { signature: bytes, scheme, ..good[2].key.clone().expect("a key") }
    };
    vec![
        (
            "two parties' keys swapped",
            with(&|entries| {
                let key = entries[0].key.take();
                entries[0].key = entries[2].key.take();
                entries[2].key = key;
            }),
            UNSIGNED,
        ),
        ("a key signed for another job", keyed(0, of_another_job.expect("a signature")), UNSIGNED),
        ("another key under an honest party's name", keyed(2, lab.signed(0, &secret(9).public())), UNSIGNED),
        ("a forged signature", keyed(2, forged), UNSIGNED),
        ("another form of the same key", keyed(2, twin), UNSIGNED),
        ("a certificate of another CA", keyed(0, substituted(lab, &authority("elsewhere"))), FOREIGN),
        ("a certificate that the CA made for somebody else", keyed(0, substituted(lab, &lab.authority)), UNPINNED),
        // Reflection: a colluder signs the key of an honest party as its own.
        ("an honest party's key as the colluder's own", keyed(0, lab.signed(0, &public(2))), TWICE),
        ("this party's key as the colluder's own", keyed(0, lab.signed(0, &public(1))), TWICE),
        ("a key of small order", keyed(0, lab.signed(0, &MaskPublic::parse(&[0; 32]).expect("canonical"))), SMALL),
        (
            "another key at this party's place",
            keyed(1, mask_key::sign(&own, &lab.job.job, &lab.digest(), &secret(8).public()).expect("a signature")),
            NOT_OWN,
        ),
        ("one member less", with(&|entries| drop(entries.pop())), OTHER),
        ("another order", with(&|entries| entries.swap(0, 2)), OTHER),
        ("one member twice", with(&|entries| entries[0] = entries[2].clone()), OTHER),
        (
            "one member more",
            with(&|entries| entries.push(v1::RosterEntry { name: "hospital-x".into(), ..entries[0].clone() })),
            OTHER,
        ),
        ("another name", with(&|entries| entries[0].name = "hospital-x".into()), OTHER),
    ]
}

#[test]
fn a_roster_with_a_wrong_key_is_refused_in_fixed_words_and_costs_nothing() {
    let mut lab = Lab::masked(4, 1);
    let good = lab.open_all();
    for (what, entries, expected) in bad_rosters(&lab, &good) {
        let (code, reason) = lab.show(1, &entries).expect_err(what);
        assert_eq!(code, "policy", "{what}: {reason}");
        assert!(reason.contains(expected), "{what}: {reason}");
        // The reason reveals none of the owner's settings.
        assert!(!reason.contains(&lab.seats[0].fingerprint().to_string()), "{what}: {reason}");
        assert_eq!(lab.show(1, &entries).expect_err(what), (code, reason), "{what}: the same words again");
        assert_eq!((lab.seats[1].events("roster"), lab.seats[1].charges()), (0, 0), "{what}");
        assert!(lab.seats[1].key_file(&lab.job.job).exists());
    }
    let certificate = good[0].key.as_ref().expect("a key").certificate.clone();
    let serial = ca::summarise(&certificate).expect("a certificate").serial;
    for line in [format!("party/{}", name(0)), name(0), serial] {
        std::fs::write(lab.seats[1].revoked(), &line).expect("a list");
        let (code, reason) = lab.show(1, &good).expect_err("a revoked member");
        assert!(code == "revoked" && reason.contains(REVOKED), "{line}: {reason}");
        // While the list cannot be read, every member counts as possibly revoked.
        std::fs::remove_file(lab.seats[1].revoked()).expect("a list");
        assert_eq!(lab.show(1, &good).expect_err("no list").0, "unreachable");
    }
    std::fs::write(lab.seats[1].revoked(), "").expect("a list");
    let query = lab.query(0);
    assert!(released(&lab.ask(1, &query)).is_err());
    assert_eq!((lab.seats[1].events("roster"), lab.seats[1].charges()), (0, 0));
    // None of the refusals affects the true roster.
    lab.show(1, &good).expect("the roster");
    assert!(released(&lab.ask(1, &query)).is_ok());
}

/// The first roster is final for the job, before and after a restart, whatever is charged.
#[test]
fn a_second_roster_is_refused_for_ever() {
    let mut lab = Lab::masked(4, 1);
    let first = lab.open_all();
    let accepted = lab.show(1, &first).expect("a roster");
    // A colluder can build another one with its own signature.
    let mut second = first.clone();
    second[0].key = Some(lab.signed(0, &secret(7).public()));
    for restarted in [false, true] {
        if restarted {
            lab.seats[1].restart();
            lab.open(1).expect("a job that opens again");
        }
        let (code, reason) = lab.show(1, &second).expect_err("a second roster");
        assert!(code == "conflict" && reason.contains("gets no second one"), "{reason}");
        assert_eq!(lab.show(1, &first).expect("the first"), accepted, "the same bytes");
        let query = lab.query(u64::from(restarted));
        assert!(released(&lab.ask(1, &query)).is_ok());
        assert_eq!(lab.seats[1].events("roster"), 1);
    }
    // Another number of colluders means another job file, which is not this job.
    let spec_toml = lab.job.spec_toml.replace("colluders = 1", "colluders = 2");
    let spec_digest = <sha2::Sha256 as sha2::Digest>::digest(spec_toml.as_bytes()).to_vec();
    let other = v1::OpenJob { spec_toml, spec_digest, ..lab.job.clone() };
    let said = lab.seats[1].say(Body::OpenJob(other));
    assert!(matches!(said.as_slice(), [Said::JobRefused(_)]), "{said:?}");
    lab.seats[1].verify();
}

/// A colluder sends one party another key than all others. Both rosters are valid, but parties with different rosters share no
/// mask.
#[test]
fn parties_with_different_rosters_open_nothing() {
    let mut lab = Lab::masked(5, 1);
    let one = lab.open_all();
    let mut other = one.clone();
    other[0].key = Some(lab.signed(0, &secret(7).public()));
    let mut confirmed = Vec::new();
    for place in lab.honest() {
        confirmed.push(lab.show(place, if place == 3 { &other } else { &one }).expect("a sound roster"));
    }
    let colluder = lab.keys_of(0, &lab.roster(&one));
    let roster = lab.roster(&one).digest();
    // An honest coordinator detects this before any query.
    assert_eq!(confirmed.iter().map(|accepted| accepted.digest == roster).collect::<Vec<_>>(), [true, true, false, true]);
    let d0 = conclave_privacy::secagg::confirmation_digest(&roster);
    let own = colluder.masks(&d0, 4);
    for (lane, own) in own.into_iter().enumerate() {
        let all = confirmed.iter().map(|accepted| accepted.confirm[lane].cast_signed());
        assert_ne!(opened(all.chain([own.cast_signed()])), 0);
    }
    let (mut singles, mut sums) = (vec![Vec::new(); 5], Vec::new());
    for iteration in 0..30 {
        let query = lab.query(iteration);
        let digest = conclave_common::query::message_digest(&roster, iteration, &lab.queries());
        let mut round = vec![colluder.masks(&digest, LANES as usize).into_iter().map(u64::cast_signed).collect::<Vec<i64>>()];
        for place in lab.honest() {
            round.push(released(&lab.ask(place, &query)).expect("an answer").to_vec());
        }
        for (place, own) in round.iter().enumerate() {
            singles[place].extend_from_slice(own);
        }
        sums.extend((0..LANES as usize).map(|lane| opened(round.iter().map(|own| own[lane]))));
    }
    for (place, own) in singles.iter().enumerate() {
        assert!(look_uniform(own), "party {place}");
    }
    assert!(look_uniform(&sums));
}

/// Members vouched for by the CA alone are never admitted without the owner, whatever the limits are: no key is created earlier.
#[test]
fn unpinned_members_wait_for_the_owner() {
    let mut lab = Lab::masked(3, 1);
    lab.seats[1].settings = SecureSettings { pins: Pins::default(), peers: Peers::Ca, ..lab.seats[1].settings.clone() };
    lab.seats[1].restart();
    let (code, _) = lab.open(1).expect_err("members that nobody has pinned");
    assert_eq!(code, "pending");
    assert!(!lab.seats[1].key_file(&lab.job.job).exists());
    assert_eq!(lab.seats[1].events("mask-key"), 0);
    super::keys::decide(&lab.seats[1], &lab.job.job, "approved");
    lab.seats[1].process.as_mut().expect("a party that runs").consent_changed();
    lab.open(1).expect("a job that its owner has approved").expect("a key");
    let entries = lab.open_all();
    lab.show(1, &entries).expect("the roster");
    let query = lab.query(0);
    assert!(released(&lab.ask(1, &query)).is_ok());
}

/// An owner's limits on masked jobs: a minimal number of colluders, only pinned members unless the CA suffices, and no job that
/// names another key for a pinned member.
#[test]
fn jobs_that_the_owner_does_not_admit_are_refused_before_a_key_is_created() {
    type Setting = fn(&mut SecureSettings);
    let refused: [(Setting, &str); 4] = [
        (|s| s.allow = false, "admits no job whose answers leave masked"),
        (|s| s.colluders_at_least = Some(2), "no fewer than 2 of 4 parties"),
        // By default, the greater half of the others.
        (|s| s.colluders_at_least = None, "no fewer than 2 of 4 parties"),
        (|s| s.pins = Pins::default(), "has not pinned the identity keys of all"),
    ];
    for (set, words) in refused {
        let mut lab = Lab::masked(4, 1);
        set(&mut lab.seats[1].settings);
        lab.seats[1].restart();
        let (code, reason) = lab.open(1).expect_err(words);
        assert!(code == "policy" && reason.contains(words), "{code}: {reason}");
        assert!(!lab.seats[1].key_file(&lab.job.job).exists() && lab.seats[1].events("mask-key") == 0);
    }
    let members = format!("{}members = {{ hospital-c = \"sha256:{}\" }}\n", secure(1), "7".repeat(64));
    let mut lab = Lab::of(4, 1, &members);
    let (code, reason) = lab.open(1).expect_err("another key than the owner's pin");
    assert!(code == "policy" && reason.contains("aggregation.members names another identity key"), "{code}: {reason}");
}
