//! Monte Carlo error of a chain of noisy ratios once its budget is spent, without a guess of the posterior.
//!
//! By the small-step law a mean has `kappa (h / tau)² Q / (d sigma²)` effective draws after Q queries with moves of length `h`.
//! `sigma²` is the noise variance of all parties together. A query costs what a ledger would charge for such a move.

use super::outcome::{PlanError, kappa};
use crate::sampler::{Beforehand, Case, beforehand};
use conclave_common::job::{CALIBRATE_SHARE, JobSpec, Radius, Warmup};
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{PrivacyFilter, PrivacyUnit, mu_squared};
use conclave_privacy::mechanism::QueryKind;

/// Length of a move in conditional posterior sds.
const MOVE: f64 = 0.44;

/// Returns the rms Monte Carlo error over the coordinates, in posterior sds; infinite if the budget ends before the first kept
/// draw. Errors: a step without a price, or an invalid budget.
pub(super) fn penalty_error(spec: &JobSpec, records: f64, case: Case) -> Result<f64, PlanError> {
    let mut least = f64::INFINITY;
    for place in beforehand(spec, records, case) {
        least = least.min(at(spec, &place, case)?);
    }
    Ok(least)
}

fn at(spec: &JobSpec, place: &Beforehand, case: Case) -> Result<f64, PlanError> {
    let budget = mu_squared(PrivacyFilter::new(&spec.privacy.budget)?.limit_units());
    let price = mean_price(spec, place)?;
    let dimension = place.sd.len() as f64;
    let queries = budget * kept_share(spec, price * dimension / budget, case) / price;
    let variance = spec.ratio_variance();
    let effective = kappa(spec.sampler.proposal) * MOVE * MOVE * queries / (dimension * variance);
    Ok(effective.sqrt().recip())
}

/// Mean cost of a one-coordinate move at a party, as mu², over the coordinates.
fn mean_price(spec: &JobSpec, place: &Beforehand) -> Result<f64, PlanError> {
    let (model, transform, unit) = (spec.build_model(), spec.transform(), PrivacyUnit::default());
    let from = transform.unconstrain(&place.theta);
    let boxes = transform.unconstrained_box(&spec.support);
    let mut sum = 0.0;
    for (j, sd) in place.sd.iter().enumerate() {
        let step = (MOVE * sd).min(0.5 * (boxes[j].max - boxes[j].min));
        let mut to = from.clone();
        to[j] += if from[j] + step <= boxes[j].max { step } else { -step };
        let terms = QueryTerms::new(
            model.as_ref(),
            spec,
            unit,
            QueryKind::Ratio,
            (&transform.constrain(&from), &transform.constrain(&to)),
        )?;
        let charge = unit.charge_of_kind(QueryKind::Ratio, terms.sensitivity(), spec.protected(spec.privacy.noise))?;
        // Scaled to the full length of the move.
        sum += mu_squared(charge) * (MOVE * sd / step) * (MOVE * sd / step);
    }
    Ok(sum / place.sd.len().max(1) as f64)
}

/// Share of the budget that remains for kept draws, if a sweep of one chain costs the share `sweep`.
fn kept_share(spec: &JobSpec, sweep: f64, case: Case) -> f64 {
    let search = match (spec.sampler.locate_share, &spec.sampler.radius) {
        (share, _) if share > 0.0 => share,
        (_, Radius::Auto) => CALIBRATE_SHARE,
        _ => 0.0,
    };
    let sweeps = match (spec.sampler.warmup, case) {
        (Warmup::Sweeps(sweeps), _) | (Warmup::UntilRhat { max: sweeps, .. }, Case::Worse) => sweeps,
        (Warmup::UntilRhat { .. }, Case::Best) => 0,
    };
    let warmup = sweeps as f64 * f64::from(spec.sampler.chains) * sweep;
    (1.0 - search - spec.privacy.clip_watch_share - warmup).max(0.0)
}
