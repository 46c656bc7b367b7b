//! The verdict on a finished run: can its answer be relied on?
//!
//! Every algorithm gets the same verdict, computed from the result alone: from the summaries of its draws, and from what the run
//! reports beside them.

use std::collections::BTreeMap;

use super::noisy_statistics::FIFTH;
use super::{Check, GradientDiagnostics, LEAST_PLANNED, RunReport, StochasticGradients};
use crate::diagnostics::Summary;
use serde::Serialize;

/// Largest Monte Carlo error of a mean, in posterior sds. It corresponds to about six effective draws.
const MOST_MCSE: f64 = 0.4;
/// Largest effect of the law of predictors beyond their bounds on a mean, in posterior sds. With it, intervals of 90% hold in 86%.
const MOST_SHIFT: f64 = 0.5;

/// The checks of a run's answer, and their result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Adequacy {
    /// True if every check passes; otherwise no interval is valid.
    pub adequate: bool,
    /// The value and the limit of each check, by its name.
    #[serde(flatten)]
    pub figures: BTreeMap<&'static str, Check>,
    /// The reasons for inadequacy, in words.
    pub reasons: Vec<String>,
}

impl Adequacy {
    /// Returns the verdict on a run with this report and these parameters, `(name, summary)`.
    #[must_use]
    pub fn of(report: &RunReport, rows: &[(&str, Summary)]) -> Self {
        let released = report.inference.as_ref();
        let mut checks = released.map(|inference| inference.checks.clone()).unwrap_or_default();
        let mut reasons = released.map(|inference| inference.reasons.clone()).unwrap_or_default();
        if let Some(ess) = report.planned_ess() {
            let check = Check { name: "planned_error", value: ess.sqrt().recip(), limit: LEAST_PLANNED.sqrt().recip() };
            checks.push(check);
            reasons.extend((!passes(check)).then(|| too_few_planned(ess)));
        }
        let check = Check { name: "mcse_to_sd", value: largest_error(rows), limit: MOST_MCSE };
        checks.push(check);
        reasons.extend((!passes(check)).then(|| too_uncertain(rows)));
        let shifts = report.shift_of_clamped.iter().flatten().zip(rows).map(|(shift, row)| (row.0, shift.abs() / row.1.sd));
        if let Some((name, value)) = shifts.max_by(|a, b| a.1.total_cmp(&b.1)) {
            let check = Check { name: "clamped_shift", value, limit: MOST_SHIFT };
            checks.push(check);
            reasons.extend((!passes(check)).then(|| rests_on_clamped(name, value)));
        }
        Self { adequate: reasons.is_empty(), figures: checks.into_iter().map(|check| (check.name, check)).collect(), reasons }
    }
}

/// Returns true if a figure is within its limit; false for NaN.
fn passes(check: Check) -> bool {
    check.value <= check.limit
}

/// Returns the largest Monte Carlo error of a mean over the parameter's sd; `NaN` if any is not defined.
fn largest_error(rows: &[(&str, Summary)]) -> f64 {
    let shares = rows.iter().map(|(_, summary)| error_of(summary));
    shares.reduce(|most, share| if most.is_nan() || share <= most { most } else { share }).unwrap_or(f64::NAN)
}

fn error_of(summary: &Summary) -> f64 {
    // Equal draws have no error to relate.
    if summary.sd > 0.0 { summary.mcse_mean / summary.sd } else { f64::NAN }
}

/// States why the draws do not determine the means.
fn too_uncertain(rows: &[(&str, Summary)]) -> String {
    if let Some((name, _)) = rows.iter().find(|(_, summary)| summary.sd == 0.0) {
        return format!("all draws of {name} are equal: its chains never moved");
    }
    let worst = rows.iter().max_by(|a, b| error_of(&a.1).total_cmp(&error_of(&b.1)));
    match worst.map(|(name, summary)| (name, error_of(summary))) {
        Some((name, share)) if share.is_finite() => format!(
            "the draws do not determine the means: the ratio of the Monte Carlo error of {name} to its posterior sd is {share:.2}, above the \
             limit of {MOST_MCSE}"
        ),
        _ => "the Monte Carlo error of a mean is not defined: there are too few draws".to_owned(),
    }
}

/// States that the run was planned for too few effective draws.
fn too_few_planned(ess: f64) -> String {
    format!(
        "the run was planned for about {ess:.0} effective draws, and fewer than {LEAST_PLANNED:.0} determine neither means nor sds"
    )
}

/// States that the law of predictors beyond their bounds decides.
fn rests_on_clamped(name: &str, shift: f64) -> String {
    format!(
        "{name} depends on the assumed normal law of the predictors: if those imputed beyond their bounds lay within them, it would differ by \
         {shift:.1} posterior sds, above the limit of {MOST_SHIFT}, and no release shows which is right; noisy-statistics assumes no law of \
         predictors, and bounds that no value exceeds or reaches need none"
    )
}

impl RunReport {
    /// Returns the planned effective draws of the chains that yield the draws; `None` for an algorithm that plans none.
    ///
    /// A search that does not find the posterior's shape plans with the widest one that the bounds allow, where predictors fill
    /// them. The figure here assumes that they fill a fifth: a direction is then a fifth as wide relative to its noise.
    fn planned_ess(&self) -> Option<f64> {
        let of = |ess: f64, shape_released: bool| planned_for_shape(ess, shape_released);
        let tested = self
            .gradients
            .as_ref()
            .map(|GradientDiagnostics { planned_ess, shape_released, .. }| of(*planned_ess, *shape_released));
        tested.or_else(|| {
            let StochasticGradients { planned_ess, shape_released, polish, .. } = self.stochastic_gradients.as_ref()?;
            Some(polish.as_ref().map_or_else(|| of(*planned_ess, *shape_released), |polish| polish.planned_ess))
        })
    }
}

/// Returns planned effective draws, for predictors that fill a fifth of their bounds where the shape is not released.
pub(super) fn planned_for_shape(ess: f64, shape_released: bool) -> f64 {
    if shape_released { ess } else { ess * FIFTH * FIFTH }
}

#[cfg(test)]
#[path = "tests/adequacy.rs"]
mod tests;
