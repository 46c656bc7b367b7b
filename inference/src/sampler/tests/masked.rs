//! A run with masked answers equals the run with the same answers without masks, bit for bit.

#![allow(clippy::unwrap_used)]

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::fixtures::{asked, give, sampler_of};
use crate::sampler::{SamplerError, Totals};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, Opened, Round};

const SECURE: &str = "[aggregation]\nmode = \"secure\"\ncolluders = 1\n";

fn job(clip: &str, aggregation: &str) -> JobSpec {
    let job = format!(
        "name = \"m\"\nparties = [\"a\", \"b\", \"c\"]\nmodel = {{ kind = \"gaussian_mean\", outcome = \"x\", sd = 1.0 }}\n\
         columns = {{ x = {{ min = -4, max = 4 }} }}\n[sampler]\nchains = 3\ndraws = 60\nwarmup = 4\nstart = {{ mean = 0.1 }}\n\
         proposal = {{ kind = \"guided\", radius = 0.05 }}\n[privacy]\nepsilon = 20.0\ndelta = 1e-6\n{clip}\n{aggregation}"
    );
    JobSpec::parse(&job).unwrap()
}

/// Adds masks that sum to 0 over the parties, in 64 bits.
fn masked(releases: &[Vec<i64>], rng: &mut impl Rng) -> Vec<Vec<i64>> {
    let mut masked = releases.to_vec();
    for pair in 1..releases.len() {
        let [before, after] = masked.get_disjoint_mut([pair - 1, pair]).unwrap();
        for (one, other) in before.iter_mut().zip(after) {
            let mask: u64 = rng.random();
            (*one, *other) = (one.wrapping_add(mask.cast_signed()), other.wrapping_sub(mask.cast_signed()));
        }
    }
    masked
}

/// Returns rounds and draws of a run whose parties' answers depend on a seed only.
fn run(spec: &JobSpec) -> (Vec<Round>, Vec<Draw>) {
    let mut sampler = sampler_of(spec, &[100, 200, 300]);
    let (mut answers, mut masks) = (ChaCha20Rng::seed_from_u64(5), ChaCha20Rng::seed_from_u64(6));
    let mut rounds = Vec::new();
    while let Some(round) = asked(sampler.as_mut()) {
        let mut one = || (0..round.length()).map(|_| answers.random_range(-1_i64 << 33..1 << 33)).collect();
        let releases: Vec<Vec<i64>> = (0..3).map(|_| one()).collect();
        let shown = if spec.aggregation.is_secure() { masked(&releases, &mut masks) } else { releases };
        give(sampler.as_mut(), &round, &shown);
        rounds.push(Round { opened: Opened::EachAnswer, ..round });
    }
    (rounds, sampler.take_draws())
}

#[test]
fn masks_change_no_bit_of_a_run() {
    let (rounds, draws) = run(&job("", ""));
    assert_eq!((rounds, draws.len()), (run(&job("", SECURE)).0, 3 * 64));
    assert_eq!(run(&job("", SECURE)).1, draws);
}

/// Only noise that follows from the price differs: clip counts have less of it, for the same share.
#[test]
fn counts_of_a_sum_are_quieter_for_the_same_price() {
    let noise = |aggregation: &str| {
        let round = asked(sampler_of(&job("clip = 0.5", aggregation), &[100, 200, 300]).as_mut()).unwrap();
        round.queries.last().map(|query| (query.kind, query.noise.units() as f64)).unwrap()
    };
    let (local, secure) = (noise(""), noise(SECURE));
    assert_eq!(local.0, secure.0);
    // Scales are multiples of 2^16; these are about 50 of them.
    assert!((local.1 / secure.1 / 2.0_f64.sqrt() - 1.0).abs() < 0.02, "{} {}", local.1, secure.1);
}

/// A sum in more than 64 bits would be off by multiples of 2^64.
#[test]
fn sums_are_opened_in_64_bits() {
    let round = asked(sampler_of(&job("", SECURE), &[5, 5, 5]).as_mut()).unwrap();
    let length = round.length();
    let totals = Totals::of(&round, &[vec![i64::MAX; length], vec![7; length], vec![i64::MIN; length]]).unwrap();
    assert_eq!((totals.components(), totals.opened(0)), (&vec![6_i128; length][..], &vec![6_i64; length][..]));
    assert!(totals.opened(1).is_empty(), "no single answer is available");
    // With one more mask, over a zero.
    let checked = |masks: [i64; 3]| {
        let answer = |mask: i64| [vec![1; length], vec![mask]].concat();
        Totals::of(&round, &masks.map(answer)).map(|totals| totals.components().to_vec())
    };
    assert_eq!(checked([i64::MAX, 1, i64::MIN]), Ok(vec![3; length]));
    assert_eq!(checked([i64::MAX, 1, 0]), Err(SamplerError::Masks));
    assert!(matches!(
        Totals::of(&round, &[vec![0; length + 1], vec![0; length], vec![0; length + 1]]),
        Err(SamplerError::Shape(_))
    ));
}
