//! The interface of all sampling algorithms, whatever they query and however they make their draws.

use super::{Forecast, RunReport, SamplerError, Totals};
use conclave_common::query::{Draw, Phase, Round};

/// The next action of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Send this round to every party.
    Ask(Round),
    /// All draws are made.
    Done,
    /// The chains must stop for this reason: their draws follow another posterior.
    Stopped(String),
}

impl Next {
    /// Returns the round to send; `None` at the end of a run.
    #[must_use]
    pub fn round(self) -> Option<Round> {
        match self {
            Self::Ask(round) => Some(round),
            Self::Done | Self::Stopped(_) => None,
        }
    }

    /// Returns a reference to the round to send, like [`Self::round`].
    #[must_use]
    pub fn as_round(&self) -> Option<&Round> {
        match self {
            Self::Ask(round) => Some(round),
            Self::Done | Self::Stopped(_) => None,
        }
    }
}

/// A sampling algorithm as a state machine that returns rounds, absorbs totals and yields draws.
///
/// It knows the parties' releases, and nothing about the network or their records.
pub trait Sampler: Send {
    /// Returns the next action: the round to send, which stays the same until [`Sampler::absorb`], or the run's end.
    ///
    /// # Errors
    /// A query's noise scale or sensitivity can't be represented.
    fn next_round(&mut self) -> Result<Next, SamplerError>;

    /// Processes the totals of the pending round.
    ///
    /// # Errors
    /// There is no pending round, or the totals belong to another number of parties or another round; nothing changes then.
    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError>;

    /// Makes some of the draws that need no query, for a fraction of a second; returns true if more remain.
    ///
    /// A caller that shows progress, or may have to stop, calls it until it returns false. Otherwise [`Sampler::next_round`]
    /// makes the remaining draws, however long that takes. The draws are the same.
    ///
    /// # Errors
    /// Those of [`Sampler::next_round`].
    fn work(&mut self) -> Result<bool, SamplerError> {
        Ok(false)
    }

    /// Returns the draws since the last call, in order. A round may lead to none or to many.
    fn take_draws(&mut self) -> Vec<Draw>;

    /// Returns the phase of the present round; always [`Phase::Sampling`] for an algorithm that neither searches nor warms up.
    fn phase(&self) -> Phase;

    /// Returns the share of proposals accepted in the present phase, 0 before the first decision; `None` for an algorithm without
    /// acceptance.
    fn acceptance_rate(&self) -> Option<f64> {
        None
    }

    /// Makes the draws that the releases so far allow, if a run ends before its last release: fewer stages than planned give a
    /// wider posterior, with a warning. Does nothing for an algorithm whose draws come one by one.
    ///
    /// # Errors
    /// There is no place with a positive posterior density.
    fn conclude(&mut self) -> Result<(), SamplerError> {
        Ok(())
    }

    /// Returns true if a completed run was limited by its budget: it had planned fewer draws than the job asks for.
    fn ended_by_budget(&self) -> bool {
        false
    }

    /// Returns the forecast of the draws at the end of the budget if they would be unusable. The driver then ends the run. A
    /// replay makes the same forecast at the same round, and may continue.
    fn futility(&self) -> Option<&Forecast> {
        None
    }

    /// Returns the run's warnings so far, as sentences. Unlike [`Self::report`] it is cheap enough for use during the run.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what the run states so far beside its draws.
    fn report(&self) -> RunReport {
        RunReport::default()
    }
}
