//! Colluders that hand over all they have: what is left of a sum is the others' noise, all of it.

use conclave_privacy::secagg::opened;
use conclave_proto::convert::query_to_wire;
use conclave_proto::v1;

use super::lab::{LANES, Lab, released};
use super::lies::look_uniform;

const ROUNDS: u64 = 40;

/// Over a sample of this many, each a sum of discrete Gaussians, the ratio of the sample's variance to the law's has a standard deviation of
/// sqrt(2 / 1280) = 0.04: six of them are passed less than once in 10^8 times. One noise of four missing would be a quarter.
const VARIANCES: f64 = 6.0 * 0.04;

fn variance_ratio(sums: &[f64], expected: f64) -> f64 {
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / (sums.len() - 1) as f64 / expected
}

/// Of each round, of each party, its numbers.
type Numbers = Vec<Vec<Vec<i64>>>;

/// The coordinator and `t` of seven parties, with their keys, take every mask off that they can. Beside them stands the same job with local
/// answers, with the same records and the same noise: what it tells of each party's own numbers is what masking hides.
fn what_is_left(t: usize) -> (Lab, Numbers, Numbers) {
    let (mut lab, mut plain) = (Lab::masked(7, t), Lab::of(7, t, ""));
    let entries = lab.begin();
    let roster = lab.roster(&entries);
    let keys: Vec<_> = (0..t).map(|place| lab.keys_of(place, &roster)).collect();
    for place in plain.honest() {
        assert_eq!(plain.open(place).expect("a job that opens"), None);
    }
    let (mut masked, mut own) = (Vec::new(), Vec::new());
    for iteration in 0..ROUNDS {
        let question = lab.question(iteration);
        let digest = conclave_common::query::message_digest(&roster.digest(), iteration, &lab.queries());
        // What a colluder's masks add to its own number, it can add without one.
        let of_colluders =
            keys.iter().map(|keys| keys.masks(&digest, LANES as usize).into_iter().map(u64::cast_signed).collect::<Vec<i64>>());
        let mut round: Vec<Vec<i64>> = of_colluders.collect();
        let question_in_plain = query_to_wire(&plain.job.job, iteration, &plain.queries());
        let mut alone = Vec::new();
        for place in lab.honest() {
            let answer: v1::Answer = lab.ask(place, &question);
            round.push(released(&answer).expect("an answer").to_vec());
            alone.push(released(&plain.ask(place, &question_in_plain)).expect("an answer").to_vec());
        }
        masked.push(round);
        own.push(alone);
    }
    (lab, masked, own)
}

#[test]
fn what_colluders_cannot_take_off_is_the_noise_of_all_others() {
    for t in [1, 3, 5] {
        let (lab, masked, own) = what_is_left(t);
        let honest = 7 - t;
        let scale = lab.spec.privacy.noise.units() as f64;
        let lanes = 0..LANES as usize;
        let sum = |parts: &[Vec<i64>], lane: usize| opened(parts.iter().map(|part| part[lane]));
        let mut sums = Vec::new();
        for (masked, own) in masked.iter().zip(&own) {
            for lane in lanes.clone() {
                // Bit for bit what the same records and noise come to without a mask.
                assert_eq!(sum(masked, lane), sum(own, lane), "the masks of all cancel");
                sums.push(sum(masked, lane) as f64);
            }
        }
        // Nothing but noise changes from round to round: the questions are the same.
        let ratio = variance_ratio(&sums, honest as f64 * scale * scale);
        assert!((ratio - 1.0).abs() < VARIANCES, "{t} colluders: a variance of {ratio} times that of {honest} parties' noise");
        // One more that falls and shows its own number takes its own noise out of it, and no other's.
        let rest: Vec<f64> =
            own.iter().flat_map(|own| lanes.clone().map(|lane| sum(&own[1..], lane) as f64).collect::<Vec<_>>()).collect();
        let ratio = variance_ratio(&rest, (honest - 1) as f64 * scale * scale);
        assert!((ratio - 1.0).abs() < VARIANCES, "with one more: {ratio}");
        // What one honest party sends stays uniform when the colluders' masks are off.
        let one: Vec<i64> = masked.iter().flat_map(|round| round[t].clone()).collect();
        assert!(look_uniform(&one), "{t} colluders: the value of one honest party is not uniform");
        println!("{t} colluders of 7: remainder {ratio:.3} of (h - 1) s^2");
    }
}

/// With all others against it, a party is left with its own noise: neither less, nor another number than the one it would tell by itself.
#[test]
fn a_party_that_all_others_work_against_has_its_own_noise_left() {
    // The job says 5; a sixth falls.
    let (lab, masked, own) = what_is_left(5);
    let scale = lab.spec.privacy.noise.units() as f64;
    let mut left = Vec::new();
    for (round, own) in masked.iter().zip(&own) {
        for lane in 0..LANES as usize {
            let all = opened(round.iter().map(|part| part[lane]));
            left.push(all.wrapping_sub(own[1][lane]));
            assert_eq!(*left.last().expect("a number"), own[0][lane]);
        }
    }
    let left: Vec<f64> = left.into_iter().map(|sum| sum as f64).collect();
    assert!((variance_ratio(&left, scale * scale) - 1.0).abs() < VARIANCES);
}
