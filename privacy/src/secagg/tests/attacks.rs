//! Attacks of a coordinator: after each, single values and sums remain uniform.

use super::*;

const ROUNDS: u64 = 3000;
/// An honest party's answer, small relative to the ring.
const ANSWER: i64 = 123_456_789;

fn round(roster: &Roster, iteration: u64) -> [u8; 32] {
    round_digest(&roster.digest(), iteration, 0, &[query(1 << 20)])
}

/// Checks that a sum that must stay closed, and every value in it, looks like noise from the whole ring.
fn stays_closed(what: &str, values: impl Fn(u64) -> Vec<i64>) {
    let rounds: Vec<Vec<i64>> = (0..ROUNDS).map(values).collect();
    let sums: Vec<i64> = rounds.iter().map(|values| opened(values.iter().copied())).collect();
    assert!(chi_square_of_top_bits(&sums) < UNIFORM, "{what}: the sum is not uniform");
    for place in 0..rounds[0].len() {
        let own: Vec<i64> = rounds.iter().map(|values| values[place]).collect();
        assert!(chi_square_of_top_bits(&own) < UNIFORM, "{what}: value {place} is not uniform");
    }
}

#[test]
fn the_test_of_uniformity_distinguishes_sums_from_masked_ones() {
    let small: Vec<i64> = (0..ROUNDS).map(|round| ANSWER + round as i64).collect();
    assert!(chi_square_of_top_bits(&small) > 100.0 * UNIFORM);
    let roster = roster(5, 1);
    let keys = keys(&roster);
    for iteration in 0..50 {
        let digest = round(&roster, iteration);
        assert_eq!(opened(keys.iter().map(|keys| cover(ANSWER, keys.masks(&digest, 1)[0]))), 5 * ANSWER);
    }
}

#[test]
fn one_party_missing_or_with_another_query_leaves_noise() {
    let roster = roster(5, 1);
    let keys = keys(&roster);
    let value = |place: usize, digest: &[u8; 32]| cover(ANSWER, keys[place].masks(digest, 1)[0]);
    stays_closed("four of five", |at| (0..4).map(|place| value(place, &round(&roster, at))).collect());
    let ulp = f64::from_bits(1_f64.to_bits() + 1);
    let near = SharedQuery { chain: 0, from: &[0.0], to: &[ulp], kind: 0, noise: 1 << 20 }.digest();
    type Other<'a> = &'a dyn Fn(u64) -> [u8; 32];
    let of = roster.digest();
    let others: [(&str, Other<'_>); 4] = [
        ("asked an ulp away", &|at| round_digest(&of, at, 0, &[near])),
        ("at another attempt", &|at| round_digest(&of, at, 1, &[query(1 << 20)])),
        ("a round ahead", &|at| round_digest(&of, at + 1, 0, &[query(1 << 20)])),
        ("asked another chain besides", &|at| round_digest(&of, at, 0, &[query(1 << 20), near])),
    ];
    for (what, other) in others {
        let digest = |place: usize, at| if place == 3 { other(at) } else { round(&roster, at) };
        stays_closed(what, |at| (0..5).map(|place| value(place, &digest(place, at))).collect());
    }
}

/// Two honest participants with different rosters have no key in common, even if they receive the same query.
#[test]
fn different_rosters_open_nothing() {
    let common = roster(5, 1);
    let swapped = |change: &dyn Fn(&mut Vec<Member>)| {
        let mut members = members(5);
        change(&mut members);
        Roster::new("job", bytes("spec", 0), 1, members).unwrap()
    };
    let others = [
        ("another number of colluders", roster(5, 2)),
        ("another job", Roster::new("job-2", bytes("spec", 0), 1, members(5)).unwrap()),
        ("another job file", Roster::new("job", bytes("spec", 1), 1, members(5)).unwrap()),
        ("one more member", roster(6, 1)),
        ("another mask key", swapped(&|members| members[0].public = secret(77).public())),
        ("another identity", swapped(&|members| members[0].identity = bytes("identity", 77))),
        ("another order of the others", swapped(&|members| members.swap(0, 1))),
    ];
    let keys = keys(&common);
    for (what, other) in others {
        let odd = PairKeys::agree(&other, 3, &secret(3)).unwrap();
        let masked = |keys: &PairKeys, digest| cover(ANSWER, keys.masks(&digest, 1)[0]);
        stays_closed(what, |at| {
            let of = |place: usize| {
                if place == 3 { masked(&odd, round(&other, at)) } else { masked(&keys[place], round(&common, at)) }
            };
            (0..5).map(of).collect()
        });
        // It does not help if the odd one answers under the digest of all others.
        stays_closed(what, |at| {
            (0..5).map(|place| masked(if place == 3 { &odd } else { &keys[place] }, round(&common, at))).collect()
        });
    }
}

/// A member announces another's mask key as its own, with the victim between them in the roster. If masks did not depend on
/// places and keys, the two members would have equal masks. The victim would add one and subtract the other.
#[test]
fn a_reflected_key_unmasks_no_party() {
    let mut members = members(3);
    members[0].public = members[2].public;
    assert_eq!(Roster::new("job", bytes("spec", 0), 1, members.clone()).unwrap_err(), RosterError::Twice { what: "mask key" });
    let roster = Roster::unchecked("job", bytes("spec", 0), 1, members);
    let unbound = PairKeys::agree_unbound(&roster, 1, &secret(1)).unwrap();
    for at in 0..100 {
        assert_eq!(cover(ANSWER, unbound.masks(&round(&roster, at), 1)[0]), ANSWER, "the attack works");
    }
    let bound = PairKeys::agree(&roster, 1, &secret(1)).unwrap();
    stays_closed("reflection", |at| vec![cover(ANSWER, bound.masks(&round(&roster, at), 1)[0])]);
}
