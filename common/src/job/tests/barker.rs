//! What a job by `barker` may say.

#![allow(clippy::unwrap_used)]

use crate::job::{Algorithm, JobError, JobSpec};

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
    // Written in digits, and rounded up by them or by the grid.
    let written = parse("", "noise_sd = 0.8164966").unwrap();
    assert!(written.ratio_variance() <= 2.0);
    assert_eq!(parse("", "").unwrap().privacy.noise, written.privacy.noise);
    // Less is the analyst's choice, and topped up.
    assert!((parse("", "noise_sd = 0.5").unwrap().ratio_variance() - 0.75).abs() < 1e-4);
}

#[test]
fn samples_leave_room_for_their_variance() {
    let spec = parse("batch = 0.5", "clip = 0.2").unwrap();
    // 0.44 times 1.1 posterior sds at most, squared.
    assert!((spec.ratio_variance() - (2.0 - 0.234_256)).abs() < 1e-3, "{}", spec.ratio_variance());
    assert!(spec.privacy.blocks.is_some());
    // Back to all records: no samples, no blocks, and the whole of delta.
    let penalty = spec.by(Algorithm::Penalty).unwrap();
    assert!(penalty.privacy.blocks.is_none() && (penalty.privacy.budget.delta - 1e-6).abs() < 1e-15);
    assert_eq!(penalty.by(Algorithm::Barker).unwrap().ratio_variance(), parse("", "").unwrap().ratio_variance());
}

#[test]
fn what_is_asked_in_vain_is_refused_by_name() {
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
