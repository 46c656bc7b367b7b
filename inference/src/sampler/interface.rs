//! The interface of all sampling algorithms, whatever they query and however they make their draws.

use super::barker::BarkerDiagnostics;
use super::choices::ChoiceDiagnostics;
use super::clip_watch::ClipWatch;
use super::error::SamplerError;
use super::hmc::GradientDiagnostics;
use super::hopeless::Forecast;
use super::noisy_statistics::Inference;
use super::quadratic_fit::FittedPosterior;
use super::stochastic_gradients::StochasticGradients;
use super::totals::Totals;
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

    /// Proposal radii as a job file gives them, one per parameter on the unconstrained scale; `None` before
    /// there are any, and where moves go along no single parameter.
    fn radii_by_parameter(&self) -> Option<Vec<f64>> {
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

    /// What is known of the noise's part in the posterior, for a run that infers from what was released once; `None` for
    /// any other, and before its end.
    fn inference(&self) -> Option<&Inference> {
        None
    }

    /// What the run says of itself beside its draws, in sentences; none where there is nothing to beware of.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// How the chains moved, for a run that gradients drive; `None` for any other, and before they do.
    fn gradient_diagnostics(&self) -> Option<GradientDiagnostics> {
        None
    }

    /// How exactly proposals were decided, for a run by `barker`; `None` for any other.
    fn barker_diagnostics(&self) -> Option<BarkerDiagnostics> {
        None
    }

    /// How the chains moved and what is known of their bias, for a run that stochastic gradients drive; `None` for any other, and before they do.
    fn stochastic_gradients(&self) -> Option<StochasticGradients> {
        None
    }

    /// What the draws were chosen among and what each cost, for a run whose draws are choices; `None` for any other, and before the first.
    fn choice_diagnostics(&self) -> Option<ChoiceDiagnostics> {
        None
    }

    /// Returns the forecast at the end of the budget, if it is useless: the caller then ends the run. A replay finds the same at
    /// the same round, and may continue.
    fn hopeless(&self) -> Option<&Forecast> {
        None
    }

    /// The watch over an explicit clip; `None` where there is no such clip.
    fn clip_watch(&self) -> Option<&ClipWatch> {
        None
    }

    /// The posterior by the quadratic that all ratios released so far make, or why there is none; `None`
    /// for an algorithm that does not ask log likelihood ratios. It has no part in any draw.
    fn fitted_posterior(&self) -> Option<FittedPosterior> {
        None
    }
}
