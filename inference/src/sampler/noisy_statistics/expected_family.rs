//! Expected error of one release of a family's statistic.

use super::allotment::Allotment;
use super::design::{Case, FIFTH};
use super::family::Family;
use super::family_strategy::{clamping, family};
use crate::sampler::error::SamplerError;
use crate::sampler::statistic::ReleasedStatistic;
use crate::sampler::target::Target;
use conclave_common::query::PartyMetadata;
use conclave_privacy::mechanism::{QueryKind, STEP};

/// Number of grid points at which the largest variance of a record is searched.
const PLACES: u32 = 200;
/// Largest mean of a count in that search, in units of the largest count.
const BEYOND: f64 = 2.0;

/// Returns the rms over the parameters of the error of a posterior mean, in posterior sds without privacy.
///
/// Noise of variance `s²` on the total of `n` records of variance `V` widens the variance of a parameter by `s² / (n V)`,
/// whatever the slope of the mean is. For `k` shares, which sum to 1, the factor is `(1 - 1/k) s² / (n V)`.
///
/// # Errors
/// The model has no law of the record; a party does not protect rows against replacement; the query has no price.
pub(crate) fn error(target: &Target, parties: &[PartyMetadata], budget: &Allotment, case: Case) -> Result<f64, SamplerError> {
    let best = at(target, parties, budget, Case::Best)?;
    if case == Case::Best { Ok(best) } else { Ok(best.max(at(target, parties, budget, case)?)) }
}

fn at(target: &Target, parties: &[PartyMetadata], budget: &Allotment, case: Case) -> Result<f64, SamplerError> {
    let statistic = ReleasedStatistic::new(target, parties)?;
    let law = family(target).ok_or(SamplerError::NoScores)?;
    let theta = place(target, law, case);
    let record = law.record(clamping(target), &theta);
    let components = statistic.grids.len();
    let mut scale: f64 = 0.0;
    for component in 0..components {
        let kind = QueryKind::Statistic { component: component as u32 };
        scale = scale.max(budget.whole_sd(&target.spec, target.model.as_ref(), kind, (&[], &[]))? / STEP);
    }
    // All components have one noise scale and share the budget.
    let scale = scale * (components as f64 * statistic.parties).sqrt();
    let shared = if components > 1 { 1.0 - 1.0 / components as f64 } else { 1.0 };
    let square = |(variance, grid): (f64, &conclave_privacy::pass::StatisticGrid)| {
        shared * (scale * grid.step) * (scale * grid.step) / (statistic.records.max(1.0) * variance)
    };
    let squares: f64 = record.covariance.diagonal_entries().into_iter().zip(&statistic.grids).map(square).sum();
    Ok((squares / components.max(1) as f64).sqrt())
}

/// Returns the variance of each component of one record's statistic, for a family with a law of the record.
pub(crate) fn expected_law(target: &Target, case: Case) -> Option<Vec<f64>> {
    let law = family(target)?;
    Some(law.record(clamping(target), &place(target, law, case)).covariance.diagonal_entries())
}

/// Returns the assumed parameter of the records. In the best case the record's variance is largest there. In the worse case it is
/// a fifth of that, or the prior's centre for a mean.
pub(crate) fn place(target: &Target, law: Family, case: Case) -> Vec<f64> {
    let spec = &target.spec;
    let count = spec.dimension();
    if law == Family::Multinomial {
        return (0..count).map(|level| case.level(level, count)).collect();
    }
    let within = spec.support[0];
    let (least, greatest) = match law {
        Family::PoissonMean { max } => (within.min, within.max.min(BEYOND * f64::from(max))),
        Family::GaussianMean { min, max, .. } => (within.min.max(min), within.max.min(max)),
        Family::Bernoulli | Family::Multinomial => (within.min, within.max),
    };
    let variance = |theta: f64| law.record(clamping(target), &[theta]).covariance[(0, 0)];
    let candidates = (0..=PLACES).map(|k| least + (greatest - least) * (f64::from(k) / f64::from(PLACES)));
    let most =
        candidates.fold((f64::NAN, 0.0), |most, theta| if variance(theta) > most.1 { (theta, variance(theta)) } else { most });
    let best = if most.0.is_nan() { 0.5 * least + 0.5 * greatest } else { most.0 };
    let theta = match (case, law) {
        (Case::Best, _) => best,
        (Case::Worse, Family::Bernoulli) => FIFTH,
        (Case::Worse, Family::PoissonMean { .. }) => FIFTH * best,
        (Case::Worse, _) => target.space.theta(&target.space.location)[0],
    };
    vec![theta.clamp(within.min, within.max)]
}
