//! What a run by `hmc` says of itself beside its draws.

use serde::Serialize;

use super::law;
use super::repeats::{RepeatedAnswers, Repeats};
use super::settings::Settings;
use super::watch::{Identity, Watch};
use conclave_common::job::HmcTest;

/// Planned effective draws below which a run says so: neither R-hat nor acceptance would.
const WORTH_A_WORD: f64 = 100.0;
/// Standard errors beyond which an identity does not hold.
const ERRORS: f64 = 4.0;
/// A Stein identity's error that is of no consequence: posteriors that are not quite normal have it.
const SLIGHT: f64 = 0.1;
/// Mean probability of acceptance below which the frame does not suit the posterior, and what is usual.
const LOW: f64 = 0.8;
const USUAL: f64 = 0.95;
/// The part of what is expected without friction below which it does not.
const LOW_WITHOUT_FRICTION: f64 = 0.6;
/// The share of steps rejected unasked that is worth a word.
const MANY_UNASKED: f64 = 0.1;

/// How the chains moved, and whether what they were told fits what they drew. All from released numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GradientDiagnostics {
    /// Length of a step, in posterior standard deviations.
    pub step: f64,
    /// The friction that was planned for: a step of length `h` keeps `e^(-friction h)` of the momentum on average; 0 without any.
    pub friction: f64,
    /// What ended a step, where that was not the remainder's test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<&'static str>,
    /// Gradients of a step, where it took more than one: the kicks of a trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kicks: Option<u32>,
    /// Steps of each chain before its kept draws.
    pub warmup: u64,
    /// Effective draws that all chains together were to come to, from what was left after the search.
    pub planned_ess: f64,
    /// The uncertainty of a posterior mean at that many, in posterior standard deviations.
    pub planned_error: f64,
    /// Whether the search released how wide the posterior is in each direction; where not, public bounds stood in for it, and fewer effective draws may come
    /// of the plan.
    pub shape_released: bool,
    /// Mean probability of acceptance of kept steps, those rejected unasked included.
    pub acceptance: Option<f64>,
    /// Share of kept steps rejected unasked: beyond the parameter box, or where no bound says what a step leaves.
    pub unasked: f64,
    /// Root mean square error of a step's energy, without the noise of its test.
    pub energy_error: Option<f64>,
    /// The momenta's mean square over what it should be, less 1: right noise makes 0.
    pub kinetic: Option<Identity>,
    /// The worst component's mean of `(u - mean) gradient + 1`: about 0 where a posterior is about normal.
    pub stein: Option<Identity>,
    /// The worst component's mean gradient, in units of one over a posterior sd: 0.
    pub mean_gradient: Option<Identity>,
    /// Questions that came a second time, after a rejection.
    pub repeated_questions: u64,
    /// What the answers to those say of each party's noise.
    pub repeated_answers: Vec<RepeatedAnswers>,
}

impl GradientDiagnostics {
    pub(crate) fn of(settings: &Settings, sharp: bool, (watch, repeats): (&Watch, &Repeats), parties: &[String]) -> Self {
        let worst = |identities: Vec<Identity>| identities.into_iter().max_by(|a, b| a.z().total_cmp(&b.z()));
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
            // Momenta that are drawn afresh before every look tell nothing.
            kinetic: if free { None } else { watch.kinetic(law::momentum_variance(settings.step)) },
            stein: worst(watch.stein()),
            mean_gradient: worst(watch.slopes()),
            repeated_questions: repeats.pairs(),
            repeated_answers: repeats.report(parties),
        }
    }

    /// What there is to beware of, in sentences.
    pub(crate) fn words(&self, settings: &Settings) -> Vec<String> {
        let mut words: Vec<String> = self.repeated_answers.iter().filter_map(RepeatedAnswers::word).collect();
        // Planned for the shape that a search found: of another the figure says nothing.
        if self.planned_ess < WORTH_A_WORD && self.shape_released {
            words.push(format!(
                "the budget holds {} steps of each chain, some {:.0} effective draws in all: means are uncertain by about {:.2} posterior sds, and \
                 sds and quantiles by more",
                settings.affordable, self.planned_ess, self.planned_error
            ));
        }
        if !self.shape_released {
            words.push(
                "the search's share of the budget did not tell how wide the posterior is in each direction: how uncertain means are is not known, and correlated \
                 predictors get far fewer effective draws than planned; a larger epsilon or locate_share tells"
                    .to_owned(),
            );
        }
        if let Some(kinetic) = self.kinetic.filter(|kinetic| kinetic.z() > ERRORS) {
            words.push(format!(
                "the momenta have {:.2} times the mean square that the parties' stated noise gives them, {:.0} standard errors off: somebody's noise is \
                 not what it says",
                1.0 + kinetic.error,
                kinetic.z()
            ));
        }
        if let Some(stein) = self.stein.filter(|stein| stein.z() > ERRORS && stein.error.abs() > SLIGHT) {
            words.push(format!(
                "the gradients do not fit the draws as those of a nearly normal posterior would (Stein's identity is off by {:.2}, {:.0} standard \
                 errors): the chains may not have come to rest, or the posterior is far from normal",
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
                "{:.0}% of the steps were taken on average, where some {:.0}% are usual: the search's frame does not suit the posterior, and effective \
                 draws are fewer than planned",
                100.0 * acceptance,
                100.0 * usual
            ));
        }
        if settings.test == HmcTest::None {
            words.push(
                "the draws are approximate: no test ended a step (test = \"none\"). Of a normal posterior they are exact but for its frame; of \
                 another one means may be off by some hundredths of a posterior sd and variances by a few percent, and nothing in the result tells by how much"
                    .to_owned(),
            );
        }
        if self.unasked > MANY_UNASKED {
            words.push(format!(
                "{:.0}% of the steps were rejected unasked, as they led beyond the parameter box or to where no public bound holds: the box cuts the \
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
