//! What the audit of releases over samples finds, and what it does not.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use conclave_privacy::accounting::{Adjacency, PrivacyUnit, SamplingProbability};
use conclave_privacy::pass::PoissonSampling;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::asked::{Asked, Prepare, SampledAudit};
use super::design::Design;
use super::run::checks;
use crate::audit::run::Folder;
use crate::audit::tests::plant;
use conclave_vault::answer::Answerer;
use conclave_vault::answer::sandbox::Sandbox;
use conclave_vault::answer::testing::{FloatClipped, NanNotClamped};

const BOTH: [Asked; 2] = [Asked::Ratios, Asked::Gradients];

fn audit(asked: Asked, q: f64, replicates: u64) -> SampledAudit {
    let probability = SamplingProbability::at_least(q).unwrap();
    SampledAudit { asked, unit: PrivacyUnit::default(), probability, releases: 16, replicates }
}

/// What is found at a sampling probability in what `prepare` makes of the answers, replicates apart.
fn findings(asked: Asked, q: f64, prepare: &Prepare) -> Vec<String> {
    checks(&Design::new(audit(asked, q, 1)).unwrap(), Folder::new().unwrap().path(), prepare).unwrap()
}

#[track_caller]
fn assert_found(findings: &[String], what: &str) {
    assert!(findings.iter().any(|finding| finding.contains(what)), "{what}: {findings:?}");
}

/// Of the mu that is claimed the best test comes to 0.97 where rows are replaced and to 0.81 where persons are added or removed: a Gaussian release
/// covers a block at every epsilon, and its mean errors are where it covers most. At so many replicates a half is five standard errors below, and the
/// bound at 99.9% passes the claim less than once in 5000 times.
#[test]
fn a_block_keeps_its_claim() {
    let removed = PrivacyUnit::person(Adjacency::AddRemove, 3).unwrap();
    let replaced = PrivacyUnit::person(Adjacency::Replace, 3).unwrap();
    for (asked, unit, replicates) in
        [(Asked::Ratios, PrivacyUnit::default(), 2000), (Asked::Ratios, removed, 8000), (Asked::Gradients, replaced, 2000)]
    {
        let report = SampledAudit { unit, ..audit(asked, 0.25, replicates) }.run(&|_| {}).unwrap();
        assert_eq!(report.findings, [""; 0], "{asked:?}, {unit}");
        assert!(report.mu_lower > 0.5 * report.mu_claimed && report.mu_lower_999 < report.mu_claimed, "{report:?}");
        assert!(report.epsilon_lower < report.epsilon_claimed, "{report:?}");
    }
}

/// As many messages as leave each the same number of releases, about as many as there are messages.
#[test]
fn a_jobs_releases_are_in_several_messages() {
    let messages = |releases| SampledAudit { releases, ..audit(Asked::Ratios, 0.25, 1) }.messages();
    assert_eq!([1, 2, 3, 4, 12, 16, 64].map(messages), [1, 2, 3, 2, 4, 4, 8]);
}

thread_local! {
    /// What the next sample is drawn from, where a test says it.
    static SEED: Cell<u64> = const { Cell::new(0) };
    /// Samples drawn of the present job.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

fn seeded(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Another sample every time, which the test can draw too.
fn known(generator: &mut ChaCha20Rng) {
    SEED.set(SEED.get() + 1);
    *generator = seeded(SEED.get());
}

/// The same sample until the test says otherwise.
fn the_same(generator: &mut ChaCha20Rng) {
    *generator = seeded(SEED.get());
}

/// Every second release has the sample of the one before.
fn again_for_the_next(generator: &mut ChaCha20Rng) {
    DRAWN.set(DRAWN.get() + 1);
    *generator = seeded((SEED.get() << 32) | (DRAWN.get() / 2));
}

/// Each release of a message has a sample of its own, and those of the next message have the same ones.
fn again_in_the_next_message(generator: &mut ChaCha20Rng) {
    DRAWN.set(DRAWN.get() + 1);
    *generator = seeded((SEED.get() << 32) | (DRAWN.get() % 4));
}

/// Keys samples of the next job in another way than those of the last.
fn key_samples(keying: fn(&mut ChaCha20Rng)) -> impl Fn(&mut Sandbox) + Sync {
    move |sandbox: &mut Sandbox| {
        SEED.set(SEED.get() + 1);
        DRAWN.set(0);
        sandbox.answerer.key_samples_by(keying);
    }
}

/// One sample for all releases of a message: a unit is in all of them or in none.
#[test]
fn a_sample_that_is_used_in_two_releases_is_found() {
    assert_found(&findings(Asked::Ratios, 0.05, &key_samples(the_same)), "the variance of a message's sum");
}

/// The generator of samples is used for the next release as it was for this one. Half of all neighbours have a sample in common then, and eleven
/// standard errors of their products.
#[test]
fn a_generator_of_samples_that_is_used_for_the_next_release_is_found() {
    for asked in BOTH {
        assert_found(&findings(asked, 0.05, &key_samples(again_for_the_next)), "what answers 1 apart have in common");
    }
}

/// No two releases of a message have anything in common: it takes a second message to see it.
#[test]
fn a_sample_that_is_used_in_two_messages_is_found() {
    for asked in BOTH {
        let found = findings(asked, 0.05, &key_samples(again_in_the_next_message));
        assert_found(&found, "what answers 4 apart have in common");
        let of_one = |finding: &String| finding.contains("message's sum") || finding.contains("answers 1 apart");
        assert!(!found.iter().any(of_one), "{found:?}");
    }
}

/// Makes one of an integer of an answer, in the place that it has in its release, and of the size of the release's sample and the mean of sizes.
type Told = fn(i64, usize, [f64; 2]) -> i64;

/// What is found where answers go with the size of each release's sample.
fn found_of_size(asked: Asked, told: Told) -> Vec<String> {
    let q = SamplingProbability::at_least(0.25).unwrap();
    findings(asked, 0.25, &move |sandbox: &mut Sandbox| {
        sandbox.answerer.key_samples_by(known);
        sandbox.respond = Box::new(move |answerer: &mut Answerer, request| {
            let units = answerer.units_of(&request.job);
            let (sampling, mut seed) = (PoissonSampling::new(units, q), SEED.get());
            let each = if asked == Asked::Ratios { 1 } else { 2 };
            let mut answer = answerer.answer(request);
            for released in answer.releases.chunks_mut(each) {
                seed += 1;
                let size = sampling.sample(&mut seeded(seed)).open_for_test().len() as f64;
                released.iter_mut().enumerate().for_each(|(k, x)| *x = told(*x, k, [size, q.get() * units as f64]));
            }
            answer
        });
    })
}

/// The sum over a sample made into an estimate of all by its size, as if that were public.
#[test]
fn a_samples_size_that_is_told_by_a_scale_is_found() {
    let told: Told = |released, _, [size, mean]| (released as f64 * mean / size.max(1.0)) as i64;
    assert_found(&found_of_size(Asked::Ratios, told), "add the most the variance of answers is");
}

/// The most that a unit may add to a ratio, in lattice units, and to a gradient along the direction that is looked at and across it.
const RATIO: f64 = 2_147_483_648.0;
const ALONG: [f64; 2] = [0.6 * 268_435_456.0, 0.8 * 268_435_456.0];
const ACROSS: [f64; 2] = [-ALONG[1], ALONG[0]];

/// A centre of a tenth of the most that a unit may add: taken off every record that is summed, and given back for as many as there were.
#[test]
fn a_centre_that_is_added_for_each_sampled_record_is_found() {
    let ratios: Told = |x, _, [size, _]| x + (size * 0.1 * RATIO) as i64;
    assert_found(&found_of_size(Asked::Ratios, ratios), "add nothing the mean of answers, less");
    let gradients: Told = |x, k, [size, _]| x + (size * 0.1 * ALONG[k]) as i64;
    assert_found(&found_of_size(Asked::Gradients, gradients), "add nothing the mean of answers, less");
    let across: Told = |x, k, [size, _]| x + (size * 0.1 * ACROSS[k]) as i64;
    assert_found(&found_of_size(Asked::Gradients, across), "add nothing the mean of answers across");
}

/// How far a sample's size is from its mean, each unit three tenths of a noise standard deviation: nothing of it is in any mean.
#[test]
fn a_samples_size_that_is_told_beside_noise_is_found() {
    let along: Told = |x, k, [size, mean]| x + ((size - mean) * 0.6 * ALONG[k]) as i64;
    assert_found(&found_of_size(Asked::Gradients, along), "add nothing the variance of answers is");
    let across: Told = |x, k, [size, mean]| x + ((size - mean) * 0.6 * ACROSS[k]) as i64;
    assert_found(&found_of_size(Asked::Gradients, across), "add nothing the variance of answers across");
}

/// An answer with one integer more than was asked for.
#[test]
fn a_samples_size_that_is_told_in_so_many_words_is_found() {
    let report = audit(Asked::Ratios, 0.25, 1).run(&|sandbox: &mut Sandbox| {
        sandbox.respond = Box::new(|answerer: &mut Answerer, request| {
            let mut answer = answerer.answer(request);
            answer.releases.push(11);
            answer
        });
    });
    assert_eq!(report.unwrap_err(), "an answer has 5 integers in place of 4");
}

/// A record that a float's comparisons let through, and no integer's clamp holds.
#[test]
fn a_unit_beyond_its_clip_is_found() {
    let report = audit(Asked::Ratios, 0.25, 1000)
        .run(&|sandbox: &mut Sandbox| plant(sandbox, |inner| Box::new(NanNotClamped(inner))))
        .unwrap();
    assert!(!report.holds);
    assert_found(&report.findings, "beyond what clamped records and noise");
    assert_found(&report.findings, "are charged: beyond its clip");
}

/// A vector that is as long as is charged for as a float, and longer as the integers that are added. No noise hides so little, and none is needed:
/// each of so many shortened vectors is too long with probability of about a half.
#[test]
fn a_length_that_is_held_to_by_floats_alone_is_found() {
    let found = findings(Asked::Gradients, 0.25, &|sandbox: &mut Sandbox| plant(sandbox, |inner| Box::new(FloatClipped(inner))));
    assert_found(&found, "are charged: beyond its clip");
    assert_eq!(found.len(), 1, "nothing else shows it: {found:?}");
}

/// What the audit must show; some minutes on two processors.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn sampled_replicates_never_tell_more_than_a_block_claims() {
    for asked in BOTH {
        for (q, unit) in [
            (0.05, PrivacyUnit::default()),
            (0.25, PrivacyUnit::default()),
            (0.25, PrivacyUnit::row(Adjacency::AddRemove)),
            (0.25, PrivacyUnit::person(Adjacency::Replace, 3).unwrap()),
        ] {
            let report = SampledAudit { unit, ..audit(asked, q, 30_000) }.run(&|_| {}).unwrap();
            println!(
                "{} of {unit}, q {q}, 16 releases in {} messages: mu claimed {:.4}, at least {:.4} (95%), {:.4} (99.9%); epsilon at {:e} claimed \
                 {:.4}, at least {:.4}",
                report.kind,
                report.messages,
                report.mu_claimed,
                report.mu_lower,
                report.mu_lower_999,
                report.delta,
                report.epsilon_claimed,
                report.epsilon_lower
            );
            assert!(report.holds && report.mu_lower_999 < report.mu_claimed, "{report:?}");
            assert!(report.epsilon_lower < report.epsilon_claimed, "{report:?}");
        }
    }
}
