//! What the parties released for a round, and the sums over them: all that a sampler is told.

use super::error::SamplerError;
use conclave_common::query::{Opened, Query, Round};

/// A round's releases, summed over the parties; per query a vector over its components, in lattice units.
///
/// What is opened of the parties' answers is kept beside the sums, for samplers that condition on each of them: every party's, or their sum
/// alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    parties: usize,
    /// All queries' components, one query after the other in the order asked.
    components: Vec<i128>,
    /// Where each query's components end.
    ends: Vec<usize>,
    /// What is opened, one answer after the other, as the components of each stand.
    opened: Vec<i64>,
}

impl Totals {
    /// Sums `releases[party][component]`, each party's components standing in the order asked, query after
    /// query, as on the wire and in the log. Where the sum alone is opened they are masked, and it is theirs in 64 bits; a mask more may
    /// then follow every party's, with nothing under it, and these come to 0 where masks cancel.
    ///
    /// # Errors
    /// A party that released another number of integers than was asked for; masks that do not cancel.
    pub fn of(round: &Round, releases: &[Vec<i64>]) -> Result<Self, SamplerError> {
        let ends: Vec<usize> = ends(&round.queries).collect();
        let length = ends.last().copied().unwrap_or(0);
        let checked = round.opened == Opened::SumAlone && releases.iter().all(|party| party.len() == length + 1);
        if !checked && releases.iter().any(|party| party.len() != length) {
            return Err(SamplerError::Shape("another number of releases than queries"));
        }
        // Masks are of 64 bits, and cancel there alone: no wider sum may be made of what they cover.
        let opened = |at: usize| releases.iter().fold(0_i64, |sum, party: &Vec<i64>| sum.wrapping_add(party[at]));
        if checked && opened(length) != 0 {
            return Err(SamplerError::Masks);
        }
        let (components, opened) = match round.opened {
            Opened::EachAnswer => {
                let total = |at| releases.iter().map(|party| i128::from(party[at])).sum();
                ((0..length).map(total).collect(), releases.concat())
            }
            Opened::SumAlone => {
                let opened: Vec<i64> = (0..length).map(opened).collect();
                (opened.iter().map(|sum| i128::from(*sum)).collect(), opened)
            }
        };
        Ok(Self { parties: releases.len(), components, ends, opened })
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

    /// The opened answer of this number: that of the party there in the job's order, or, where the sum alone is opened, that sum, number 0. Its
    /// components as [`Self::components`]; none where there is no such answer.
    #[must_use]
    pub fn opened(&self, number: usize) -> &[i64] {
        let length = self.components.len();
        self.opened.get(number * length..).and_then(|rest| rest.get(..length)).unwrap_or_default()
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
