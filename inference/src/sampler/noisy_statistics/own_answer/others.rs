//! The score stage of the other owners alone.

use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::Fit;
use crate::sampler::noisy_statistics::information::Information;
use crate::sampler::noisy_statistics::last_stage::LastScore;
use crate::sampler::noisy_statistics::score_strategy::ScoreStrategy;
use crate::sampler::noisy_statistics::stage::ScoreStage;
use crate::sampler::target::Target;

use super::answered::AnsweredInformation;
use super::error::OwnAnswerError;

/// The sums of the other owners' releases.
pub(super) trait OthersSums {
    /// Returns the sums of a round's query.
    ///
    /// # Errors
    /// The owner's part can't be taken out.
    fn sums(&self, round: u64, place: usize) -> Result<Vec<i128>, OwnAnswerError>;
}

/// The owners in the sums.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owners {
    /// Number of parties whose noise the sums have.
    pub(super) noise: usize,
    /// Number of the owner's records, if it is public: those of the others are all less these.
    pub(super) own_records: f64,
}

/// The releases of the other owners that a posterior is conditioned on.
#[derive(Debug, Clone)]
pub(super) struct Others {
    at: Vec<f64>,
    score: Vec<f64>,
    noise: Matrix,
    information: Information,
    /// True if the information is that at the score's own point, released with it.
    whole: bool,
    /// Number of the other owners' records, or a guess, times the power of their likelihood.
    records: f64,
}

impl Others {
    /// Reads the other owners' sums by the queries behind a job's answer.
    ///
    /// # Errors
    /// [`OwnAnswerError::NothingReleased`]; the errors of the sums.
    pub(super) fn read(
        (strategy, target): (&ScoreStrategy, &Target),
        owners: Owners,
        sums: &dyn OthersSums,
        reach: &dyn Fn(&[f64], &[f64]) -> f64,
    ) -> Result<Self, OwnAnswerError> {
        let answered = &strategy.answered;
        let (round, query) = answered.score.as_ref().ok_or(OwnAnswerError::NothingReleased)?;
        let centred = (strategy.centred - owners.own_records).max(0.0);
        let (score, noise) = query.score(&sums.sums(*round, 0)?, owners.noise, centred);
        let at = query.at().to_vec();
        let read = |answered: &AnsweredInformation| {
            let sums = sums.sums(answered.round, answered.place)?;
            Ok::<_, OwnAnswerError>(answered.query.information(&sums, owners.noise, strategy.own))
        };
        let read = |all: &[AnsweredInformation]| all.iter().map(read).collect::<Result<Vec<_>, _>>();
        let information = if answered.information.is_empty() {
            // The job ended before the information of its last score: that of the stages before serves, as in the joint answer.
            Information::near(&read(&answered.earlier)?, &at, &|direction| reach(&at, direction))
        } else {
            Information::pooled(&read(&answered.information)?)
        };
        let information = information.ok_or(OwnAnswerError::NothingReleased)?;
        let records = (strategy.records - owners.own_records).max(1.0) * target.spec.power;
        Ok(Self { at, score, noise, information, whole: answered.is_one_round(), records })
    }

    /// Returns the public point of the score.
    pub(super) fn at(&self) -> &[f64] {
        &self.at
    }

    /// Returns the stage and its fit. `at_answer` is the other owners' score at the answer, which half of the way there is mixed with
    /// that at the stage's point.
    pub(super) fn stage(&self, at_answer: &[f64], fit: impl Fn(&ScoreStage) -> Fit) -> (ScoreStage, Fit) {
        let (at, score, information) = (self.at.clone(), self.score.clone(), self.information.clone());
        if self.whole {
            let stage = ScoreStage { at, score, score_noise: self.noise.clone(), information };
            let fitted = fit(&stage);
            return (stage, fitted);
        }
        let left = score.iter().zip(at_answer).map(|(from, to)| from + to).collect();
        LastScore { at, score, left, noise: self.noise.clone(), records: self.records }.with_information(&information, fit)
    }
}
