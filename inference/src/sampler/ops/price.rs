//! What a choice costs, and what can be said of that before anything is asked.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::candidates::{Candidate, CandidateLaw, beginning, numbers};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_common::query::Query;
use conclave_common::query::{QueryTerms, centre, is_centred};
use conclave_privacy::accounting::{Honest, Priced, PrivacyFilter, mu_squared, units_under_noise};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// The stream of a job's seed that its candidates are drawn from.
const STREAM: u64 = 0x6f70_7300_0000_0000;

/// A choice's price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChoicePrice {
    /// How many candidates there are.
    pub(crate) candidates: u32,
    /// Range of the log probabilities between neighbours, in log-likelihood units.
    pub(crate) range: f64,
    /// Gaussian-DP parameter of one choice.
    pub(crate) mu: f64,
    /// The same in a ledger's units.
    pub(crate) units: u64,
}

/// A generator of candidates.
pub(super) fn generator(spec: &JobSpec) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(spec.sampler.seed);
    rng.set_stream(STREAM);
    rng
}

/// The places of a choice's candidates, its query, and what that costs at its party.
pub(super) struct Choice {
    pub(super) places: Vec<Vec<f64>>,
    pub(super) query: Query,
    pub(super) price: ChoicePrice,
}

impl Choice {
    /// Among as many draws of a law as the job asks for, at a party of this metadata.
    ///
    /// # Errors
    /// A law outside the parameter box; a query without a price.
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
        let to = numbers(&candidates, taken_off);
        let (kind, noise) = (QueryKind::Choice { candidates: count }, NoiseScale::OF_A_CHOICE);
        let terms = QueryTerms::new(model.as_ref(), spec, party.unit(), kind, (&from, &to))?;
        let units = Priced::new(kind, terms.sensitivity(), noise, Honest::ALONE).cost(party.unit())?.units;
        let range = party.unit().range_of_choice(terms.sensitivity());
        let price = ChoicePrice { candidates: count, range, mu: mu_squared(units).sqrt(), units };
        let places = candidates.into_iter().map(|candidate| candidate.theta).collect();
        Ok(Self { places, query: Query { chain: 0, kind, from, to, noise }, price })
    }
}

/// What is left for a choice of this much of a budget: no release costs more than the job's least noise multiplier allows.
pub(super) fn most_units(spec: &JobSpec, left: u64) -> u64 {
    left.min(units_under_noise(spec.privacy.noise_multiplier))
}

/// Why a choice is not asked.
pub(super) fn too_dear(price: ChoicePrice, left: u64) -> SamplerError {
    SamplerError::ChoiceTooDear { range: price.range, mu: price.mu, left: mu_squared(left).sqrt() }
}

/// The least that a choice of this job can cost, by what is public: among candidates as wide as the prior where no mode is searched for, and else
/// around a posterior as narrow as the model's information allows. `None` where the number of records is not public, or that information has
/// no bound.
///
/// # Errors
/// A law outside the parameter box; a query without a price.
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

/// Refuses a job of which no choice can be had, before anything is asked.
///
/// # Errors
/// [`SamplerError::ChoiceTooDear`]; as [`foreseen`].
pub(super) fn affordable(spec: &JobSpec, party: PartyMetadata) -> Result<(), SamplerError> {
    let limit = PrivacyFilter::new(&spec.privacy.budget.of(party.unit()))?.limit_units();
    let left = most_units(spec, ((1.0 - spec.sampler.locate_share) * limit as f64) as u64);
    match foreseen(spec, party)? {
        Some(price) if price.units > left && !spec.sampler.force => Err(too_dear(price, left)),
        _ => Ok(()),
    }
}
