//! Finds the step that takes a kernel longest: every parameter moves, by more than the short cuts for small steps take.

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{Honest, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// Distance by which every parameter moves, where its box is wide enough.
const FAR: f64 = 0.125;
/// An ordinary value of a parameter.
pub(super) const ORDINARY: f64 = 0.3;

/// A step, and noise at a negligible cost.
#[derive(Debug, Clone)]
pub(super) struct WorstCaseStep {
    pub(super) from: Vec<f64>,
    pub(super) to: Vec<f64>,
    pub(super) noise: NoiseScale,
}

impl WorstCaseStep {
    /// Returns the step of a job at a party that protects `units` units like `unit`, at a cost of at most `limit` units of mu².
    ///
    /// `None` where there is no such step: the model gives no bound and the job no clip, or no noise covers the bound.
    pub(super) fn new(model: &dyn Model, spec: &JobSpec, unit: PrivacyUnit, units: u64, limit: u64) -> Option<Self> {
        let (from, to) = Self::ends(spec);
        if !(spec.in_support(&from) && spec.in_support(&to)) {
            return None;
        }
        let terms = QueryTerms::new(model, spec, unit, QueryKind::Ratio, (&from, &to)).ok()?;
        if !terms.sum_fits(units) {
            return None;
        }
        Some(Self { from, to, noise: cheap(&terms, unit, spec.privacy.noise, spec.honest(), limit)? })
    }

    pub(super) fn ends(spec: &JobSpec) -> (Vec<f64>, Vec<f64>) {
        let ends = spec.support.iter().map(|box_| {
            let from = ORDINARY.clamp(box_.min, box_.max);
            let (above, below) = (box_.max - from, from - box_.min);
            (from, if above >= below { from + FAR.min(above) } else { from - FAR.min(below) })
        });
        ends.unzip()
    }

    /// Returns the step, or its reverse.
    pub(super) fn turned(&self, back: bool) -> (&[f64], &[f64]) {
        if back { (&self.to, &self.from) } else { (&self.from, &self.to) }
    }
}

/// Widens `noise` until a query costs at most `limit` units of mu²; the scale has no influence on the time of an answer. `None` where no
/// noise is wide enough.
pub(super) fn cheap(
    terms: &QueryTerms,
    unit: PrivacyUnit,
    mut noise: NoiseScale,
    honest: Honest,
    limit: u64,
) -> Option<NoiseScale> {
    while unit.charge_of_kind(terms.kind(), terms.sensitivity(), (noise, honest)).ok().is_none_or(|charge| charge > limit) {
        noise = NoiseScale::from_units(noise.units().checked_mul(2)?).ok()?;
    }
    Some(noise)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn found(job: &str) -> Option<WorstCaseStep> {
        let text = format!("name = \"t\"\nparties = [\"a\"]\n{job}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n");
        let spec = JobSpec::parse(&text).unwrap();
        WorstCaseStep::new(spec.build_model().as_ref(), &spec, PrivacyUnit::default(), 10_000, 1 << 32)
    }

    #[test]
    fn every_parameter_moves_far_and_the_budget_holds_all_of_it() {
        let regression = |kind: &str, outcome: &str, more: &str| {
            format!(
                "[model]\nkind = \"{kind}\"\noutcome = \"y\"\npredictors = [\"x\", \"b\"]\n{more}[columns]\ny = {outcome}\n\
                 x = {{ min = 0, max = 9 }}\nb = {{ binary = true }}\n"
            )
        };
        let count = "{ min = 0, max = 20 }";
        for job in [
            regression("logistic", "{ binary = true }", ""),
            regression("logistic", "{ binary = true }", "[parameters]\nx = { min = 0.29, max = 0.31 }\n"),
            regression("linear", count, ""),
            regression("linear", count, "sd = 2\n"),
            regression("poisson", count, ""),
            regression("negative_binomial", count, ""),
            regression("student_t", count, "df = 4\n"),
            format!("[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\ny = {count}\n"),
        ] {
            let found = found(&job);
            let Some(WorstCaseStep { from, to, .. }) = &found else {
                // Without a clip, ratios without a bound have no price.
                assert!(job.contains("\"poisson\"") || job.contains("negative_binomial"), "{job}");
                continue;
            };
            let narrow = job.contains("0.29");
            assert!(from.iter().zip(to).all(|(a, b)| (a - b).abs() >= if narrow { 0.009 } else { 0.12 }), "{job}: {found:?}");
            let (there, back) = (found.as_ref().unwrap().turned(false), found.as_ref().unwrap().turned(true));
            assert_eq!((there.0, there.1), (back.1, back.0));
        }
    }
}
