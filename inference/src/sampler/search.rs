//! The search for a posterior's mode, with a share of the budget: coordinate by coordinate on ratios, or by score stages.

use super::mode_search::{Found, ModeSearch, SearchPlan};
use super::{Allotment, GradientSearch, Located, SamplerError, Target, Totals};
use conclave_common::query::{PartyMetadata, Query, Round};

/// A running search.
pub(super) enum Search {
    Ratios(Box<ModeSearch>),
    Gradients(Box<GradientSearch>),
}

/// The result of a search.
pub(super) enum SearchResult {
    /// By each coordinate's sd given the others.
    Axes(Found),
    /// By the whole covariance.
    Whole(Located),
}

impl Search {
    /// Starts the job's search, with the plan of its further searches; `None` if it makes none. Errors: the search needs a count
    /// of records that is neither public nor guessed; the model has no gradients; a budget is out of range.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<(Option<Self>, Option<SearchPlan>), SamplerError> {
        if target.spec.locates_by_gradients() {
            let part = Allotment::new(&target.spec, parties)?.split_off(target.spec.sampler.locate_share);
            return Ok((Some(Self::Gradients(GradientSearch::new(target, parties, part)?.into())), None));
        }
        let plan = SearchPlan::new(target, parties, target.budget()?)?;
        Ok((plan.as_ref().map(|plan| Self::Ratios(plan.search(target).into())), plan))
    }

    /// Returns the next queries. Errors: a query has no price.
    pub(super) fn queries(&mut self, target: &Target) -> Result<Vec<Query>, SamplerError> {
        match self {
            Self::Ratios(search) => search.queries(&target.spec, &target.space, target.model.as_ref()),
            Self::Gradients(search) => search.queries(target),
        }
    }

    /// Processes a round's answers; `ratios` holds the log ratio of each query of a search by ratios. Returns the result after
    /// the last one. Errors: the search has ended without a result.
    pub(super) fn absorb(
        &mut self,
        target: &Target,
        (round, totals): (&Round, &Totals),
        ratios: &[f64],
    ) -> Result<Option<SearchResult>, SamplerError> {
        match self {
            Self::Gradients(search) => {
                Ok(search.absorb(target, round, totals)?.map(|found| SearchResult::Whole(Located::of(&found))))
            }
            Self::Ratios(search) => {
                search.absorb(&target.spec, &target.space, &round.queries, ratios);
                Ok(search.found().map(SearchResult::Axes))
            }
        }
    }
}
