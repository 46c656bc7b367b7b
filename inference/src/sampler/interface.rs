//! The interface that every sampling algorithm has, whatever it asks and however it makes its draws.

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

    /// Proposal radii as a job file gives them, one per parameter on the unconstrained scale; `None` before
    /// there are any, and where moves go along no single parameter.
    fn radii_by_parameter(&self) -> Option<Vec<f64>> {
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

    /// What is to be expected of the run at the end of its budget, where that is of no use: whoever asks the parties ends the run then. A
    /// replay finds the same at the same round, and may go on.
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
