//! Whether a job can be expected to leave an answer, from what is public before anything is asked.
//!
//! A budget that is spent does not come back, so a job is refused where none can be expected: one that releases once, where the noise
//! would leave intervals more than twice as wide as without privacy in the best case, or several times that where records fill a fifth of
//! what is declared; a chain that would keep not one draw, and chains by gradients that would come to hardly any. An analyst who knows better forces it.

use super::penalty_error::penalty_error;
use crate::sampler;
use crate::sampler::{Case, ErrorSource, Outlook, SamplerError, engine};
use conclave_common::job::{JobSpec, Radius};
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Budget, gaussian_dp};

/// What would do is named with this much to spare.
const ROOM: f64 = 1.02;
/// Effective draws of all chains below which sds come out too small and nothing shows it.
const LEAST_ESS: f64 = 20.0;
/// Steps in which it is looked for.
const STEPS: u32 = 20;
/// Doublings of an epsilon that are tried.
const DOUBLINGS: u32 = 40;
/// Halvings of the range that it lies in then.
const HALVINGS: u32 = 20;

/// Why no answer can be expected, and what would do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Hopeless {
    /// The noise of a release would hide the answer.
    #[error(
        "at this budget the noise would move each mean by {best:.1} posterior sds in the best case, and by {worse:.1} where the records fill a \
         fifth of the declared bounds; no answer can be expected. Epsilon {epsilon:.1} would do, or {records:.0} records in all, or narrower \
         bounds. Nothing was asked; to ask all the same, write force = true under [sampler]"
    )]
    NoAnswer {
        /// The error of a posterior mean, in posterior sds without privacy, in the best case.
        best: f64,
        /// The same in a worse one.
        worse: f64,
        /// An epsilon that would do, at the job's delta.
        epsilon: f64,
        /// Records of all parties that would do.
        records: f64,
    },
    /// Chains driven by gradients would come to too few effective draws.
    #[error(
        "at this budget the chains would come to {ess:.0} effective draws in the best case, and from fewer than {LEAST_ESS:.0} neither means nor \
         sds can be told; epsilon {epsilon:.1} would do, and algorithm = \"noisy-statistics\" may ask for less. Nothing was asked; to ask all the \
         same, write force = true under [sampler]"
    )]
    FewDraws {
        /// Effective draws of all chains, in the best case.
        ess: f64,
        /// An epsilon that would do, at the job's delta.
        epsilon: f64,
    },
    /// A chain would have no draw.
    #[error(
        "at this budget the chains would not keep one draw, even in the best case. Epsilon {epsilon:.1} is the least at which there could be one, and \
         algorithm = \"auto\" may ask for less. Nothing was asked; to ask all the same, write force = true under [sampler]"
    )]
    NoDraw {
        /// The least epsilon that would give any, at the job's delta.
        epsilon: f64,
    },
    /// What is paid ahead is beyond the budget: nothing comes of that, forced or not.
    #[error("{0}. Nothing was asked")]
    PaidAhead(SamplerError),
}

/// Why nothing can be expected of a job of these parties; `None` where something can, where a number of records is not public, and where
/// the job is forced but for what is paid ahead. A job that can't be run for another reason is for the sampler to refuse.
#[must_use]
pub fn prospect(spec: &JobSpec, parties: &[PartyMetadata]) -> Option<Hopeless> {
    if let Err(error) = (engine(spec.algorithm).affords)(spec, parties) {
        return Some(Hopeless::PaidAhead(error));
    }
    if spec.sampler.force {
        return None;
    }
    let records = PartyMetadata::most_records_of_all(parties)?;
    match engine(spec.algorithm).error_source {
        ErrorSource::Release { refusable: true, .. } => of_release(spec, parties, records),
        ErrorSource::Ratios => of_chain(spec, records),
        ErrorSource::Gradients { .. } => of_gradients(spec, parties),
        ErrorSource::Release { refusable: false, .. } | ErrorSource::Choices | ErrorSource::Unknown { .. } => None,
    }
}

/// The error falls about as mu and as the root of the number of records: what would do is looked for from there, as a prior has its part in it.
fn of_release(spec: &JobSpec, parties: &[PartyMetadata], records: f64) -> Option<Hopeless> {
    let outlook = sampler::outlook(spec, parties).ok().flatten()?;
    if outlook.excess() <= 1.0 {
        return None;
    }
    let more_records = |factor: f64| {
        let more: Vec<PartyMetadata> = parties.iter().map(|party| party.times(factor * factor)).collect();
        sampler::outlook(spec, &more)
    };
    let budget = &spec.privacy.budget;
    let epsilon = |factor: f64| ROOM * gaussian_dp::epsilon(budget.mu() * factor, budget.delta);
    let more_budget = |factor: f64| {
        let mut other = spec.clone();
        other.privacy.budget = Budget { epsilon: epsilon(factor), ..*budget };
        sampler::outlook(&other, parties)
    };
    let enough = |at: &dyn Fn(f64) -> Result<Option<Outlook>, SamplerError>| {
        let mut factor = outlook.excess();
        for _ in 0..STEPS {
            match at(factor).ok().flatten() {
                Some(outlook) if outlook.excess() > 1.0 => factor *= ROOM * outlook.excess(),
                _ => break,
            }
        }
        factor
    };
    let (by_budget, by_records) = (enough(&more_budget), enough(&more_records));
    Some(Hopeless::NoAnswer {
        best: outlook.best,
        worse: outlook.worse,
        epsilon: epsilon(by_budget),
        records: (ROOM * records * by_records * by_records).ceil(),
    })
}

/// Effective draws go with mu². Too few that were asked for are the analyst's choice.
fn of_gradients(spec: &JobSpec, parties: &[PartyMetadata]) -> Option<Hopeless> {
    let mut unlimited = spec.clone();
    unlimited.sampler.draws = u64::MAX;
    let ess = sampler::outlook(&unlimited, parties).ok().flatten()?.best.powi(-2);
    let budget = &spec.privacy.budget;
    let epsilon = ROOM * gaussian_dp::epsilon(budget.mu() * (LEAST_ESS / ess).sqrt(), budget.delta);
    (ess < LEAST_ESS).then_some(Hopeless::FewDraws { ess, epsilon })
}

/// Chains whose radii are the analyst's may move less than the planner's do.
fn of_chain(spec: &JobSpec, records: f64) -> Option<Hopeless> {
    let draws = |epsilon: f64| {
        let mut other = spec.clone();
        other.privacy.budget = Budget { epsilon, ..spec.privacy.budget };
        // What has no price is told by the sampler.
        penalty_error(&other, records, Case::Best).map_or(true, f64::is_finite)
    };
    let epsilon = spec.privacy.budget.epsilon;
    if !matches!(spec.sampler.radius, Radius::Auto) || draws(epsilon) {
        return None;
    }
    let (mut under, mut over) = (epsilon, 2.0 * epsilon);
    let mut left = DOUBLINGS;
    while !draws(over) && left > 0 {
        (under, over, left) = (over, 2.0 * over, left - 1);
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (under + over);
        if draws(middle) { over = middle } else { under = middle }
    }
    Some(Hopeless::NoDraw { epsilon: ROOM * over })
}
