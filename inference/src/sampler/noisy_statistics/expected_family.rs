//! The error that one release of a family's statistic can be expected to leave.

use super::allotment::Allotment;
use super::design::{Case, FIFTH};
use super::family::Family;
use super::family_way::{clamping, family};
use crate::sampler::error::SamplerError;
use crate::sampler::statistic::ReleasedStatistic;
use crate::sampler::target::Target;
use conclave_common::query::PartyMetadata;
use conclave_privacy::mechanism::{QueryKind, STEP};

/// Places at which a record's variance is looked at for its greatest.
const PLACES: u32 = 200;
/// The greatest mean of a count that is looked at, in units of the greatest count.
const BEYOND: f64 = 2.0;

/// The rms over the parameters of the error of a posterior mean, in posterior sds without privacy.
///
/// Noise of variance `s²` on the total of `n` records of variance `V` widens the variance of a parameter by `s² / (n V)`, whatever
/// the mean's slope is; of `k` shares, which add up to 1, by `(1 - 1/k)` of that.
///
/// # Errors
/// A model without a law of the record; a party that does not protect rows against replacement; a query without a price.
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
    // One scale for all components, which share the budget.
    let scale = scale * (components as f64 * statistic.parties).sqrt();
    let shared = if components > 1 { 1.0 - 1.0 / components as f64 } else { 1.0 };
    let square = |(variance, grid): (f64, &conclave_privacy::pass::StatisticGrid)| {
        shared * (scale * grid.step) * (scale * grid.step) / (statistic.records.max(1.0) * variance)
    };
    let squares: f64 = record.covariance.diagonal_entries().into_iter().zip(&statistic.grids).map(square).sum();
    Ok((squares / components.max(1) as f64).sqrt())
}

/// The variance of each component of one record's statistic, of a family with a law of the record.
pub(crate) fn expected_law(target: &Target, case: Case) -> Option<Vec<f64>> {
    let law = family(target)?;
    Some(law.record(clamping(target), &place(target, law, case)).covariance.diagonal_entries())
}

/// Where the records are assumed to be: where they vary most; or a fifth of the way there, and a mean at the prior's centre.
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
