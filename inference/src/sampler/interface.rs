//! The interface that every sampling algorithm has, whatever it asks and however it makes its draws.

use super::error::SamplerError;
use super::hopeless::Forecast;
use super::report::RunReport;
use super::totals::Totals;
use conclave_common::query::{Draw, Phase, Round};

/// How a run goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Every party is asked this round.
    Ask(Round),
    /// All draws are made.
    Done,
    /// The chains must not go on, for this reason: what they have drawn is of another posterior.
    Stopped(String),
}

impl Next {
    /// The round to ask; `None` at either end of a run.
    #[must_use]
    pub fn round(self) -> Option<Round> {
        match self {
            Self::Ask(round) => Some(round),
            Self::Done | Self::Stopped(_) => None,
        }
    }

    /// As [`Self::round`], without taking it.
    #[must_use]
    pub fn as_round(&self) -> Option<&Round> {
        match self {
            Self::Ask(round) => Some(round),
            Self::Done | Self::Stopped(_) => None,
        }
    }
}

/// A sampling algorithm as a state machine: the next round to ask, totals taken in, draws given out.
///
/// It knows what the parties released and nothing of the network or of their records.
pub trait Sampler: Send {
    /// How the run goes on: the round to ask now, the same one until [`Sampler::absorb`], or the run's end.
    ///
    /// # Errors
    /// A query whose noise scale or sensitivity can't be represented.
    fn next_round(&mut self) -> Result<Next, SamplerError>;

    /// Takes the totals of the round being asked.
    ///
    /// # Errors
    /// No round being asked, or totals of another number of parties or of another round; nothing is changed
    /// then.
    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError>;

    /// Makes some of the draws that ask nothing of the parties, for a part of a second; whether more are left to make.
    ///
    /// Whoever shows progress, or may be told to stop, calls it until nothing is left. Otherwise [`Sampler::next_round`] makes what is
    /// left, however long that takes. The draws are the same.
    ///
    /// # Errors
    /// As [`Sampler::next_round`].
    fn work(&mut self) -> Result<bool, SamplerError> {
        Ok(false)
    }

    /// Draws made since the last call, in the order made. A round may lead to none or to many.
    fn take_draws(&mut self) -> Vec<Draw>;

    /// The phase of the present round; [`Phase::Sampling`] throughout for an algorithm that neither
    /// searches nor warms up.
    fn phase(&self) -> Phase;

    /// Share of proposals accepted in the present phase, 0 before the first decision; `None` where nothing
    /// is accepted or rejected.
    fn acceptance_rate(&self) -> Option<f64> {
        None
    }

    /// Makes the draws that what was released so far allows, where a run ends before all is released: fewer stages than
    /// planned give a wider posterior, and it says so. Nothing for an algorithm whose draws come one by one.
    ///
    /// # Errors
    /// No place where the posterior is positive.
    fn conclude(&mut self) -> Result<(), SamplerError> {
        Ok(())
    }

    /// Whether a run that came to its own end did so by the budget: it had planned for fewer draws than were asked for.
    fn ended_by_budget(&self) -> bool {
        false
    }

    /// What is to be expected of the run at the end of its budget, where that is of no use: whoever asks the parties ends the run then. A
    /// replay finds the same at the same round, and may go on.
    fn hopeless(&self) -> Option<&Forecast> {
        None
    }

    /// Returns the run's cautions so far, as sentences; unlike [`Self::report`] cheap enough to be asked for while the run goes on.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what the run states so far beside its draws.
    fn report(&self) -> RunReport {
        RunReport::default()
    }
}
