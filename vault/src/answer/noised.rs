//! Stage 4, noised: the noise of every charged query is drawn, and the hidden sample of every subsampled one, before a record is read.
//!
//! The receipt yields the noise ([`sample_noise`]), so the type of the noise proves the charge. A hidden sample serves one sum, and a charge for
//! a subsampled release covers only such a sum ([`conclave_privacy::pass::LatticeSum::is_covered`]).

use conclave_ops::answer_times::Part;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::{HiddenSample, PoissonSampling};
use conclave_proto::convert::AnswerStatus;

use super::charged::{Charged, ChargedQuery};
use super::priced::PricedQuery;
use super::received::{Message, Resources};
use crate::ledger::{ChargedChoice, ChargedNoise, Grant, Recorded as RecordedRelease, prepare_choice, sample_noise};
use crate::noise::Noise;

/// A query and the means to answer it.
pub(super) struct NoisedQuery {
    pub(super) priced: PricedQuery,
    pub(super) means: Means,
}

/// The means to answer a query.
pub(super) enum Means {
    /// The release that already answered it.
    Answered(RecordedRelease),
    /// Noise for a sum over all units or over a sample of them.
    Sum {
        /// The charged sensitivity. For a ratio it is the clamp on one unit's contribution.
        clamp: Sensitivity,
        /// The sampled units of a subsampled release; `None` for a sum over all units.
        sample: Option<HiddenSample>,
        noise: ChargedNoise,
    },
    /// A generator for a choice among candidates.
    Choice {
        /// The charged sensitivity: the bound of one unit's contribution to each log weight.
        clamp: Sensitivity,
        choice: Box<ChargedChoice>,
    },
}

/// A message whose noise is drawn. Only from here on may records be read.
pub(super) struct Noised<'j> {
    message: Message<'j>,
    queries: Vec<NoisedQuery>,
}

impl<'j> Charged<'j> {
    /// Draws the noise of every charged query, at the scale that was charged.
    ///
    /// # Errors
    /// [`AnswerStatus::Halted`] if the charged sensitivity is not the query's, or if its kind does not match its job or receipt. Only a
    /// defect of this program causes either.
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
    /// Draws the noise that a query's receipt paid for, and its sample if the kind is subsampled.
    fn new(charged: ChargedQuery, sampling: Option<&PoissonSampling>, noise: &mut Noise) -> Result<Self, AnswerStatus> {
        let ChargedQuery { priced, grant } = charged;
        let receipt = match grant {
            Grant::Answered(recorded) => return Ok(Self { priced, means: Means::Answered(recorded) }),
            Grant::Charged(receipt) => receipt,
        };
        let clamp = receipt.cover().priced.sensitivity();
        if clamp != priced.terms().sensitivity() {
            // The sum would be bounded by another number than was charged.
            return Err(AnswerStatus::Halted);
        }
        let kind = priced.query().kind;
        let means = if kind.candidates().is_some() {
            Means::Choice { clamp, choice: Box::new(prepare_choice(receipt, noise).ok_or(AnswerStatus::Halted)?) }
        } else {
            let sample = match kind.is_sampled() {
                // A new sample for this release alone, independent of all others.
                true => Some(noise.sample_of_units(sampling.ok_or(AnswerStatus::Halted)?)),
                false => None,
            };
            Means::Sum { clamp, sample, noise: sample_noise(receipt, noise) }
        };
        Ok(Self { priced, means })
    }
}
