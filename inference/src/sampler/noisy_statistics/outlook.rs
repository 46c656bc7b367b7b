//! What error a job that releases once can expect, by whichever way it goes: in the best case and in a worse one.

use super::allotment::Allotment;
use super::beginning::Beginning;
use super::design::{Case, predictor_moments};
use super::expected::{self, Expected, Outlook};
use super::gaussian::factor;
use super::moments_way::MomentsWay;
use super::scores::Question;
use super::{expected_family, expected_moments, expected_table};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::schema::ModelSpec;

/// What can be expected of a job that releases once.
///
/// # Errors
/// A model with nothing to release; a budget that is none; a query without a price; a party whose unit the model is not for.
pub(crate) fn expectation(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Expected, SamplerError> {
    let target = Target::new(spec);
    let records = match target.model.scores().filter(|scores| scores.moments_outcome().is_none()) {
        Some(scores) => Beginning::of(&target, scores.as_ref(), parties).records,
        None => records_of(spec, parties),
    };
    Ok(Expected::of(spec, outlook(spec, parties)?, records))
}

/// The error in the best case and in a worse one.
///
/// # Errors
/// As [`expectation`].
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let budget = Allotment::new(spec, parties)?;
    let of = |case| error(&target, parties, &budget, case);
    let (best, worse) = (of(Case::Best)?, of(Case::Worse)?);
    Ok(Outlook { best, worse: worse.max(best) })
}

/// The error that score stages leave, in the best case and in a worse one.
///
/// # Errors
/// As [`expectation`].
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
    let beginning = Beginning::of(target, scores, parties);
    match case {
        Case::Best => beginning.error(target, scores, budget),
        Case::Worse => worse_scores(target, scores, beginning, budget, records_of(&target.spec, parties)),
    }
}

/// A sentence for a job whose answer will be wide even in the best case. Where no number of records is public nobody can tell.
///
/// # Errors
/// As [`expectation`].
pub(crate) fn announced(target: &Target, parties: &[PartyMetadata], budget: &Allotment) -> Result<Option<String>, SamplerError> {
    match PartyMetadata::most_records_of_all(parties) {
        Some(_) => Ok(expected::word(&target.spec, error(target, parties, budget, Case::Best)?)),
        None => Ok(None),
    }
}

/// The error in a case.
fn error(target: &Target, parties: &[PartyMetadata], budget: &Allotment, case: Case) -> Result<f64, SamplerError> {
    let records = records_of(&target.spec, parties);
    if let Some(table) = target.spec.outcome_table(target.model.as_ref()) {
        return expected_table::error(target, &table, budget, (records, parties.len()), case);
    }
    match target.model.scores() {
        Some(scores) if scores.moments_outcome().is_some() => {
            let way = MomentsWay::new(target, scores.as_ref(), parties)?;
            expected_moments::error(target, &way, budget, records, case)
        }
        Some(scores) => of_score(target, scores.as_ref(), parties, budget, case),
        None => expected_family::error(target, parties, budget, case),
    }
}

/// The most records of all parties that there can be, where that is public; or the job's guess, or one record.
fn records_of(spec: &JobSpec, parties: &[PartyMetadata]) -> f64 {
    let guess = spec.sampler.records_guess.map_or(1.0, |n| n as f64);
    PartyMetadata::most_records_of_all(parties).unwrap_or(guess * parties.len() as f64).max(1.0)
}

/// The error of score stages about records that fill a fifth of their bounds, asked about at the start.
fn worse_scores(
    target: &Target,
    scores: &dyn ScoreModel,
    beginning: Beginning,
    budget: &Allotment,
    records: f64,
) -> Result<f64, SamplerError> {
    let (spec, Beginning { coding, prior, start, theta, centred, .. }) = (&target.spec, beginning);
    let [of_predictor, of_own] = scores.most_information(&theta);
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
    let question = Question::new(scores, &coding, (theta, start), &covariance, centred > 0.0);
    expected::of_scores(spec, target.model.as_ref(), budget, &question, &covariance)
}
