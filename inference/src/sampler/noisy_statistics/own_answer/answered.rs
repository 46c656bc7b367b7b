//! The answered queries behind an answer, so that other totals than the job's can be read by them.

use crate::sampler::noisy_statistics::scores::{PendingInformation, PendingScore};

/// A query about an information matrix, and its answer's place in the log.
#[derive(Debug, Clone)]
pub(super) struct AnsweredInformation {
    pub(super) round: u64,
    /// Index among the round's queries.
    pub(super) place: usize,
    pub(super) query: PendingInformation,
}

/// The last score, and the information matrices: those that belong to it, and those of the stages before.
#[derive(Debug, Clone, Default)]
pub(in crate::sampler::noisy_statistics) struct AnsweredQueries {
    /// The last score and its round, in which it is the first query.
    pub(super) score: Option<(u64, PendingScore)>,
    pub(super) information: Vec<AnsweredInformation>,
    pub(super) earlier: Vec<AnsweredInformation>,
}

impl AnsweredQueries {
    /// Adds the answered queries of a round: a score begins a stage.
    pub(in crate::sampler::noisy_statistics) fn add(
        &mut self,
        round: u64,
        score: Option<&PendingScore>,
        information: Option<&PendingInformation>,
    ) {
        if let Some(score) = score {
            self.score = Some((round, score.clone()));
            self.earlier.append(&mut self.information);
        }
        let place = usize::from(score.is_some());
        self.information.extend(information.cloned().map(|query| AnsweredInformation { round, place, query }));
    }

    /// Returns whether the score and its information are of one round and one point.
    pub(super) fn is_one_round(&self) -> bool {
        let rounds = (self.score.as_ref().map(|(round, _)| *round), self.information.first().map(|answered| answered.round));
        rounds.0.is_some() && rounds.0 == rounds.1
    }
}
