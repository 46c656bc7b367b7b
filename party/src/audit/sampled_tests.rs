//! What the audit of releases over samples finds, and what it does not.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use conclave_common::accounting::{Adjacency, PrivacyUnit, SamplingProbability};
use conclave_common::model::PoissonSampling;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::sampled::{SampledAudit, SampledReport};
use super::tests::plant;
use crate::answer::Answerer;
use crate::answer::sandbox::Sandbox;
use crate::answer::tests::faults::NanNotClamped;

fn audit(q: f64, replicates: u64) -> SampledAudit {
    let probability = SamplingProbability::at_least(q).unwrap();
    SampledAudit { unit: PrivacyUnit::default(), probability, releases: 16, replicates }
}

fn found(report: &SampledReport, what: &str) -> bool {
    !report.holds && report.findings.iter().any(|finding| finding.contains(what))
}

#[test]
fn a_block_keeps_its_claim() {
    for unit in [PrivacyUnit::default(), PrivacyUnit::person(Adjacency::AddRemove, 3).unwrap()] {
        let report = SampledAudit { unit, ..audit(0.25, 2000) }.run(&|_| {}).unwrap();
        assert_eq!(report.findings, [""; 0], "{unit}");
        assert!(report.mu_lower > 0.5 * report.mu_claimed && report.mu_lower_999 < report.mu_claimed, "{report:?}");
        assert!(report.epsilon_lower < report.epsilon_claimed, "{report:?}");
    }
}

thread_local! {
    /// What the next sample is drawn from, where a test says it.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Another sample every time, which the test can draw too.
fn known(generator: &mut ChaCha20Rng) {
    SEED.set(SEED.get() + 1);
    *generator = ChaCha20Rng::seed_from_u64(SEED.get());
}

/// The same sample until the test says otherwise.
fn the_same(generator: &mut ChaCha20Rng) {
    *generator = ChaCha20Rng::seed_from_u64(SEED.get());
}

/// One sample for all releases of a message: a unit is in all of them or in none.
#[test]
fn a_sample_that_is_used_in_two_releases_is_found() {
    let report = audit(0.05, 4000).run(&|sandbox: &mut Sandbox| {
        SEED.set(SEED.get() + 1);
        sandbox.answerer.key_samples_by(the_same);
    });
    let report = report.unwrap();
    assert!(found(&report, "the variance of a message's sum"), "{:?}", report.findings);
}

/// The sum over a sample made into an estimate of all by its size, as if that were public.
#[test]
fn a_samples_size_that_is_told_by_a_scale_is_found() {
    let q = SamplingProbability::at_least(0.25).unwrap();
    let report = audit(0.25, 1000).run(&|sandbox: &mut Sandbox| {
        sandbox.answerer.key_samples_by(known);
        sandbox.respond = Box::new(move |answerer: &mut Answerer, request| {
            let job = request.job.clone();
            let units = answerer.units_of(&job);
            let (sampling, first) = (PoissonSampling::new(units, q), SEED.get());
            let mut answer = answerer.answer(request);
            for (seed, released) in (first + 1..).zip(&mut answer.releases) {
                let size = sampling.sample(&mut ChaCha20Rng::seed_from_u64(seed)).open_for_test().len();
                let scale = q.get() * units as f64 / (size as f64).max(1.0);
                *released = (*released as f64 * scale) as i64;
            }
            answer
        });
    });
    assert!(found(&report.unwrap(), "the variance of answers"));
}

/// A record that a float's comparisons let through, and no integer's clamp holds.
#[test]
fn a_unit_beyond_its_clip_is_found() {
    let report = audit(0.25, 1000).run(&|sandbox: &mut Sandbox| plant(sandbox, |inner| Box::new(NanNotClamped(inner))));
    let report = report.unwrap();
    assert!(found(&report, "beyond what clamped records and noise"), "{:?}", report.findings);
}

/// What the audit must show; some minutes on two processors.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn sampled_replicates_never_tell_more_than_a_block_claims() {
    for (q, unit) in [
        (0.05, PrivacyUnit::default()),
        (0.25, PrivacyUnit::default()),
        (0.25, PrivacyUnit::row(Adjacency::AddRemove)),
        (0.25, PrivacyUnit::person(Adjacency::Replace, 3).unwrap()),
    ] {
        let report = SampledAudit { unit, ..audit(q, 30_000) }.run(&|_| {}).unwrap();
        assert!(report.holds && report.mu_lower_999 < report.mu_claimed, "{report:?}");
        assert!(report.epsilon_lower < report.epsilon_claimed, "{report:?}");
    }
}
