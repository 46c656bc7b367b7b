//! The part of a sum that stays unknown to colluders who share all their knowledge.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::mechanism::{DiscreteGaussian, NoiseScale};

const MEMBERS: usize = 6;
const ROUNDS: u64 = 3000;
const S: u64 = 1 << 20;
/// The relative error of a variance of this many normal values is 0.026; five times that is exceeded with a probability below
/// 10^-6.
const TOLERANCE: f64 = 0.13;

/// Removes from each round's sum everything that the coordinator and the first `colluders` members know, and returns the
/// remainder. Also returns the first other member's values without the masks that it shares with the colluders.
fn unmask(colluders: usize) -> (Vec<f64>, Vec<i64>) {
    let roster = roster(MEMBERS, 2);
    let keys = keys(&roster);
    let shared = keys_with(&roster, colluders, |other| other < colluders);
    let sampler = DiscreteGaussian::new(NoiseScale::from_units(S).unwrap());
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let data: Vec<i64> = (0..MEMBERS).map(|place| (place as i64 - 2) << 40).collect();
    let round = |iteration| {
        let digest = round_digest(&roster.digest(), iteration, 0, &[query(S)]);
        let noised: Vec<i64> = data.iter().map(|sum| sum + sampler.sample(&mut rng)).collect();
        let masked: Vec<i64> = noised.iter().zip(&keys).map(|(x, keys)| cover(*x, keys.masks(&digest, 1)[0])).collect();
        let known: i64 = noised[..colluders].iter().sum();
        let honest: i64 = data[colluders..].iter().sum();
        let one = masked[colluders].cast_unsigned().wrapping_sub(shared.masks(&digest, 1)[0]).cast_signed();
        ((opened(masked) - known - honest) as f64, one)
    };
    (0..ROUNDS).map(round).unzip()
}

fn keys_with(roster: &Roster, place: usize, with: impl Fn(usize) -> bool) -> PairKeys {
    PairKeys::agree(roster, place, &secret(place)).unwrap().only(place, with)
}

#[test]
fn honest_noise_remains_and_no_value_is_revealed() {
    // The number that the roster admits, one more, and all except one.
    for colluders in [2, 3, 5] {
        let (remainders, values) = unmask(colluders);
        let honest = (MEMBERS - colluders) as f64;
        let variance = remainders.iter().map(|r| r * r).sum::<f64>() / ROUNDS as f64;
        let relative = variance / (honest * (S as f64).powi(2));
        assert!((relative - 1.0).abs() < TOLERANCE, "{colluders} colluders: variance {relative} of {honest} s^2");
        // All masks of the only honest member can be removed; it keeps its own noise.
        let uniform = chi_square_of_top_bits(&values) < UNIFORM;
        assert_eq!(uniform, honest > 1.0, "{colluders} colluders");
    }
}
