//! Forecast that decides, from public data before any query, whether a job can yield a usable answer.
//!
//! A spent budget cannot be recovered, so a job without a usable answer is refused. For a job with one release that means
//! intervals more than twice as wide as without privacy in the best case, or several times that if the records fill a fifth of
//! the declared bounds. For a chain it means no kept draw, and for chains driven by gradients too few effective draws. An analyst
//! may force the job.

use super::outcome::{PlanError, kappa};
use crate::figures::rounded_up;
use crate::sampler;
use crate::sampler::{Beforehand, Case, Engine, ErrorSource, LEAST_PLANNED, Outlook, SamplerError, beforehand, engine};
use conclave_common::job::{Algorithm, CALIBRATE_SHARE, JobSpec, Radius, Warmup};
use conclave_common::query::{PartyMetadata, QueryTerms};
use conclave_privacy::accounting::{Budget, PrivacyFilter, PrivacyUnit, gaussian_dp, mu_squared};
use conclave_privacy::mechanism::QueryKind;

/// Factor by which a remedy grows until the planner admits it.
const ROOM: f64 = 1.02;
/// Largest number of steps of the search for a remedy.
const STEPS: u32 = 60;
/// Largest number of doublings of epsilon.
const DOUBLINGS: u32 = 40;
/// Number of halvings of the range that then contains epsilon.
const HALVINGS: u32 = 20;

/// Length of a move in conditional posterior sds.
const MOVE: f64 = 0.44;

/// Reason why no usable answer can be expected, with a sufficient remedy. The planner admits the same job at each figure of a
/// remedy, as it is printed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Futility {
    /// The noise of a release would hide the answer.
    #[error(
        "at this budget the noise would move each mean by {best:.1} posterior sds in the best case, and by {worse:.1} if the records fill a \
         fifth of the declared bounds; no usable answer can be expected. {}. No query was made; to run the job anyway, set force = true under \
         [sampler]", either(*epsilon, *records)
    )]
    NoAnswer {
        /// Error of a posterior mean in the best case, in posterior sds without privacy.
        best: f64,
        /// Error of a posterior mean in a worse case.
        worse: f64,
        /// Sufficient epsilon at the job's delta; infinite if none was found.
        epsilon: f64,
        /// Sufficient number of records over all parties; infinite if none was found.
        records: f64,
    },
    /// Chains driven by gradients would have too few effective draws.
    #[error(
        "at this budget the chains would have {ess:.0} effective draws in the best case, and fewer than {LEAST_PLANNED:.0} determine neither means \
         nor sds. {}{}. No query was made; to run the job anyway, set force = true under [sampler]",
        either(*epsilon, f64::INFINITY), once(*released_once)
    )]
    FewDraws {
        /// Effective draws of all chains in the best case.
        ess: f64,
        /// Sufficient epsilon at the job's delta; infinite if none was found.
        epsilon: f64,
        /// True if `noisy-statistics` is admitted at the job's own budget.
        released_once: bool,
    },
    /// A chain would keep no draw.
    #[error(
        "at this budget the chains would not keep one draw, even in the best case. {}{}. No query was made; to run the job anyway, set \
         force = true under [sampler]", either(*epsilon, f64::INFINITY), once(*released_once)
    )]
    NoDraw {
        /// Least epsilon that could give a draw, at the job's delta; infinite if none was found.
        epsilon: f64,
        /// True if `noisy-statistics` is admitted at the job's own budget.
        released_once: bool,
    },
    /// The charges in advance exceed the budget. The job cannot run, even if forced.
    #[error("{0}. No query was made")]
    PaidAhead(SamplerError),
}

/// States which epsilon or number of records would suffice.
fn either(epsilon: f64, records: f64) -> String {
    match (epsilon.is_finite(), records.is_finite()) {
        (true, true) => format!("Epsilon {epsilon:.1} would suffice, or {records:.0} records in all"),
        (true, false) => format!("Epsilon {epsilon:.1} would suffice"),
        (false, true) => format!("{records:.0} records in all would suffice"),
        (false, false) => "No epsilon suffices for so few records".to_owned(),
    }
}

/// Names the algorithm that needs less, if there is one.
fn once(admitted: bool) -> &'static str {
    if admitted { ", and algorithm = \"noisy-statistics\" needs no more than this budget" } else { "" }
}

/// Returns the reason why no usable answer can be expected from a job of these parties.
///
/// `None` if an answer can be expected, if a number of records is not public, or if the job is forced. Charges in advance that
/// exceed the budget are reported even for a forced job. Other obstacles are left to the sampler, which refuses the job.
#[must_use]
pub fn prospect(spec: &JobSpec, parties: &[PartyMetadata]) -> Option<Futility> {
    if let Err(error) = (engine(spec.algorithm).affords)(spec, parties) {
        return Some(Futility::PaidAhead(error));
    }
    if spec.sampler.force {
        return None;
    }
    let records = PartyMetadata::most_records_of_all(parties)?;
    match engine(spec.algorithm).error_source {
        ErrorSource::Release { refusable: true, .. } => of_release(spec, parties, records),
        ErrorSource::Ratios => of_chain(spec, parties, records),
        ErrorSource::Gradients { .. } => of_gradients(spec, parties, records),
        ErrorSource::Release { refusable: false, .. } | ErrorSource::Choices | ErrorSource::Unknown { .. } => None,
    }
}

/// Returns true if the planner has nothing against a job of these parties, which together hold at most `records`.
fn is_admitted(spec: &JobSpec, parties: &[PartyMetadata], records: f64) -> bool {
    let Engine { affords, error_source, .. } = engine(spec.algorithm);
    // Other obstacles are left to the sampler, which refuses the job.
    let has_answer = match error_source {
        ErrorSource::Release { refusable: true, .. } => release_excess(spec, parties).is_none_or(|excess| excess <= 1.0),
        ErrorSource::Ratios => keeps_draws(spec, records),
        ErrorSource::Gradients { .. } => effective_draws(spec, parties).is_none_or(|ess| ess >= LEAST_PLANNED),
        ErrorSource::Release { refusable: false, .. } | ErrorSource::Choices | ErrorSource::Unknown { .. } => true,
    };
    has_answer && affords(spec, parties).is_ok()
}

/// Returns the least epsilon with one decimal, from an estimate on, at which the job is admitted; infinite if none is found.
fn admitted_epsilon(spec: &JobSpec, parties: &[PartyMetadata], records: f64, estimate: f64) -> f64 {
    let mut epsilon = rounded_up(estimate);
    for _ in 0..STEPS {
        if is_admitted(&at_epsilon(spec, epsilon), parties, records) {
            return epsilon;
        }
        epsilon = rounded_up(ROOM * epsilon);
    }
    f64::INFINITY
}

fn at_epsilon(spec: &JobSpec, epsilon: f64) -> JobSpec {
    let mut other = spec.clone();
    other.privacy.budget = Budget { epsilon, ..spec.privacy.budget };
    other
}

/// Returns true if one release is admitted at the job's own budget.
fn is_released_once(spec: &JobSpec, parties: &[PartyMetadata], records: f64) -> bool {
    spec.by(Algorithm::NoisyStatistics).is_ok_and(|once| {
        release_excess(&once, parties).is_some_and(|excess| excess <= 1.0) && is_admitted(&once, parties, records)
    })
}

fn release_excess(spec: &JobSpec, parties: &[PartyMetadata]) -> Option<f64> {
    sampler::outlook(spec, parties).ok().flatten().map(Outlook::excess)
}

/// Searches for a sufficient budget and number of records. The search starts from the approximate law: the error falls with mu
/// and with the square root of the number of records. The prior makes the law inexact.
fn of_release(spec: &JobSpec, parties: &[PartyMetadata], records: f64) -> Option<Futility> {
    let outlook = sampler::outlook(spec, parties).ok().flatten()?;
    let excess = outlook.excess();
    if excess <= 1.0 {
        return None;
    }
    let budget = &spec.privacy.budget;
    let epsilon = admitted_epsilon(spec, parties, records, gaussian_dp::epsilon(budget.mu() * excess, budget.delta));
    let mut enough = (records * excess * excess).ceil();
    let admitted = |total: f64| {
        // Each party's number is rounded up, so the sum is at most the total.
        let times = (total - parties.len() as f64) / records;
        let more: Vec<PartyMetadata> = parties.iter().map(|party| party.times(times)).collect();
        is_admitted(spec, &more, total)
    };
    let mut left = STEPS;
    while left > 0 && !admitted(enough) {
        // The excess is at most that of the first step's law.
        (enough, left) = ((ROOM * enough).ceil(), left - 1);
    }
    let records = if left > 0 { enough } else { f64::INFINITY };
    Some(Futility::NoAnswer { best: outlook.best, worse: outlook.worse, epsilon, records })
}

/// Returns the effective draws of gradient-driven chains in the best case. They grow with mu². The forecast ignores the job's own
/// limit on draws: a small limit is the analyst's choice.
fn effective_draws(spec: &JobSpec, parties: &[PartyMetadata]) -> Option<f64> {
    let mut unlimited = spec.clone();
    unlimited.sampler.draws = u64::MAX;
    Some(sampler::outlook(&unlimited, parties).ok().flatten()?.best.powi(-2))
}

fn of_gradients(spec: &JobSpec, parties: &[PartyMetadata], records: f64) -> Option<Futility> {
    let ess = effective_draws(spec, parties).filter(|ess| *ess < LEAST_PLANNED)?;
    let budget = &spec.privacy.budget;
    let estimate = gaussian_dp::epsilon(budget.mu() * (LEAST_PLANNED / ess).sqrt(), budget.delta);
    let epsilon = admitted_epsilon(spec, parties, records, estimate);
    Some(Futility::FewDraws { ess, epsilon, released_once: is_released_once(spec, parties, records) })
}

/// Returns true if the chains keep a draw in the best case. The sampler reports a step without a price.
///
/// Chains with radii set by the analyst are not judged: they may take shorter moves than the planner assumes.
fn keeps_draws(spec: &JobSpec, records: f64) -> bool {
    !matches!(spec.sampler.radius, Radius::Auto) || penalty_error(spec, records, Case::Best).map_or(true, f64::is_finite)
}

fn of_chain(spec: &JobSpec, parties: &[PartyMetadata], records: f64) -> Option<Futility> {
    if keeps_draws(spec, records) {
        return None;
    }
    let draws = |epsilon: f64| keeps_draws(&at_epsilon(spec, epsilon), records);
    let epsilon = spec.privacy.budget.epsilon;
    let (mut under, mut over) = (epsilon, 2.0 * epsilon);
    let mut left = DOUBLINGS;
    while !draws(over) && left > 0 {
        (under, over, left) = (over, 2.0 * over, left - 1);
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (under + over);
        if draws(middle) { over = middle } else { under = middle }
    }
    let epsilon = admitted_epsilon(spec, parties, records, over);
    Some(Futility::NoDraw { epsilon, released_once: is_released_once(spec, parties, records) })
}

/// Returns the rms Monte Carlo error over the coordinates of a chain of noisy ratios, in posterior sds, without a guess of the
/// posterior; infinite if the budget ends before the first kept draw. Errors: a step without a price, or an invalid budget.
///
/// By the small-step law a mean has `kappa (h / tau)² Q / (d sigma²)` effective draws after Q queries with moves of length `h`.
/// `sigma²` is the noise variance of all parties together. A query costs what a ledger would charge for such a move.
pub(super) fn penalty_error(spec: &JobSpec, records: f64, case: Case) -> Result<f64, PlanError> {
    let mut least = f64::INFINITY;
    for place in beforehand(spec, records, case) {
        least = least.min(at(spec, &place, (records, case))?);
    }
    Ok(least)
}

fn at(spec: &JobSpec, place: &Beforehand, (records, case): (f64, Case)) -> Result<f64, PlanError> {
    if spec.weighs_chains() {
        return weighted_at(spec, place, records);
    }
    let budget = mu_squared(PrivacyFilter::new(&spec.privacy.budget)?.limit_units());
    let price = mean_price(spec, place)?;
    let dimension = place.sd.len() as f64;
    let queries = budget * kept_share(spec, price * dimension / budget, case) / price;
    let variance = spec.ratio_variance();
    let effective = kappa(spec.sampler.proposal) * MOVE * MOVE * queries / (dimension * variance);
    Ok(effective.sqrt().recip())
}

/// The same for chains that may weight records, from the plan of a posterior without correlations.
fn weighted_at(spec: &JobSpec, place: &Beforehand, records: f64) -> Result<f64, PlanError> {
    let (order, parties) = (place.sd.len(), spec.parties.len() as f64);
    let records = vec![(records / parties).max(1.0) as u64; spec.parties.len()];
    let precision = |i: usize, j: usize| if i == j { place.sd[i].powi(-2) } else { 0.0 };
    let precision: Vec<Vec<f64>> = (0..order).map(|i| (0..order).map(|j| precision(i, j)).collect()).collect();
    let mean = spec.transform().unconstrain(&place.theta);
    match (engine(spec.algorithm).foresee)(spec, &PartyMetadata::of_rows(&records), &mean, &precision) {
        Ok(seen) => Ok((seen.ess.iter().map(|ess| ess.recip()).sum::<f64>() / order as f64).sqrt()),
        Err(SamplerError::TooSmallABudget { .. }) => Ok(f64::INFINITY),
        Err(error) => Err(error.into()),
    }
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
