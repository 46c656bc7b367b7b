//! The location of the candidates: a search for the mode, by ratios or by gradients, with a share of the budget.

use super::candidates::CandidateLaw;
use crate::sampler::error::SamplerError;
use crate::sampler::gradient_search::{GradientSearch, Located};
use crate::sampler::matrix::Matrix;
use crate::sampler::mode_search::{ModeSearch, SearchPlan};
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};
use conclave_common::query::{centre, is_centred};
use conclave_privacy::mechanism::{QueryKind, STEP};

/// A running search.
pub(super) enum Search {
    Ratios(Box<ModeSearch>),
    Gradients(Box<GradientSearch>),
}

impl Search {
    /// Returns the job's search; `None` if it makes none.
    ///
    /// # Errors
    /// The search needs a count of records that is neither public nor guessed; the model has no gradients; a budget is out of
    /// range.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<Option<Self>, SamplerError> {
        let share = target.spec.sampler.locate_share;
        if share == 0.0 {
            return Ok(None);
        }
        if target.spec.locates_by_gradients() {
            let part = Allotment::new(&target.spec, parties)?.split_off(share);
            return Ok(Some(Self::Gradients(GradientSearch::new(target, parties, part)?.into())));
        }
        let plan = SearchPlan::new(target, parties, target.budget()?)?;
        Ok(plan.map(|plan| Self::Ratios(plan.search(target).into())))
    }

    /// Returns the next queries.
    ///
    /// # Errors
    /// A query has no price.
    pub(super) fn queries(&mut self, target: &Target) -> Result<Vec<Query>, SamplerError> {
        match self {
            Self::Ratios(search) => search.queries(&target.spec, &target.space, target.model.as_ref()),
            Self::Gradients(search) => search.queries(target),
        }
    }

    /// Processes a round's answers. Returns the law of candidates after the last one. `party` is the answering party.
    ///
    /// # Errors
    /// The search has ended without a result.
    pub(super) fn absorb(
        &mut self,
        target: &Target,
        party: PartyMetadata,
        (round, totals): (&Round, &Totals),
    ) -> Result<Option<CandidateLaw>, SamplerError> {
        match self {
            Self::Gradients(search) => Ok(search.absorb(target, round, totals)?.map(|found| {
                let Located { u, covariance, error } = Located::of(&found);
                CandidateLaw::around(u, covariance, &error)
            })),
            Self::Ratios(search) => {
                let records = party.records().filter(|_| is_centred(party.unit())).unwrap_or(0) as f64;
                let ratio = |(query, total): (&Query, &[i128])| {
                    let off = match query.kind {
                        QueryKind::Ratio if records > 0.0 => {
                            centre(target.model.as_ref(), &target.spec.privacy, &query.from, &query.to)
                        }
                        _ => 0.0,
                    };
                    STEP * total.iter().sum::<i128>() as f64 + records * off
                };
                let ratios: Vec<f64> = round.queries.iter().zip(totals.by_query()).map(ratio).collect();
                search.absorb(&target.spec, &target.space, &round.queries, &ratios);
                Ok(search.found().map(|found| {
                    let squares = |sd: &[f64]| Matrix::diagonal(&sd.iter().map(|sd| sd * sd).collect::<Vec<f64>>());
                    CandidateLaw::around(found.u, squares(&found.sd), &squares(&found.error_sd))
                }))
            }
        }
    }
}
