//! Settings of a `barker` job.

#![allow(clippy::unwrap_used)]

use crate::job::{Algorithm, JobError, JobSpec};
use conclave_privacy::accounting::{Adjacency, MOST_RELATIVE_SENSITIVITY, PrivacyUnit};

fn parse(sampler: &str, privacy: &str) -> Result<JobSpec, JobError> {
    JobSpec::parse(&format!(
        "name = \"b\"\nalgorithm = \"barker\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
         [columns]\ny = {{ min = -10, max = 10 }}\n[sampler]\ndraws = 100\n{sampler}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{privacy}\n"
    ))
}

#[test]
fn noise_fills_the_correction_and_no_more() {
    for correction in [2.0, 1.5, 1.0] {
        let spec = parse(&format!("correction = {correction:?}"), "").unwrap();
        assert_eq!(spec.sampler.barker.correction, correction);
        let filled = spec.ratio_variance() / correction;
        assert!(filled <= 1.0 && filled > 0.9999, "{filled}");
    }
    // Written in decimals, and rounded up by them or by the grid.
    let written = parse("", "noise_sd = 0.8164966").unwrap();
    assert!(written.ratio_variance() <= 2.0);
    assert_eq!(parse("", "").unwrap().privacy.noise, written.privacy.noise);
    // Less noise is the analyst's choice, and is topped up.
    assert!((parse("", "noise_sd = 0.5").unwrap().ratio_variance() - 0.75).abs() < 1e-4);
}

#[test]
fn samples_leave_room_for_their_variance() {
    let spec = parse("batch = 0.5", "clip = 0.2").unwrap();
    // 0.44 times 1.1 posterior sds at most, squared.
    assert!((spec.ratio_variance() - (2.0 - 0.234_256)).abs() < 1e-3, "{}", spec.ratio_variance());
    assert!(spec.privacy.blocks.is_some());
    // Back to all records: no samples, no blocks, and the whole delta.
    let penalty = spec.by(Algorithm::Penalty).unwrap();
    assert!(penalty.privacy.blocks.is_none() && (penalty.privacy.budget.delta - 1e-6).abs() < 1e-15);
    assert_eq!(penalty.by(Algorithm::Barker).unwrap().ratio_variance(), parse("", "").unwrap().ratio_variance());
}

#[test]
fn settings_without_effect_are_refused_by_name() {
    for (sampler, privacy, key) in [
        ("correction = 2.5", "", "sampler.correction"),
        ("", "noise_sd = 0.9", "privacy.noise_sd"),
        ("batch = 0.1", "clip = 0.2", "sampler.batch"),
        ("batch = 0.5", "", "privacy.clip"),
        ("batch = 0.5", "clip = { slope = 1.0 }", "privacy.clip"),
        ("batch = 0.5\nproposal = { kind = \"random_walk\" }", "clip = 0.2", "sampler.proposal.kind"),
        ("batch = 0.5\nstart = { mean = 0.0 }\nproposal = { radius = 0.01 }", "clip = 0.2", "sampler.proposal.radius"),
    ] {
        let error = parse(sampler, privacy).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}

/// Samples with too little noise for any owner to open a block are refused at submission, but earlier jobs can still be read.
#[test]
fn samples_that_hide_next_to_nothing_are_refused_when_they_are_new() {
    let of = |clip: f64| parse("batch = 0.25\ncorrection = 2.0", &format!("clip = {clip}")).unwrap();
    let relative = |spec: &JobSpec, unit| spec.relative_sensitivity_of_ratios(unit).unwrap();
    let row = PrivacyUnit::row(Adjacency::AddRemove);
    let wide = of(0.4);
    let most = 0.4 * MOST_RELATIVE_SENSITIVITY / relative(&wide, row);
    let error = wide.check_new().unwrap_err();
    let said = format!("clip = {:.4} or less", (most * 1e4 - 0.5).round() * 1e-4);
    assert!(error.key == "privacy.clip" && error.to_string().contains(&said), "{error}, not {said}");
    let narrow = of(most * 0.999);
    narrow.check_new().unwrap();
    // Persons of two rows move a sum twice as far.
    let person = PrivacyUnit::person(Adjacency::AddRemove, 2).unwrap();
    assert!((relative(&narrow, person) / relative(&narrow, row) - 2.0).abs() < 1e-4);
    assert_eq!(parse("", "").unwrap().relative_sensitivity_of_ratios(row), None);
}
