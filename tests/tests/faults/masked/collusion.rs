//! Colluders that pool all their data: the remainder of a sum carries all the noise of the others.

use conclave_privacy::secagg::opened;
use conclave_proto::convert::query_to_wire;
use conclave_proto::v1;

use super::lab::{LANES, Lab, released};
use super::lies::look_uniform;

const ROUNDS: u64 = 40;

/// With this many samples, each a sum of discrete Gaussians, the ratio of the sample variance to the expected one has a standard
/// deviation of sqrt(2 / 1280) = 0.04. Six of them are exceeded with a probability below 10^-8; one missing noise of four would
/// be a quarter.
const VARIANCES: f64 = 6.0 * 0.04;

fn variance_ratio(sums: &[f64], expected: f64) -> f64 {
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / (sums.len() - 1) as f64 / expected
}

/// Numbers by round and party.
type Numbers = Vec<Vec<Vec<i64>>>;

/// Lets the coordinator and `t` of seven parties, with their keys, remove every mask that they can. An identical job with local
/// answers, the same records and the same noise, shows each party's own numbers, which masking hides.
fn unmask(t: usize) -> (Lab, Numbers, Numbers) {
    let (mut lab, mut plain) = (Lab::masked(7, t), Lab::of(7, t, ""));
    let entries = lab.begin();
    let roster = lab.roster(&entries);
    let keys: Vec<_> = (0..t).map(|place| lab.keys_of(place, &roster)).collect();
    for place in plain.honest() {
        assert_eq!(plain.open(place).expect("a job that opens"), None);
    }
    let (mut masked, mut own) = (Vec::new(), Vec::new());
    for iteration in 0..ROUNDS {
        let query = lab.query(iteration);
        let digest = conclave_common::query::message_digest(&roster.digest(), iteration, &lab.queries());
        // A colluder can choose zero as its own number: its masks alone stand for its answer.
        let of_colluders =
            keys.iter().map(|keys| keys.masks(&digest, LANES as usize).into_iter().map(u64::cast_signed).collect::<Vec<i64>>());
        let mut round: Vec<Vec<i64>> = of_colluders.collect();
        let query_in_plain = query_to_wire(&plain.job.job, iteration, &plain.queries());
        let mut alone = Vec::new();
        for place in lab.honest() {
            let answer: v1::Answer = lab.ask(place, &query);
            round.push(released(&answer).expect("an answer").to_vec());
            alone.push(released(&plain.ask(place, &query_in_plain)).expect("an answer").to_vec());
        }
        masked.push(round);
        own.push(alone);
    }
    (lab, masked, own)
}

#[test]
fn colluders_cannot_remove_the_noise_of_the_others() {
    for t in [1, 3, 5] {
        let (lab, masked, own) = unmask(t);
        let honest = 7 - t;
        let scale = lab.spec.privacy.noise.units() as f64;
        let lanes = 0..LANES as usize;
        let sum = |parts: &[Vec<i64>], lane: usize| opened(parts.iter().map(|part| part[lane]));
        let mut sums = Vec::new();
        for (masked, own) in masked.iter().zip(&own) {
            for lane in lanes.clone() {
                // Equal, bit for bit, to the sum from the same records and noise without masks.
                assert_eq!(sum(masked, lane), sum(own, lane), "the masks of all cancel");
                sums.push(sum(masked, lane) as f64);
            }
        }
        // Only the noise changes from round to round, since the queries are the same.
        let ratio = variance_ratio(&sums, honest as f64 * scale * scale);
        assert!((ratio - 1.0).abs() < VARIANCES, "{t} colluders: a variance of {ratio} times that of {honest} parties' noise");
        // One more colluder, which reveals its own number, removes its own noise from the sum and no other's.
        let rest: Vec<f64> =
            own.iter().flat_map(|own| lanes.clone().map(|lane| sum(&own[1..], lane) as f64).collect::<Vec<_>>()).collect();
        let ratio = variance_ratio(&rest, (honest - 1) as f64 * scale * scale);
        assert!((ratio - 1.0).abs() < VARIANCES, "with one more: {ratio}");
        // An honest party's answers stay uniform after the colluders' masks are removed.
        let one: Vec<i64> = masked.iter().flat_map(|round| round[t].clone()).collect();
        assert!(look_uniform(&one), "{t} colluders: the value of one honest party is not uniform");
        println!("{t} colluders of 7: remainder {ratio:.3} of (h - 1) s^2");
    }
}

/// A party with all others against it keeps its own noise: the remainder is exactly its answer in a local job.
#[test]
fn a_party_against_which_all_others_collude_keeps_its_own_noise() {
    // The job allows for 5 colluders; a sixth party joins them.
    let (lab, masked, own) = unmask(5);
    let scale = lab.spec.privacy.noise.units() as f64;
    let mut remainders = Vec::new();
    for (round, own) in masked.iter().zip(&own) {
        for lane in 0..LANES as usize {
            let all = opened(round.iter().map(|part| part[lane]));
            remainders.push(all.wrapping_sub(own[1][lane]));
            assert_eq!(*remainders.last().expect("a number"), own[0][lane]);
        }
    }
    let remainders: Vec<f64> = remainders.into_iter().map(|sum| sum as f64).collect();
    assert!((variance_ratio(&remainders, scale * scale) - 1.0).abs() < VARIANCES);
}
