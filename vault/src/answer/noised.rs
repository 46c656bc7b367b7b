//! Stage 4, noised: the noise of every charged query is drawn, and the units of a subsampled release, before a record is read.

use conclave_ops::answer_times::Part;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::{HiddenSample, PoissonSampling};
use conclave_proto::convert::AnswerStatus;

use super::charged::{Charged, ChargedQuery};
use super::priced::PricedQuery;
use super::received::{Message, Resources};
use crate::ledger::{ChargedChoice, ChargedNoise, Grant, Recorded, prepare_choice, sample_noise};
use crate::noise::Noise;

/// A query and the means to answer it.
pub(super) struct NoisedQuery {
    pub(super) priced: PricedQuery,
    pub(super) means: Means,
}

/// The means to answer a query.
pub(super) enum Means {
    /// The release that already answered it.
    Answered(Recorded),
    /// Noise for a sum over all units or over a sample of them.
    Sum {
        /// Bound of one unit's contribution, as charged.
        clamp: Sensitivity,
        /// Units of a subsampled release.
        sample: Option<HiddenSample>,
        noise: ChargedNoise,
    },
    /// A generator for a choice among candidates.
    Choice {
        /// Bound of one unit's contribution, as charged.
        clamp: Sensitivity,
        choice: Box<ChargedChoice>,
    },
}

/// A message whose noise is drawn: from here on, and not before, the records may be read.
pub(super) struct Noised<'j> {
    message: Message<'j>,
    queries: Vec<NoisedQuery>,
}

impl<'j> Charged<'j> {
    /// Draws the noise of every charged query, at the scale that was charged.
    ///
    /// # Errors
    /// [`AnswerStatus::Halted`] where the charged sensitivity is not the query's.
    pub(super) fn draw_noise(self, resources: &mut Resources<'_>) -> Result<Noised<'j>, AnswerStatus> {
        let (message, queries) = self.into_parts();
        let sampling = message.job.sampling.as_ref();
        let draw = |query| NoisedQuery::new(query, sampling, resources.noise);
        let queries = queries.into_iter().map(draw).collect::<Result<_, _>>()?;
        resources.timing.was(Part::Noise);
        Ok(Noised { message, queries })
    }
}

impl<'j> Noised<'j> {
    pub(super) fn into_parts(self) -> (Message<'j>, Vec<NoisedQuery>) {
        (self.message, self.queries)
    }
}

impl NoisedQuery {
    fn new(charged: ChargedQuery, sampling: Option<&PoissonSampling>, noise: &mut Noise) -> Result<Self, AnswerStatus> {
        let ChargedQuery { priced, grant } = charged;
        let receipt = match grant {
            Grant::Answered(recorded) => return Ok(Self { priced, means: Means::Answered(recorded) }),
            Grant::Charged(receipt) => receipt,
        };
        let clamp = receipt.sensitivity();
        if clamp != priced.terms().sensitivity() {
            // A unit contributes at most what was charged, or there is no answer.
            return Err(AnswerStatus::Halted);
        }
        let kind = priced.query().kind;
        let means = if kind.candidates().is_some() {
            Means::Choice { clamp, choice: Box::new(prepare_choice(receipt, noise).ok_or(AnswerStatus::Halted)?) }
        } else {
            let sample = match kind.is_sampled() {
                // Independent of the chain's last sample and of every other chain's.
                true => Some(noise.sample_of_units(sampling.ok_or(AnswerStatus::Halted)?)),
                false => None,
            };
            Means::Sum { clamp, sample, noise: sample_noise(receipt, noise) }
        };
        Ok(Self { priced, means })
    }
}
