//! The public facts of a weighted regression, and the shares of its budget.

use super::count_facts::CountFacts;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::expected::Outlook;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
use crate::sampler::target::Target;
use conclave_common::job::{JobSpec, Weights};
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::pass::Frame;

/// Noise of an eigenvalue of the information, relative to its mean in a perfect frame, from which on nothing can be learnt.
const GATE: f64 = 0.016;
/// The same noise up to which two learning stages suffice.
const QUIET: f64 = 0.002;
/// Multiples of `2 sqrt(dN/n) / mu` at which the noise of an answer lies: in the best case, and in a worse one, which a plan multiplies
/// by 3 for real data.
const BEST: f64 = 2.0;
const WORSE: f64 = 10.0;

/// The source of the number of records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    /// Every party protects rows against replacement.
    Public,
    /// By `records_guess`, or from the number of persons, until it is released.
    Guessed,
    /// It is released, with noise of this sd.
    Released(f64),
}

/// The public facts.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// True if the releases may choose an unweighted last stage.
    pub(super) may_be_plain: bool,
    /// Number of coefficients.
    pub(super) order: usize,
    /// True if the residuals' sd is a parameter, the last one.
    pub(super) own: bool,
    /// True if the outcome is binary. If it is no count either, it is numeric, with normal residuals.
    pub(super) binary: bool,
    /// The facts of a count's outcome, if it is one; the own parameter is its dispersion then.
    pub(super) counts: Option<CountFacts>,
    /// Number of records of all parties, as far as it is known.
    pub(super) records: f64,
    pub(super) known: Known,
    pub(super) parties: f64,
    /// Sd of the noise over all parties of a sum that one record moves by 1, if the whole budget were spent on it.
    pub(super) unit: f64,
    pub(super) is_indicator: Vec<bool>,
    pub(super) has_intercept: bool,
    pub(super) coding: Coding,
    /// The greatest length of a coded row.
    pub(super) longest: f64,
    /// Centre and half width of the outcome less the offset.
    pub(super) outcome: (f64, f64),
    pub(super) prior: GaussianPrior,
    /// The box of the logarithm of the residuals' sd, if that is a parameter.
    pub(super) log_sigma_box: (f64, f64),
    /// True if a row may be unusable; such a row counts and adds nothing.
    pub(super) may_be_inert: bool,
    /// Mean squared radius of the ball while the frame is learnt, in mean squared lengths of a record per predictor.
    pub(super) radius: f64,
    /// Share of the budget of each learning stage.
    pub(super) learn_share: f64,
    /// Maximum number of learning stages.
    pub(super) most_learnt: usize,
}

impl Facts {
    /// Collects the facts. Returns `None` where the noise hides every frame, so that an unweighted strategy serves better, and under
    /// `auto` where a party's number of records is neither public nor guessed.
    ///
    /// # Errors
    /// Under `always`, such a party.
    pub(super) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        budget: &Allotment,
    ) -> Result<Option<Self>, SamplerError> {
        let counts = CountFacts::of(target, scores);
        let can_start = counts.as_ref().is_none_or(|counts| counts.can_start(target, scores.has_intercept()));
        if target.spec.has_open_exposure() || !can_start {
            return Ok(None);
        }
        let Some((records, known)) = records(&target.spec, parties)? else { return Ok(None) };
        let (order, dimension) = (scores.coefficients(), target.space.dimension());
        let facts = Self {
            may_be_plain: target.spec.weights == Weights::Auto,
            order,
            own: dimension > order,
            binary: scores.moments_outcome().is_none() && !scores.centres_by_table(),
            counts,
            records,
            known,
            parties: parties.len() as f64,
            unit: unit(target, budget)?,
            is_indicator: (0..order).map(|j| scores.is_indicator(j)).collect(),
            has_intercept: scores.has_intercept(),
            coding: Coding::new(&scores.coding(), scores.intercepts(), order),
            longest: (scores.most_squares() as f64).sqrt(),
            outcome: scores.moments_outcome().unwrap_or((0.0, 1.0)),
            prior: GaussianPrior::of(&target.space),
            log_sigma_box: target
                .spec
                .support
                .get(order)
                .map_or((f64::MIN, f64::MAX), |of| (libm::log(of.min), libm::log(of.max))),
            may_be_inert: target.spec.spares_inert_rows(),
            radius: 0.0,
            learn_share: 0.0,
            most_learnt: 0,
        };
        let is_hidden = facts.eigenvalue_noise() >= GATE;
        Ok((!is_hidden).then(|| facts.planned()))
    }

    /// Returns the noise of an eigenvalue of the information, relative to its mean in a perfect frame.
    fn eigenvalue_noise(&self) -> f64 {
        self.unit * self.order as f64 * (self.order as f64).sqrt() / self.records
    }

    /// Returns the facts with the plan of the learning stages that follows from the noise.
    fn planned(self) -> Self {
        let nu = self.eigenvalue_noise();
        Self {
            radius: (3.0 * (QUIET / nu).sqrt()).clamp(1.5, 3.0),
            learn_share: (400.0 * nu * nu).clamp(0.01, 0.05),
            most_learnt: if nu < QUIET { 2 } else { 4 },
            ..self
        }
    }

    /// Takes the released numbers of records in cells, with noise of this sd.
    pub(super) fn take_count(&mut self, cells: &[f64], sd: f64) {
        self.records = cells.iter().sum::<f64>().max(1.0);
        self.known = Known::Released(sd * (cells.len() as f64).sqrt());
        *self = self.clone().planned();
    }

    /// Returns the number of usable records and the sd of its noise, by the released number of unusable ones, with noise of this sd.
    pub(super) fn usable(&self, unusable: f64, of_unusable: f64) -> (f64, f64) {
        match self.known {
            Known::Released(sd) => (self.records, sd),
            _ if self.may_be_inert => ((self.records - unusable.max(0.0)).max(1.0), of_unusable),
            _ => (self.records.max(1.0), 0.0),
        }
    }

    /// Returns whether the information changes with the coefficients.
    pub(super) fn is_curved(&self) -> bool {
        self.binary || self.counts.is_some()
    }

    /// Returns c of the stages before the last one.
    pub(super) fn search_clip(&self) -> f64 {
        if self.binary { 1.5 } else { 3.0 }
    }

    /// Returns the mean information of a record along each axis of a frame whose ball has the learning stages' radius. A binary outcome's
    /// is less by kappa. That is left out: in a frame that heeds it, a rare outcome has fewer answers, and more noise on real data.
    pub(super) fn filled(&self) -> f64 {
        (self.radius * self.order as f64).recip()
    }

    /// Returns the noise of log sigma in posterior sds by a sum of squares at a clip in sds, with a share of the budget.
    pub(super) fn noise_of_squares(&self, clip: f64, share: f64) -> f64 {
        clip * clip * self.unit / (2.0 * self.records * share).sqrt()
    }

    /// Returns the noise in posterior sds of a score whose records all lie on the ball, with a share of the budget.
    pub(super) fn noise_on_the_ball(&self, share: f64) -> f64 {
        2.0 * self.unit * (self.order as f64 / self.records / share).sqrt()
    }
}

/// Returns the total number of records, and how it is known; `None` where it is not and the job may be unweighted.
fn records(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<(f64, Known)>, SamplerError> {
    if parties.iter().all(|party| party.unit() == PrivacyUnit::row(Adjacency::Replace)) {
        let records = PartyMetadata::most_records_of_all(parties).unwrap_or(1.0).max(1.0);
        return Ok(Some((records, Known::Public)));
    }
    let guess = spec.sampler.records_guess;
    let of_party = |party: &PartyMetadata| party.records().or(guess).or(party.most_records()).map(|count| count as f64);
    match parties.iter().position(|party| of_party(party).is_none()) {
        Some(_) if spec.weights == Weights::Auto => Ok(None),
        Some(at) => Err(SamplerError::UnknownCount { party: spec.parties.get(at).cloned().unwrap_or_default() }),
        None => Ok(Some((parties.iter().filter_map(of_party).sum::<f64>().max(1.0), Known::Guessed))),
    }
}

/// Returns the noise of a sum that one record moves by 1.
fn unit(target: &Target, budget: &Allotment) -> Result<f64, SamplerError> {
    let theta = target.space.theta_inside(&target.spec, &target.space.location);
    let frame = vec![0.0; Frame::length(theta.len())];
    // A score is priced at twice the greatest contribution of a record.
    Ok(0.5 * budget.whole_score_sd(&target.spec, target.model.as_ref(), (&theta, &frame))?)
}

/// Returns the expected error of a weighted fit, in the best case and in a worse one; `None` for a job that weights no record, and
/// where nothing can be learnt.
///
/// # Errors
/// Those of [`Facts::new`].
pub(crate) fn outlook(target: &Target, parties: &[PartyMetadata], budget: &Allotment) -> Result<Option<Outlook>, SamplerError> {
    if target.spec.weights == Weights::Never || target.spec.is_by_table(target.model.as_ref()) {
        return Ok(None);
    }
    let Some(scores) = target.model.scores() else { return Ok(None) };
    let facts = Facts::new(target, scores.as_ref(), parties, budget)?;
    let noise = facts.map(|facts| facts.noise_on_the_ball(1.0));
    Ok(noise.map(|noise| Outlook { best: BEST * noise, worse: WORSE * noise }))
}
