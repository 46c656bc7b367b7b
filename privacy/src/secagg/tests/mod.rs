#![allow(clippy::unwrap_used)]
//! Masks, the values to which they are bound, and attacks on them.

mod attacks;
mod binding;
mod collusion;
mod keys;
mod vectors;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::*;

/// Returns 32 bytes derived from a word and a number.
fn bytes(word: &str, number: usize) -> [u8; 32] {
    Sha256::new().chain_update(word).chain_update(number.to_le_bytes()).finalize().into()
}

fn secret(number: usize) -> MaskSecret {
    MaskSecret::from_bytes(Zeroizing::new(bytes("secret", number)))
}

fn member(number: usize) -> Member {
    Member { name: format!("party-{number}"), identity: bytes("identity", number), public: secret(number).public() }
}

fn members(count: usize) -> Vec<Member> {
    (0..count).map(member).collect()
}

fn roster(count: usize, colluders: u32) -> Roster {
    Roster::new("job", bytes("spec", 0), colluders, members(count)).unwrap()
}

/// Returns every member's pair keys, in a roster with member `i` of [`members`] at place `i`.
fn keys(roster: &Roster) -> Vec<PairKeys> {
    (0..roster.members().len()).map(|place| PairKeys::agree(roster, place, &secret(place)).unwrap()).collect()
}

fn query(noise: u64) -> [u8; 32] {
    SharedQuery { chain: 0, from: &[0.0], to: &[1.0], kind: 0, noise }.digest()
}

/// Returns Pearson's statistic for the uniformity of the top four bits of all values. It has 15 degrees of freedom, and uniform
/// values exceed 70 with a probability below 10^-8.
fn chi_square_of_top_bits(values: &[i64]) -> f64 {
    let mut counts = [0_u64; 16];
    values.iter().for_each(|value| counts[(value.cast_unsigned() >> 60) as usize] += 1);
    let expected = values.len() as f64 / 16.0;
    counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
}

const UNIFORM: f64 = 70.0;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn masks_of_all_members_cancel(
        count in prop_oneof![Just(3_usize), Just(10), Just(100)],
        lanes in 0_usize..12,
        iteration: u64,
        covered: i64,
    ) {
        let roster = roster(count, 1);
        let digest = round_digest(&roster.digest(), iteration, 0, &[query(1 << 20)]);
        let masks: Vec<Vec<u64>> = keys(&roster).iter().map(|keys| keys.masks(&digest, lanes)).collect();
        for lane in 0..lanes {
            prop_assert_eq!(masks.iter().fold(0_u64, |sum, masks| sum.wrapping_add(masks[lane])), 0);
            prop_assert_eq!(opened(masks.iter().map(|masks| cover(covered, masks[lane]))), covered.wrapping_mul(count as i64));
            prop_assert!(masks.iter().all(|masks| masks[lane] != 0));
        }
    }

    #[test]
    fn fewer_lanes_are_the_first_of_more(few in 0_usize..9, more in 0_usize..9) {
        let (roster, digest) = (roster(3, 1), bytes("digest", 0));
        let keys = PairKeys::agree(&roster, 1, &secret(1)).unwrap();
        prop_assert_eq!(&keys.masks(&digest, few)[..], &keys.masks(&digest, few + more)[..few]);
    }
}

#[test]
fn sums_wrap_and_are_exact() {
    for sum in [0, 1, -1, i64::MAX, i64::MIN] {
        for mask in [0, 1, u64::MAX, 1 << 63, 0x1234_5678_9abc_def0] {
            assert_eq!(opened([cover(sum, mask), 0_u64.wrapping_sub(mask).cast_signed()]), sum);
        }
    }
    // Values near both ends, whose sum is in range.
    assert_eq!(opened([i64::MAX, i64::MAX, i64::MIN, i64::MIN + 5]), 3);
}
