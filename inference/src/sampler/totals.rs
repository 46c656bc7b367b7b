//! The parties' releases of a round, and their sums: a sampler receives nothing else.

use super::SamplerError;
use conclave_common::query::{Opened, Query, Round};

/// A round's releases, summed over the parties: per query a vector over its components, in lattice units.
///
/// The opened answers are stored beside the sums, for samplers that condition on each of them: every party's, or only their sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    parties: usize,
    /// Components of all queries, in the order of the queries.
    components: Vec<i128>,
    /// End of each query's components.
    ends: Vec<usize>,
    /// Opened answers one after the other, each with its components in order.
    opened: Vec<i64>,
}

impl Totals {
    /// Sums `releases[party][component]`. Each party's components are in the order of the queries, as on the wire and in the log.
    /// If only the sum is opened, they are masked, and the result is their sum in 64 bits. Every party's components may then be
    /// followed by one more mask over a zero; these sum to 0 if the masks cancel.
    ///
    /// # Errors
    /// A party released another number of integers than the queries ask for; the masks do not cancel.
    pub fn of(round: &Round, releases: &[Vec<i64>]) -> Result<Self, SamplerError> {
        let ends: Vec<usize> = ends(&round.queries).collect();
        let length = ends.last().copied().unwrap_or(0);
        let checked = round.opened == Opened::SumAlone && releases.iter().all(|party| party.len() == length + 1);
        if !checked && releases.iter().any(|party| party.len() != length) {
            return Err(SamplerError::Shape("the number of releases differs from that of the queries"));
        }
        // Masks have 64 bits and cancel in 64-bit arithmetic only: masked values must not be summed in a wider type.
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

    /// Yields each query's components, in the order of the queries.
    pub fn by_query(&self) -> impl Iterator<Item = &[i128]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.components[begin..*end])
    }

    /// Returns all components in the order of the queries: one per query if every answer is a single integer.
    #[must_use]
    pub fn components(&self) -> &[i128] {
        &self.components
    }

    /// Returns the opened answer with this index: that of the party there in the job's order, or, if only the sum is opened, that
    /// sum at index 0. Its components are ordered like [`Self::components`]; empty if there is no such answer.
    #[must_use]
    pub fn opened(&self, number: usize) -> &[i64] {
        let length = self.components.len();
        self.opened.get(number * length..).and_then(|rest| rest.get(..length)).unwrap_or_default()
    }

    /// Checks that these are totals of this round over this number of parties.
    pub(super) fn check(&self, round: &Round, parties: usize) -> Result<(), SamplerError> {
        if self.parties != parties {
            return Err(SamplerError::Shape("the number of parties differs from the job's"));
        }
        if !ends(&round.queries).eq(self.ends.iter().copied()) {
            return Err(SamplerError::Shape("the number of releases differs from that of the queries"));
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
