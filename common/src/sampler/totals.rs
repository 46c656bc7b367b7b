//! What the parties released for a round, and the sums over them: all that a sampler is told.

use super::error::SamplerError;
use super::round::{Query, Round};

/// A round's releases, summed over the parties; per query a vector over its components, in lattice units.
///
/// What a single party released is kept beside the sums, for samplers that condition on each release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    parties: usize,
    /// All queries' components, one query after the other in the order asked.
    components: Vec<i128>,
    /// Where each query's components end.
    ends: Vec<usize>,
    /// All releases, one party after the other, as the components of each stand.
    released: Vec<i64>,
}

impl Totals {
    /// Sums `releases[party][component]`, each party's components standing in the order asked, query after
    /// query, as on the wire and in the log.
    ///
    /// # Errors
    /// A party that released another number of integers than was asked for.
    pub fn of(round: &Round, releases: &[Vec<i64>]) -> Result<Self, SamplerError> {
        let ends: Vec<usize> = ends(&round.queries).collect();
        let length = ends.last().copied().unwrap_or(0);
        if releases.iter().any(|party| party.len() != length) {
            return Err(SamplerError::Shape("another number of releases than queries"));
        }
        let components = (0..length).map(|at| releases.iter().map(|party| i128::from(party[at])).sum()).collect();
        Ok(Self { parties: releases.len(), components, ends, released: releases.concat() })
    }

    /// Each query's components, in the order asked.
    pub fn by_query(&self) -> impl Iterator<Item = &[i128]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.components[begin..*end])
    }

    /// All components, one query after the other: one for each query where every answer is a single integer.
    #[must_use]
    pub fn components(&self) -> &[i128] {
        &self.components
    }

    /// What the party of this number, in the job's order, released: its components as [`Self::components`]; none where there is no such
    /// party.
    #[must_use]
    pub fn released_by(&self, party: usize) -> &[i64] {
        let length = self.components.len();
        self.released.get(party * length..).and_then(|rest| rest.get(..length)).unwrap_or_default()
    }

    /// Whether these are totals of this round over so many parties.
    pub(super) fn check(&self, round: &Round, parties: usize) -> Result<(), SamplerError> {
        if self.parties != parties {
            return Err(SamplerError::Shape("another number of parties"));
        }
        if !ends(&round.queries).eq(self.ends.iter().copied()) {
            return Err(SamplerError::Shape("another number of releases than queries"));
        }
        Ok(())
    }
}

fn ends(queries: &[Query]) -> impl Iterator<Item = usize> {
    queries.iter().scan(0, |end, query| {
        *end += query.length();
        Some(*end)
    })
}
