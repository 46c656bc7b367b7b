//! Expected error of a job that releases once, for every strategy, in the best case and in a worse one.

use super::allotment::Allotment;
use super::design::{Case, predictor_moments};
use super::expected::{self, Expected, Outlook};
use super::gaussian::factor;
use super::moments_strategy::MomentsStrategy;
use super::scores::GradientQuery;
use super::starting_point::StartingPoint;
use super::{expected_family, expected_moments, expected_table, life_table_strategy, weighted};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::job::{JobSpec, Weights};
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::schema::ModelSpec;

/// Returns the expected precision of a job that releases once.
///
/// # Errors
/// The model has nothing to release; the budget is invalid; a query has no price; the model does not support a party's unit of
/// privacy.
pub(crate) fn expectation(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Expected, SamplerError> {
    let target = Target::new(spec);
    let records = match target.model.scores().filter(|scores| scores.moments_outcome().is_none()) {
        Some(scores) => StartingPoint::of(&target, scores.as_ref(), parties).records,
        None => records_of(spec, parties),
    };
    Ok(Expected::of(spec, outlook(spec, parties)?, records))
}

/// Returns the error in the best case and in a worse one.
///
/// # Errors
/// Those of [`expectation`].
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let budget = Allotment::new(spec, parties)?;
    let plain = plain_outlook(&target, parties, &budget)?;
    Ok(match weighted::outlook(&target, parties, &budget)? {
        Some(weighted) if spec.weights == Weights::Always || !is_plain_enough(plain) => weighted,
        _ => plain,
    })
}

/// Returns the error without weights, in the best case and in a worse one.
///
/// # Errors
/// Those of [`expectation`].
pub(crate) fn plain_outlook(target: &Target, parties: &[PartyMetadata], budget: &Allotment) -> Result<Outlook, SamplerError> {
    let of = |case| error(target, parties, budget, case);
    let (best, worse) = (of(Case::Best)?, of(Case::Worse)?);
    Ok(Outlook { best, worse: worse.max(best) })
}

/// Returns the parties whose own releases alone determine their parameters poorly: with errors above two posterior sds of their own
/// records in the best case. Empty for a job whose parties share every parameter.
pub(crate) fn small_parties(spec: &JobSpec, parties: &[PartyMetadata]) -> Vec<String> {
    /// Such a party has a quarter of the records with which its releases count half of what its records would.
    const ALONE: f64 = 2.0;
    let error = |at: usize, metadata: &PartyMetadata| {
        let target = Target::new(&spec.at_party(at));
        let budget = Allotment::new(&target.spec, &[*metadata])?;
        let scores = target.scores()?;
        StartingPoint::of(&target, scores.as_ref(), &[*metadata]).error(&target, scores.as_ref(), &budget)
    };
    let small = |(at, metadata): &(usize, &PartyMetadata)| error(*at, metadata).is_ok_and(|error| error > ALONE);
    let of_sites = parties.iter().enumerate().filter(|_| spec.sites.is_some());
    of_sites.filter(small).filter_map(|(at, _)| spec.parties.get(at).cloned()).collect()
}

/// Returns true where an unweighted answer is sharp even in three times the worse case, which real data may be, so that nothing need be
/// learnt.
pub(crate) fn is_plain_enough(plain: Outlook) -> bool {
    /// Error in posterior sds at which an interval is 12 % wider.
    const SHARP: f64 = 0.5;
    3.0 * plain.worse <= SHARP
}

/// Returns the error of score stages, in the best case and in a worse one.
///
/// # Errors
/// Those of [`expectation`].
pub(crate) fn of_scores(
    target: &Target,
    scores: &dyn ScoreModel,
    parties: &[PartyMetadata],
    budget: &Allotment,
) -> Result<Outlook, SamplerError> {
    let of = |case| of_score(target, scores, parties, budget, case);
    let (best, worse) = (of(Case::Best)?, of(Case::Worse)?);
    Ok(Outlook { best, worse: worse.max(best) })
}

fn of_score(
    target: &Target,
    scores: &dyn ScoreModel,
    parties: &[PartyMetadata],
    budget: &Allotment,
    case: Case,
) -> Result<f64, SamplerError> {
    let starting_point = StartingPoint::of(target, scores, parties);
    match case {
        Case::Best => starting_point.error(target, scores, budget),
        Case::Worse => worse_scores(target, scores, starting_point, budget, records_of(&target.spec, parties)),
    }
}

/// Returns a warning if the answer will be wide even in the best case; `None` if the number of records is not public.
///
/// # Errors
/// Those of [`expectation`].
pub(crate) fn wide_posterior_warning(
    target: &Target,
    parties: &[PartyMetadata],
    budget: &Allotment,
) -> Result<Option<String>, SamplerError> {
    match PartyMetadata::most_records_of_all(parties) {
        Some(_) => {
            let weighted = weighted::outlook(target, parties, budget)?.map_or(f64::INFINITY, |outlook| outlook.best);
            Ok(expected::wide_posterior_warning(&target.spec, error(target, parties, budget, Case::Best)?.min(weighted)))
        }
        None => Ok(None),
    }
}

/// Returns the error in one case.
fn error(target: &Target, parties: &[PartyMetadata], budget: &Allotment, case: Case) -> Result<f64, SamplerError> {
    let records = records_of(&target.spec, parties);
    if let Some(table) = target.spec.outcome_table(target.model.as_ref()) {
        return expected_table::error(target, &table, budget, (records, parties.len()), case);
    }
    if let Some(table) = target.model.life_table() {
        return life_table_strategy::error(target, table, budget, (records, parties.len()), case);
    }
    match target.model.scores() {
        Some(scores) if scores.moments_outcome().is_some() => {
            let strategy = MomentsStrategy::new(target, scores.as_ref(), parties)?;
            expected_moments::error(target, &strategy, budget, records, case)
        }
        Some(scores) => of_score(target, scores.as_ref(), parties, budget, case),
        None => expected_family::error(target, parties, budget, case),
    }
}

/// Returns the public upper limit of the total number of records; without one, the job's guess, or one record per party.
fn records_of(spec: &JobSpec, parties: &[PartyMetadata]) -> f64 {
    let guess = spec.sampler.records_guess.map_or(1.0, |n| n as f64);
    PartyMetadata::most_records_of_all(parties).unwrap_or(guess * parties.len() as f64).max(1.0)
}

/// Returns the error of score stages for records that fill a fifth of their bounds, with the query at the start.
fn worse_scores(
    target: &Target,
    scores: &dyn ScoreModel,
    starting_point: StartingPoint,
    budget: &Allotment,
    records: f64,
) -> Result<f64, SamplerError> {
    let (spec, StartingPoint { coding, prior, start, theta, centred, .. }) = (&target.spec, starting_point);
    let [of_predictor, of_own] = scores.most_expected(&theta);
    let among = match &spec.model {
        ModelSpec::Regression(regression) => {
            coding.moments(&predictor_moments(&regression.design, &spec.columns, Case::Worse)).scaled(of_predictor)
        }
        _ => Matrix::diagonal(&scores.even_information(&theta)).scaled(Case::Worse.filled() * Case::Worse.filled()),
    };
    let information = Matrix::from_fn(theta.len(), |i, j| {
        let data = match (i.max(j) < among.order(), i == j) {
            (true, _) => among[(i, j)],
            (false, true) => of_own,
            (false, false) => 0.0,
        };
        records * data + if i == j { prior.precision[j] } else { 0.0 }
    });
    let covariance = factor(&information).inverse();
    let gradient_query = GradientQuery::new(scores, &coding, (theta, start), &covariance, centred > 0.0);
    expected::of_scores(spec, target.model.as_ref(), budget, &gradient_query, &covariance)
}
