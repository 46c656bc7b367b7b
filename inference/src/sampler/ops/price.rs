//! The cost of a choice, and its lower bound before the first query.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::CandidateLaw;
use super::candidates::{Candidate, beginning, numbers};
use crate::sampler::{Matrix, SamplerError, Target, Totals};
use conclave_common::job::JobSpec;
use conclave_common::query::{Candidates, PartyMetadata, Query, QueryTerms, centre, is_centred};
use conclave_privacy::accounting::{Honest, Priced, PrivacyFilter, mu_squared, units_under_noise};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// Stream of a job's seed from which its candidates are drawn.
const STREAM: u64 = 0x6f70_7300_0000_0000;

/// The price of a choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChoicePrice {
    pub(crate) candidates: u32,
    /// Range of the log probabilities between neighbours, in log-likelihood units.
    pub(crate) range: f64,
    /// Gaussian-DP parameter of one choice.
    pub(crate) mu: f64,
    /// Price in a ledger's units.
    pub(crate) units: u64,
}

pub(super) fn generator(spec: &JobSpec) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(spec.sampler.seed);
    rng.set_stream(STREAM);
    rng
}

/// The places of a choice's candidates, its query, and its price at the party.
pub(super) struct Choice {
    pub(super) places: Vec<Vec<f64>>,
    pub(super) query: Query,
    pub(super) price: ChoicePrice,
    /// Power of the likelihood in the draw, beside the job's own.
    pub(super) power: f64,
}

impl Choice {
    /// Prepares a choice among the job's number of draws from a law, at a party with this metadata. Errors: the law lies outside
    /// the parameter box; the query has no price.
    pub(super) fn new(
        target: &Target,
        party: PartyMetadata,
        law: &CandidateLaw,
        rng: &mut ChaCha20Rng,
    ) -> Result<Self, SamplerError> {
        let Target { spec, model, .. } = target;
        let count = spec.sampler.ops.candidates;
        let candidates = (0..count).map(|_| law.draw(target, rng)).collect::<Result<Vec<Candidate>, _>>()?;
        let from = law.origin(target);
        let records = party.records().filter(|_| is_centred(party.unit())).unwrap_or(0) as f64;
        let taken_off = |to: &[f64]| if records > 0.0 { records * centre(model.as_ref(), &spec.privacy, &from, to) } else { 0.0 };
        let power = power_of(target, party, &from, &candidates)?;
        let to = numbers(&candidates, power, taken_off);
        let (kind, noise) = (QueryKind::Choice { candidates: count }, NoiseScale::OF_A_CHOICE);
        let terms = QueryTerms::new(model.as_ref(), spec, party.unit(), kind, (&from, &to))?;
        let units = Priced::new(kind, terms.sensitivity(), noise, Honest::ALONE).cost(party.unit())?.units;
        let range = party.unit().range_of_choice(terms.sensitivity());
        let price = ChoicePrice { candidates: count, range, mu: mu_squared(units).sqrt(), units };
        let places = candidates.into_iter().map(|candidate| candidate.theta).collect();
        Ok(Self { places, query: Query { chain: 0, kind, from, to, noise }, price, power })
    }

    /// Returns theta of the drawn candidate. Errors: the answer is not the number of a candidate.
    pub(super) fn drawn(&self, totals: &Totals) -> Result<Vec<f64>, SamplerError> {
        let answer = totals.components().first().and_then(|number| usize::try_from(*number).ok());
        let theta = answer.and_then(|number| self.places.get(number));
        Ok(theta.ok_or(SamplerError::Shape("the answer is not the number of a candidate"))?.clone())
    }
}

/// Returns the power of the likelihood with which a party draws one of these candidates.
fn power_of(target: &Target, party: PartyMetadata, from: &[f64], candidates: &[Candidate]) -> Result<f64, SamplerError> {
    let Target { spec, model, .. } = target;
    let places: Vec<Vec<f64>> = candidates.iter().map(|candidate| candidate.theta.clone()).collect();
    let numbers = Candidates::numbers(&places, &vec![0.0; places.len()]);
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let candidates = Candidates::new(count, from, &numbers).ok_or(SamplerError::Shape("candidates without parameters"))?;
    Ok(candidates.power(model.as_ref(), spec, party.unit())?)
}

/// Returns the budget for one choice: no release costs more than the job's least noise multiplier allows.
pub(super) fn most_units(spec: &JobSpec, left: u64) -> u64 {
    left.min(units_under_noise(spec.privacy.noise_multiplier))
}

/// Returns the error that refuses a choice.
pub(super) fn choice_too_expensive(price: ChoicePrice, left: u64) -> SamplerError {
    SamplerError::ChoiceTooExpensive { range: price.range, mu: price.mu, left: mu_squared(left).sqrt() }
}

/// Returns the least price of a choice of this job, from public facts. Without a search the candidates are as wide as the prior;
/// otherwise they lie around a posterior as narrow as the model's information allows. `None` if the number of records is not
/// public, or if that information has no bound. Errors: the law lies outside the parameter box; the query has no price.
pub(crate) fn foreseen(spec: &JobSpec, party: PartyMetadata) -> Result<Option<ChoicePrice>, SamplerError> {
    let target = Target::new(spec);
    let law = match spec.sampler.locate_share > 0.0 {
        false => CandidateLaw::of_prior(&target),
        true => {
            let Some(records) = party.most_records().or(spec.sampler.records_guess) else { return Ok(None) };
            let information = target.model.information_bound();
            let variance = |j: usize| {
                let of_records = records as f64 * information[target.space.parameters[j]];
                (of_records + target.space.precision[j]).recip()
            };
            let variances: Vec<f64> = (0..target.space.dimension()).map(variance).collect();
            if !variances.iter().all(|variance| variance.is_finite() && *variance > 0.0) {
                return Ok(None);
            }
            let zeros = Matrix::zeros(variances.len());
            CandidateLaw::around(beginning(&target), Matrix::diagonal(&variances), &zeros)
        }
    };
    Choice::new(&target, party, &law, &mut generator(spec)).map(|choice| Some(choice.price))
}

/// Refuses a job that cannot afford any choice, before its first query. Errors: [`SamplerError::ChoiceTooExpensive`]; those of
/// [`foreseen`].
pub(super) fn affordable(spec: &JobSpec, party: PartyMetadata) -> Result<(), SamplerError> {
    let limit = PrivacyFilter::new(&spec.privacy.budget.of(party.unit()))?.limit_units();
    let left = most_units(spec, ((1.0 - spec.sampler.locate_share) * limit as f64) as u64);
    match foreseen(spec, party)? {
        Some(price) if price.units > left && !spec.sampler.force => Err(choice_too_expensive(price, left)),
        _ => Ok(()),
    }
}
