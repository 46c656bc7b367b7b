//! Runs are replayed from their logs.

#![allow(clippy::unwrap_used)]

use super::fixtures::{asked, give, sampler_of};
use crate::sampler::{ReplayError, Sampler, SamplerError};
use conclave_common::job::JobSpec;

fn job() -> JobSpec {
    let job = "name = \"m\"\nparties = [\"a\", \"b\"]\n\
               model = { kind = \"gaussian_mean\", outcome = \"x\", sd = 1.0 }\n\
               columns = { x = { min = -4, max = 4 } }\n\
               [sampler]\nchains = 2\ndraws = 3\nwarmup = 0\nstart = { mean = 0.1 }\n\
               proposal = { kind = \"guided\", radius = 0.05 }\n\
               [privacy]\nepsilon = 20.0\ndelta = 1e-6\n";
    JobSpec::parse(job).unwrap()
}

fn sampler() -> Box<dyn Sampler> {
    sampler_of(&job(), &[100, 200])
}

#[test]
fn a_log_leads_where_the_run_went() {
    let (mut live, mut log) = (sampler(), Vec::new());
    while let Some(round) = asked(live.as_mut()) {
        let releases = vec![vec![round.iteration as i64 * 7 - 9; round.queries.len()]; 2];
        give(live.as_mut(), &round, &releases);
        log.push((round, releases));
    }
    let mut again = sampler();
    for (round, releases) in &log {
        assert_eq!(again.replay(round.iteration, releases).unwrap(), *round);
    }
    assert_eq!((asked(again.as_mut()), again.take_draws()), (None, live.take_draws()));
    let beyond = again.replay(3, &log[0].1).unwrap_err();
    assert_eq!(beyond, ReplayError::OutOfPlace { logged: 3, expected: None });
    assert!(beyond.to_string().contains("nothing more"));
}

#[test]
fn a_round_that_is_missing_or_of_another_length_is_told() {
    let mut again = sampler();
    let round = asked(again.as_mut()).unwrap();
    let releases = vec![vec![0; round.queries.len()]; 2];
    assert_eq!(again.replay(1, &releases).unwrap_err(), ReplayError::OutOfPlace { logged: 1, expected: Some(0) });
    assert!(matches!(again.replay(0, &releases[..1]).unwrap_err(), ReplayError::Releases(SamplerError::Shape(_))));
    // Neither error moved the sampler forward.
    assert_eq!(again.replay(0, &releases).unwrap(), round);
}

#[test]
fn counts_that_nobody_can_hold_are_no_panic() {
    let mut wild = sampler_of(&job(), &[u64::MAX, u64::MAX]);
    let round = asked(wild.as_mut()).unwrap();
    assert!(wild.replay(0, &vec![vec![i64::MAX; round.queries.len()]; 2]).is_ok());
}
