//! The diagnostics of an `hmc` run, beside its draws.

use serde::Serialize;

use super::repeats::RepeatedAnswers;
use super::watch::Identity;
use super::{Repeats, Settings, Watch, law};
use conclave_common::job::HmcTest;

/// Planned effective draws below which a run warns: neither R-hat nor acceptance would show it.
pub(in crate::sampler) const WORTH_A_WORD: f64 = 100.0;
/// Number of standard errors beyond which an identity is violated.
pub(in crate::sampler) const ERRORS: f64 = 4.0;
/// Error of a Stein identity that does not matter: posteriors that are not exactly normal have it.
pub(in crate::sampler) const SLIGHT: f64 = 0.1;
/// Mean probability of acceptance below which the frame does not suit the posterior, and the usual one.
const LOW: f64 = 0.8;
const USUAL: f64 = 0.95;
/// The same limit without friction, as a share of the expected acceptance.
const LOW_WITHOUT_FRICTION: f64 = 0.6;
/// Share of steps rejected without a query above which a run warns.
const MANY_UNASKED: f64 = 0.1;

/// Movement of the chains, and the consistency of released gradients with the draws. All from released numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GradientDiagnostics {
    /// Length of a step, in posterior standard deviations.
    pub step: f64,
    /// Planned friction: a step of length `h` keeps `e^(-friction h)` of the momentum on average; 0 without friction.
    pub friction: f64,
    /// Test at the end of a step, if it was not the remainder's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<&'static str>,
    /// Number of gradients in a step, if more than one: the kicks of a trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kicks: Option<u32>,
    /// Number of steps of each chain before its kept draws.
    pub warmup: u64,
    /// Planned number of effective draws of all chains, from the remaining budget after the search.
    pub planned_ess: f64,
    /// Uncertainty of a posterior mean with that number of draws, in posterior standard deviations.
    pub planned_error: f64,
    /// Set if the search released the width of the posterior in each direction. Otherwise public bounds replaced it, and there
    /// may be fewer effective draws than planned.
    pub shape_released: bool,
    /// Mean probability of acceptance of kept steps, including those rejected without a query.
    pub acceptance: Option<f64>,
    /// Share of kept steps rejected without a query: beyond the parameter box, or without a bound on the step's remainder.
    pub unasked: f64,
    /// Root mean square error of a step's energy, without the noise of its test.
    pub energy_error: Option<f64>,
    /// Ratio of the momenta's mean square to its expectation, minus 1: 0 with the stated noise.
    pub kinetic: Option<Identity>,
    /// Worst component's mean of `(u - mean) gradient + 1`: about 0 for an approximately normal posterior.
    pub stein: Option<Identity>,
    /// Worst component's mean gradient, in units of one over a posterior sd: 0 in expectation.
    pub mean_gradient: Option<Identity>,
    /// Number of queries that were repeated after a rejection.
    pub repeated_questions: u64,
    /// Evidence about each party's noise from the answers to those queries.
    pub repeated_answers: Vec<RepeatedAnswers>,
}

impl GradientDiagnostics {
    pub(crate) fn of(settings: &Settings, sharp: bool, (watch, repeats): (&Watch, &Repeats), parties: &[String]) -> Self {
        let ess = settings.planned_ess.max(1.0);
        let free = settings.test.kicks_freely();
        Self {
            step: settings.step,
            friction: settings.friction,
            test: Some(settings.test.as_str()).filter(|_| settings.test != HmcTest::Remainder),
            kicks: Some(settings.test.kicks()).filter(|kicks| *kicks > 1),
            warmup: settings.warmup,
            planned_ess: settings.planned_ess,
            planned_error: ess.sqrt().recip(),
            shape_released: sharp,
            acceptance: watch.acceptance(),
            unasked: watch.unasked(),
            energy_error: watch.energy_error(),
            // Momenta that are drawn afresh before every gradient carry no information.
            kinetic: if free { None } else { watch.kinetic(law::momentum_variance(settings.step)) },
            stein: Identity::worst(watch.stein()),
            mean_gradient: Identity::worst(watch.slopes()),
            repeated_questions: repeats.pairs,
            repeated_answers: repeats.report(parties),
        }
    }

    pub(crate) fn words(&self, settings: &Settings) -> Vec<String> {
        let mut words: Vec<String> =
            self.repeated_answers.iter().filter_map(|of| of.warning(self.repeated_answers.len())).collect();
        // The figure is planned for the shape that a search found, and is meaningless for another shape.
        if self.planned_ess < WORTH_A_WORD && self.shape_released {
            words.push(format!(
                "planned for {} steps of each chain, about {:.0} effective draws in all: means are uncertain by about {:.2} posterior sds, \
                 and sds and quantiles by more",
                settings.affordable, self.planned_ess, self.planned_error
            ));
        }
        if !self.shape_released {
            words.push(
                "the search's share of the budget did not determine the posterior's width in each direction: the uncertainty of the means is not \
                 known, and correlated predictors get far fewer effective draws than planned; a larger epsilon or locate_share determines it"
                    .to_owned(),
            );
        }
        if let Some(kinetic) = self.kinetic.filter(|kinetic| kinetic.z() > ERRORS) {
            words.push(format!(
                "the momenta have {:.2} times the mean square of chains at rest, {:.0} standard errors off: the chains may not have been at rest; the \
                 answers to repeated queries show whether a party's noise is as stated",
                1.0 + kinetic.error,
                kinetic.z()
            ));
        }
        if let Some(stein) = self.stein.filter(|stein| stein.z() > ERRORS && stein.error.abs() > SLIGHT) {
            words.push(format!(
                "the gradients are inconsistent with draws from a nearly normal posterior (Stein's identity is off by {:.2}, {:.0} standard \
                 errors): the chains may not have converged, or the posterior is far from normal",
                stein.error,
                stein.z()
            ));
        }
        let (low, usual) = match settings.test {
            HmcTest::Ratio { .. } => (LOW_WITHOUT_FRICTION * settings.acceptance(), settings.acceptance()),
            _ => (LOW, USUAL),
        };
        if let Some(acceptance) = self.acceptance.filter(|acceptance| *acceptance < low) {
            words.push(format!(
                "{:.0}% of the steps were accepted on average, where about {:.0}% are usual: the search's frame does not suit the posterior, and effective \
                 draws are fewer than planned",
                100.0 * acceptance,
                100.0 * usual
            ));
        }
        if settings.test == HmcTest::None {
            words.push(
                "the draws are approximate: no test ended a step (test = \"none\"). For a normal posterior they are exact up to its frame; for \
                 another posterior means may be off by some hundredths of a posterior sd and variances by a few percent, and the result does not show by how much"
                    .to_owned(),
            );
        }
        if self.unasked > MANY_UNASKED {
            words.push(format!(
                "{:.0}% of the steps were rejected without a query, because they led outside the parameter box or to a point without a public bound: the box truncates the \
                 posterior, or a shorter step is needed",
                100.0 * self.unasked
            ));
        }
        words
    }
}

#[cfg(test)]
#[path = "tests/watched.rs"]
mod tests;
