//! What a run by stochastic gradients says of itself beside its draws.

use serde::Serialize;

use super::observations::Observations;
use super::settings::Settings;
use super::walker::Walker;
use crate::sampler::hmc::Identity;
use crate::sampler::target::Target;
use conclave_common::job::Algorithm;

/// Planned effective draws below which a run says so: R-hat would not.
const WORTH_A_WORD: f64 = 100.0;
/// Standard errors beyond which an identity does not hold.
const ERRORS: f64 = 4.0;
/// A Stein identity's error that is of no consequence: posteriors that are not quite normal have it.
const SLIGHT: f64 = 0.1;
/// The share of steps that turned round, or had too much noise, that is worth a word.
const MANY: f64 = 0.05;
/// How far off the assumed noise of samples may well be, where nothing is known of the model's fit.
const DOUBT: f64 = 0.25;

/// How the chains moved, what is known of their bias, and whether what they were told fits what they drew. All from released numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StochasticGradients {
    /// eta, in posterior standard deviations (of `sgld` and `sgfs` in their squares).
    pub step: f64,
    /// a, of a law with momenta.
    pub friction: Option<f64>,
    /// The probability with which a unit is in the sample of a gradient.
    pub batch: f64,
    /// Steps of each chain before its kept draws.
    pub warmup: u64,
    /// The parties' share of all noise of a gradient; what is left is public noise and that of samples.
    pub noise_share: f64,
    /// The mean variance that samples add to a gradient, as assumed: posterior standard deviations to the power -2.
    pub sampling_variance: f64,
    /// The share of all noise that is that.
    pub sampling_share: f64,
    /// How many times the posterior's variance draws have on a normal posterior, by the length of a step.
    pub planned_variance: f64,
    /// Effective draws that all chains together were to come to, from what was left after the search.
    pub planned_ess: f64,
    /// The uncertainty of a posterior mean at that many, in posterior standard deviations.
    pub planned_error: f64,
    /// Whether the search released how wide the posterior is in each direction; where not, public bounds stood in for it.
    pub shape_released: bool,
    /// Share of steps that led out of the parameter box, where the chain turned round.
    pub turned: f64,
    /// Share of steps whose gradient had more noise than the law takes.
    pub exceeded: f64,
    /// The mean thermostat of kept steps, of `sgnht`: a, and half of eta times the variance of what is not known.
    pub thermostat: Option<f64>,
    /// The momenta's mean square over what it should be, less 1: right noise makes 0. Of `sghmc`.
    pub kinetic: Option<Identity>,
    /// The worst component's mean of `(u - mean) gradient + 1`, less what a step's length makes of it: about 0 where a posterior is about
    /// normal and draws are as wide as it.
    pub stein: Option<Identity>,
    /// The worst component's mean gradient, in units of one over a posterior sd: 0.
    pub mean_gradient: Option<Identity>,
    /// The penalty sweeps that the draws are of; `None` where they are of the steps themselves. All that stands above is of the steps.
    pub polish: Option<Polished>,
}

/// What a result says of the sweeps that its draws are of. Shares are of the job's budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Polished {
    /// Penalty sweeps of each chain, a proposal for each coordinate.
    pub sweeps: u64,
    /// Steps of each chain without a test before them, the warm-up's included: not among the draws.
    pub steps: u64,
    /// What was set aside for the sweeps.
    pub budget_share: f64,
    /// Effective draws of a mean that so many sweeps of all chains come to together.
    pub planned_ess: f64,
    /// Share of the sweeps' proposals accepted so far.
    pub acceptance_rate: f64,
}

impl StochasticGradients {
    pub(super) fn of(target: &Target, settings: &Settings, seen: &Observations, walkers: &[Walker]) -> Self {
        let worst = |identities: Vec<Identity>| identities.into_iter().max_by(|a, b| a.z().total_cmp(&b.z()));
        let expected = settings.law.spread() - 1.0;
        let stein = seen.watch.stein().into_iter().map(|one| Identity { error: one.error + expected, ..one }).collect();
        let algorithm = target.spec.algorithm;
        let heavy = matches!(algorithm, Algorithm::Sghmc | Algorithm::Sgnht);
        let count = |of: &dyn Fn(&Walker) -> u64| walkers.iter().map(of).sum::<u64>() as f64;
        let made = count(&|walker| walker.made).max(1.0);
        let steps = settings.steps_of_a_draw();
        let sampling_variance = settings.sampling_variance();
        let ess = settings.planned_ess.max(1.0);
        Self {
            step: settings.pace.step,
            friction: heavy.then_some(settings.pace.friction),
            batch: settings.probability,
            warmup: settings.warmup,
            noise_share: settings.kappa(),
            sampling_variance,
            sampling_share: sampling_variance * steps.len() as f64 / steps.iter().sum::<f64>(),
            planned_variance: settings.law.draws_spread(),
            planned_ess: settings.planned_ess,
            planned_error: ess.sqrt().recip(),
            shape_released: seen.sharp,
            turned: count(&|walker| walker.turned) / made,
            exceeded: count(&|walker| walker.exceeded) / made,
            thermostat: seen.thermostat().filter(|_| algorithm == Algorithm::Sgnht),
            kinetic: settings.law.momentum_variance().and_then(|variance| seen.watch.kinetic(variance)),
            stein: worst(stein),
            mean_gradient: worst(seen.watch.slopes()),
            polish: None,
        }
    }

    /// What there is to beware of, in sentences.
    pub(crate) fn words(&self, settings: &Settings) -> Vec<String> {
        if let Some(polish) = &self.polish {
            return self.words_of_sweeps(polish);
        }
        let mut words = vec![self.bias()];
        if self.batch < 1.0 && settings.law.counts_samples() {
            words.push(format!(
                "what samples of {} of the units add to a gradient is {:.0}% of its noise, and assumed, as no answer tells it: were it off by {:.0}%, \
                 variances would be off by {:.1}%",
                self.batch,
                100.0 * self.sampling_share,
                100.0 * DOUBT,
                100.0 * DOUBT * self.sampling_share
            ));
        }
        // Planned for the shape that a search found: of another the figure says nothing.
        if self.planned_ess < WORTH_A_WORD && self.shape_released {
            words.push(format!(
                "the run has {} steps of each chain, some {:.0} effective draws in all: means are uncertain by about {:.2} posterior sds, and \
                 sds and quantiles by more",
                settings.steps, self.planned_ess, self.planned_error
            ));
        }
        if !self.shape_released {
            words.push(
                "the search's share of the budget did not tell how wide the posterior is in each direction, and public bounds stand in for it: how \
                 uncertain means are is not known, chains may not have come from where the search left them, and draws of correlated predictors may be too wide \
                 or too narrow; a larger epsilon or locate_share tells"
                    .to_owned(),
            );
        }
        if let Some(kinetic) = self.kinetic.filter(|kinetic| kinetic.z() > ERRORS && kinetic.error.abs() > SLIGHT) {
            words.push(format!(
                "the momenta have {:.2} times the mean square that right noise gives them, {:.0} standard errors off: somebody's noise, or that of \
                 samples, is not what is taken for it, or the search's frame does not suit the posterior",
                1.0 + kinetic.error,
                kinetic.z()
            ));
        }
        if let Some(stein) = self.stein.filter(|stein| stein.z() > ERRORS && stein.error.abs() > SLIGHT) {
            words.push(format!(
                "the gradients do not fit the draws as those of a nearly normal posterior would (Stein's identity is off by {:.2}, {:.0} standard \
                 errors): variances may be wrong by about as much, the chains may not have come to rest, or the posterior is far from normal",
                stein.error,
                stein.z()
            ));
        }
        if self.turned > MANY {
            words.push(format!(
                "{:.0}% of the steps led out of the parameter box, where chains turn round: near its walls draws are not of the posterior",
                100.0 * self.turned
            ));
        }
        if self.exceeded > MANY {
            words.push(format!(
                "{:.0}% of the gradients had more noise than a step takes: draws come out too wide there; a shorter sampler.step takes more",
                100.0 * self.exceeded
            ));
        }
        words
    }

    /// What there is to beware of where the draws are of penalty sweeps.
    fn words_of_sweeps(&self, polish: &Polished) -> Vec<String> {
        let Polished { sweeps, steps, planned_ess, .. } = polish;
        let mut words = vec![format!(
            "the draws are of {sweeps} penalty sweeps of each chain after {steps} steps without a test, which are not among them: the sweeps leave the \
             posterior as it is, and take the bias of where they began off only as far as they mix (split R-hat and effective draws tell)"
        )];
        if *planned_ess < WORTH_A_WORD {
            words.push(format!(
                "{sweeps} sweeps of each chain are some {planned_ess:.0} effective draws in all: means are uncertain by about {:.2} posterior sds, and \
                 sds and quantiles by more",
                planned_ess.max(1.0).sqrt().recip()
            ));
        }
        words
    }

    /// What is known of the bias.
    fn bias(&self) -> String {
        let percent = 100.0 * (self.planned_variance - 1.0);
        let of_step = if percent.abs() < 0.05 {
            "a normal posterior would have its own variance, any other has a bias that no figure here tells".to_owned()
        } else {
            format!(
                "variance bias about {percent:.1}% by steps of {} on a normal posterior, and more where it is not normal",
                self.step
            )
        };
        format!("approximate: no test ends a step ({of_step})")
    }
}
