//! The diagnostics of a run by stochastic gradients, beside its draws.

use serde::Serialize;

use super::{Observations, Settings, Walker};
use crate::sampler::hmc::{ERRORS, SLIGHT, WORTH_A_WORD};
use crate::sampler::{Identity, StartingDraw, Target};
use conclave_common::job::Algorithm;

/// Share of steps that left the box, or had too much noise, above which a run warns.
const MANY: f64 = 0.05;
/// Plausible relative error of the assumed sampling noise if the model's fit is unknown.
const DOUBT: f64 = 0.25;

/// Movement of the chains, their known bias, and the consistency of released gradients with the draws. All from released numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StochasticGradients {
    /// Step eta, in posterior standard deviations (in their squares for `sgld` and `sgfs`).
    pub step: f64,
    /// Decreasing steps; absent where all have the same length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<DecreasingSteps>,
    /// The posterior sample at which the chains started; absent where they started elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartingDraw>,
    /// Friction a, of a law with momenta.
    pub friction: Option<f64>,
    /// Probability that a unit is in the sample of a gradient.
    pub batch: f64,
    /// Number of steps of each chain before its kept draws.
    pub warmup: u64,
    /// The parties' share of a gradient's total noise; the remainder is public noise and sampling noise.
    pub noise_share: f64,
    /// Mean variance that sampling adds to a gradient, as assumed, in posterior standard deviations to the power -2.
    pub sampling_variance: f64,
    /// Share of sampling in the total noise.
    pub sampling_share: f64,
    /// Ratio of the draws' variance to the posterior's for a normal posterior, from the step length.
    pub planned_variance: f64,
    /// Planned number of effective draws of all chains, from the remaining budget after the search.
    pub planned_ess: f64,
    /// Uncertainty of a posterior mean with that number of draws, in posterior standard deviations.
    pub planned_error: f64,
    /// Set if the search released the width of the posterior in each direction; otherwise public bounds replaced it.
    pub shape_released: bool,
    /// Share of steps that left the parameter box, where the chain reversed.
    pub turned: f64,
    /// Share of steps whose gradient had more noise than the law needs.
    pub exceeded: f64,
    /// Mean thermostat of kept steps, for `sgnht`: a, plus half of eta times the unknown variance.
    pub thermostat: Option<f64>,
    /// Ratio of the momenta's mean square to its expectation, minus 1: 0 with the stated noise. For `sghmc`.
    pub kinetic: Option<Identity>,
    /// Worst component's mean of `(u - mean) gradient + 1`, minus the effect of the step length: about 0 for an approximately
    /// normal posterior and draws of its width.
    pub stein: Option<Identity>,
    /// Worst component's mean gradient, in units of one over a posterior sd: 0 in expectation.
    pub mean_gradient: Option<Identity>,
    /// The penalty sweeps that yield the draws; `None` if the steps do. The fields above always describe the steps.
    pub polish: Option<Polished>,
}

/// Steps `eta_t = a (b + t)^(-gamma)`, numbered from 1. `step` is the length at the end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DecreasingSteps {
    /// a.
    pub a: f64,
    /// b.
    pub b: f64,
    /// gamma.
    pub gamma: f64,
    /// Length of the first step.
    pub first: f64,
    /// Length of the last planned step.
    pub last: f64,
}

/// A result's report on the sweeps that yield its draws. Shares are of the job's budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Polished {
    /// Number of penalty sweeps of each chain, with one proposal per coordinate.
    pub sweeps: u64,
    /// Number of steps of each chain without a test before the sweeps, including the warm-up. They are not among the draws.
    pub steps: u64,
    /// Share of the budget that was reserved for the sweeps.
    pub budget_share: f64,
    /// Effective draws of a mean from the sweeps of all chains.
    pub planned_ess: f64,
    /// Share of the sweeps' proposals that were accepted so far.
    pub acceptance_rate: f64,
}

impl DecreasingSteps {
    fn of(settings: &Settings) -> Option<Self> {
        let (gamma, (a, b)) = (settings.schedule.gamma()?, settings.schedule.coefficients()?);
        let (first, last) = (settings.schedule.step(1), settings.schedule.step(settings.steps));
        Some(Self { a, b, gamma, first, last })
    }
}

impl StochasticGradients {
    pub(super) fn of(target: &Target, settings: &Settings, seen: &Observations, walkers: &[Walker]) -> Self {
        let algorithm = target.spec.algorithm;
        let expected = settings.mean_of(algorithm, false, |law| law.spread()) - 1.0;
        let stein = seen.watch.stein().into_iter().map(|one| Identity { error: one.error + expected, ..one }).collect();
        let heavy = matches!(algorithm, Algorithm::Sghmc | Algorithm::Sgnht);
        let count = |of: &dyn Fn(&Walker) -> u64| walkers.iter().map(of).sum::<u64>() as f64;
        let made = count(&|walker| walker.made).max(1.0);
        let steps = settings.steps_of_a_draw();
        let sampling_variance = settings.sampling_variance();
        let ess = settings.planned_ess.max(1.0);
        Self {
            step: settings.pace.step,
            decay: DecreasingSteps::of(settings),
            start: None,
            friction: heavy.then_some(settings.pace.friction),
            batch: settings.probability,
            warmup: settings.warmup,
            noise_share: settings.kappa(),
            sampling_variance,
            sampling_share: sampling_variance * steps.len() as f64 / steps.iter().sum::<f64>(),
            planned_variance: settings.mean_of(algorithm, true, |law| law.draws_spread()),
            planned_ess: settings.planned_ess,
            planned_error: ess.sqrt().recip(),
            shape_released: seen.sharp,
            turned: count(&|walker| walker.turned) / made,
            exceeded: count(&|walker| walker.exceeded) / made,
            thermostat: seen.thermostat().filter(|_| algorithm == Algorithm::Sgnht),
            kinetic: settings.momentum_variance(algorithm).and_then(|variance| seen.watch.kinetic(variance)),
            stein: Identity::worst(stein),
            mean_gradient: Identity::worst(seen.watch.slopes()),
            polish: None,
        }
    }

    pub(crate) fn words(&self, settings: &Settings) -> Vec<String> {
        let start = self.start.and_then(StartingDraw::words);
        if let Some(polish) = &self.polish {
            return self.words_of_sweeps(polish).into_iter().chain(start).collect();
        }
        let mut words = vec![self.bias()];
        words.extend(start);
        if self.batch < 1.0 && settings.law.counts_samples() {
            words.push(format!(
                "sampling {} of the units contributes {:.0}% of a gradient's noise; this is assumed, because no release measures it: an error of {:.0}% in it \
                 would change variances by {:.1}%",
                self.batch,
                100.0 * self.sampling_share,
                100.0 * DOUBT,
                100.0 * DOUBT * self.sampling_share
            ));
        }
        // The figure is planned for the shape that a search found, and is meaningless for another shape.
        if self.planned_ess < WORTH_A_WORD && self.shape_released {
            words.push(format!(
                "the run has {} steps of each chain, about {:.0} effective draws in all: means are uncertain by about {:.2} posterior sds, and \
                 sds and quantiles by more",
                settings.steps, self.planned_ess, self.planned_error
            ));
        }
        if !self.shape_released {
            words.push(
                "the search's share of the budget did not determine the posterior's width in each direction, and public bounds replace it: the \
                 uncertainty of the means is not known, chains may not have moved away from their starting points, and draws of correlated predictors may \
                 be too wide or too narrow; a larger epsilon or locate_share determines it"
                    .to_owned(),
            );
        }
        if let Some(kinetic) = self.kinetic.filter(|kinetic| kinetic.z() > ERRORS && kinetic.error.abs() > SLIGHT) {
            words.push(format!(
                "the momenta have {:.2} times the mean square that the stated noise implies, {:.0} standard errors off: the noise of a party, or of \
                 sampling, differs from its assumed value, or the search's frame does not suit the posterior",
                1.0 + kinetic.error,
                kinetic.z()
            ));
        }
        if let Some(stein) = self.stein.filter(|stein| stein.z() > ERRORS && stein.error.abs() > SLIGHT) {
            words.push(format!(
                "the gradients are inconsistent with draws from a nearly normal posterior (Stein's identity is off by {:.2}, {:.0} standard \
                 errors): variances may be wrong by about as much, the chains may not have converged, or the posterior is far from normal",
                stein.error,
                stein.z()
            ));
        }
        if self.turned > MANY {
            words.push(format!(
                "{:.0}% of the steps left the parameter box, where chains reverse: near its walls the draws do not follow the posterior",
                100.0 * self.turned
            ));
        }
        if self.exceeded > MANY {
            words.push(format!(
                "{:.0}% of the gradients had more noise than a step needs: the draws are too wide there; a shorter sampler.step needs more",
                100.0 * self.exceeded
            ));
        }
        words
    }

    /// Returns the warnings about a run whose draws come from penalty sweeps.
    fn words_of_sweeps(&self, polish: &Polished) -> Vec<String> {
        let Polished { sweeps, steps, planned_ess, .. } = polish;
        let mut words = vec![format!(
            "the draws come from {sweeps} penalty sweeps of each chain after {steps} steps without a test, which are not among them: the posterior is \
             invariant under the sweeps, but they remove the bias of their starting points only as far as they mix (see split R-hat and effective draws)"
        )];
        if *planned_ess < WORTH_A_WORD {
            words.push(format!(
                "{sweeps} sweeps of each chain are about {planned_ess:.0} effective draws in all: means are uncertain by about {:.2} posterior sds, and \
                 sds and quantiles by more",
                planned_ess.max(1.0).sqrt().recip()
            ));
        }
        words
    }

    /// Returns the known bias.
    fn bias(&self) -> String {
        let percent = 100.0 * (self.planned_variance - 1.0);
        let steps = match self.decay {
            Some(DecreasingSteps { last, .. }) => format!("{} that decrease to {last:.3}", self.step),
            None => self.step.to_string(),
        };
        let of_step = if percent.abs() < 0.05 {
            "a normal posterior would have its own variance; any other has a bias that no figure here shows".to_owned()
        } else {
            format!("variance bias about {percent:.1}% from steps of {steps} on a normal posterior, and more on another")
        };
        format!("approximate: no test ends a step ({of_step})")
    }
}
