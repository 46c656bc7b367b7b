//! Keys, digests and masks bit for bit, as in the independent implementation tests/vectors/secure_masks.py.

use serde_json::Value;

use super::super::keys::{MaskPublic, MaskSecret};
use super::super::pair_keys::{End, pair_binding, pair_key};
use super::*;

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn unhex_32(text: &Value) -> [u8; 32] {
    unhex(text).try_into().unwrap()
}

fn numbers<T: serde::de::DeserializeOwned>(rows: &Value) -> Vec<Vec<T>> {
    serde_json::from_value(rows.clone()).unwrap()
}

/// The job of the vectors.
struct Vectors {
    first: Value,
    extra: Value,
    roster: Roster,
}

impl Vectors {
    fn read() -> Self {
        let first: Value = serde_json::from_str(include_str!("../../../../tests/vectors/secure_masks.json")).unwrap();
        let extra = serde_json::from_str(include_str!("../../../../tests/vectors/secure_masks_extra.json")).unwrap();
        let member = |row: &Value| Member {
            name: row[0].as_str().unwrap().to_owned(),
            identity: unhex_32(&row[1]),
            public: MaskPublic::parse(&unhex(&row[2])).unwrap(),
        };
        let members = first["members"].as_array().unwrap().iter().map(member).collect();
        let colluders = u32::try_from(first["colluders"].as_u64().unwrap()).unwrap();
        let roster = Roster::new(first["job"].as_str().unwrap(), unhex_32(&first["spec_digest"]), colluders, members).unwrap();
        Self { first, extra, roster }
    }

    fn secret(&self, place: usize) -> MaskSecret {
        MaskSecret::from_bytes(Zeroizing::new(unhex_32(&self.first["secrets"][place])))
    }

    fn keys(&self, place: usize) -> PairKeys {
        PairKeys::agree(&self.roster, place, &self.secret(place)).unwrap()
    }

    fn masks(&self, digest: &[u8; 32], lanes: usize) -> Vec<Vec<u64>> {
        (0..self.roster.members().len()).map(|place| self.keys(place).masks(digest, lanes)).collect()
    }
}

#[test]
fn rosters_and_keys() {
    let vectors = Vectors::read();
    let roster = &vectors.roster;
    assert_eq!(roster.digest(), unhex_32(&vectors.first["R"]));
    assert_eq!((roster.honest(), roster.place("party-5"), roster.place("party-6")), (4, Some(5), None));
    for (place, member) in roster.members().iter().enumerate() {
        assert_eq!(vectors.secret(place).public(), member.public);
    }
    for (own, other, name) in [(0, 1, "pair_0_1"), (1, 0, "pair_0_1"), (2, 5, "pair_2_5"), (5, 2, "pair_2_5")] {
        let end = |place: usize| End { place, public: roster.members()[place].public };
        let key = pair_key(&roster.digest(), &vectors.secret(own), end(own), end(other), pair_binding).unwrap();
        assert_eq!(*key, unhex_32(&vectors.first[name]), "{own} with {other}");
    }
    let own = &roster.members()[0];
    let message = mask_key_message(roster.job(), roster.spec_digest(), &own.name, &own.public);
    assert_eq!(message, unhex(&vectors.extra["mask_key_message_party_0"]));
}

#[test]
fn digests() {
    let Vectors { first, extra, roster } = Vectors::read();
    let one = SharedQuery { chain: 0, from: &[0.0], to: &[1.0], kind: 0, noise: 1 << 20 }.digest();
    assert_eq!(one, unhex_32(&first["question"]));
    assert_eq!(round_digest(&roster.digest(), 7, 0, &[one]), unhex_32(&first["D_iteration_7"]));
    assert_eq!(confirmation_digest(&roster.digest()), unhex_32(&extra["D0"]));
    let three = [
        SharedQuery { chain: 0, from: &[0.0, -0.0], to: &[1.0, 0.25], kind: 0, noise: 1 << 20 },
        SharedQuery { chain: 3, from: &[], to: &[], kind: 2 + 4, noise: 3 << 20 },
        SharedQuery { chain: 1, from: &[0.5, 0.5], to: &[0.5, 0.5], kind: 1, noise: 1 << 21 },
    ]
    .map(|query| query.digest());
    for (query, expected) in three.iter().zip(extra["questions"].as_array().unwrap()) {
        assert_eq!(*query, unhex_32(expected));
    }
    assert_eq!(round_digest(&roster.digest(), (1 << 40) + 5, 0, &three), unhex_32(&extra["D_three"]));
}

#[test]
fn masks() {
    let vectors = Vectors::read();
    let (first, extra) = (&vectors.first, &vectors.extra);
    let digest = unhex_32(&first["D_iteration_7"]);
    assert_eq!(vectors.masks(&digest, 6), numbers::<u64>(&first["masks"]));
    assert_eq!(
        vectors.keys(0).only(0, |other| other == 1).masks(&digest, 6),
        numbers::<u64>(&serde_json::json!([first["lanes_0_1"]]))[0]
    );
    assert_eq!(vectors.masks(&unhex_32(&extra["D0"]), CONFIRMATION_LANES), numbers::<u64>(&extra["confirm"]));
    let under = vectors.masks(&unhex_32(&extra["D_three"]), 7);
    assert_eq!(under, numbers::<u64>(&extra["masks_three"]));
    let (x, y) = (numbers::<i64>(&extra["x"]), numbers::<i64>(&extra["y"]));
    for ((x, y), masks) in x.iter().zip(&y).zip(&under) {
        let covered: Vec<i64> = x.iter().zip(masks).map(|(sum, mask)| cover(*sum, *mask)).collect();
        assert_eq!(covered, *y);
    }
    for lane in 0..3 {
        let total: i128 = x.iter().map(|row| i128::from(row[lane])).sum();
        assert_eq!(i128::from(opened(y.iter().map(|row| row[lane]))), total);
    }
}

#[test]
fn the_same_point_in_other_bytes_and_points_of_small_order_are_refused() {
    let vectors = Vectors::read();
    assert_eq!(MaskPublic::parse(&unhex(&vectors.extra["high_bit_twin_of_party_3"])), Err(NotCanonical));
    let low = vectors.extra["low_order_publics"].as_array().unwrap();
    assert_eq!(low.len(), 7);
    let mut of_small_order = 0;
    for point in low {
        let Ok(public) = MaskPublic::parse(&unhex(point)) else { continue };
        let mut members = vectors.roster.members().to_vec();
        members[4].public = public;
        let roster = Roster::new(vectors.roster.job(), *vectors.roster.spec_digest(), 2, members).unwrap();
        let refused = PairKeys::agree(&roster, 1, &vectors.secret(1)).unwrap_err();
        assert_eq!(refused, AgreementError::SmallOrder { place: 4 });
        of_small_order += 1;
    }
    // The other two are 0 and 1 with 2^255 - 19 added.
    assert_eq!(of_small_order, 5);
}
