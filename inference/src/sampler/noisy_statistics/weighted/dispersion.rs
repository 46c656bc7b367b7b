//! The dispersion of a count: the score of its logarithm and that score's information, two released numbers.
//!
//! A record's slope in the logarithm of the dispersion is clipped and centred by its expectation under the model, so that a few large
//! counts neither need nor make much noise. Its information is the sum of kappa over the records. Both are released during the search,
//! and at the end at the answer: with coefficients off the answer, the dispersion would be too large.

use super::count_facts::CountFacts;
use super::count_law::CountTable;
use super::dispersion_score::DispersionScore;
use super::plan::Facts;
use super::progress::Progress;
use super::queries::QueryPoint;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::scores::triangle;
use crate::sampler::target::Target;
use conclave_common::model::Influence;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::NoiseScale;
use conclave_privacy::pass::hold::DIAGONAL;

/// Part of a release of the dispersion for the information.
const OF_INFORMATION: f64 = 0.1;
/// Clips that are tried, in roots of a typical record's information.
const CLIPS: [f64; 9] = [0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 6.5, 9.0, 13.0];
/// Least information, in that of as many typical records.
const LEAST: f64 = 0.1;

/// The pending queries of a dispersion.
#[derive(Debug, Clone)]
pub(super) struct PendingDispersion {
    point: QueryPoint,
    /// The least information that is believed.
    least: f64,
    table: CountTable,
}

impl PendingDispersion {
    /// Asks the score and the information at a point with a share of the budget.
    pub(super) fn ask(
        (target, budget): (&Target, &mut Allotment),
        (facts, counts, progress): (&Facts, &CountFacts, &Progress),
        theta: &[f64],
        share: f64,
    ) -> Result<(Self, Vec<Query>), SamplerError> {
        let law = counts.law(theta.last().map_or(0.0, |a| libm::log(*a)));
        let eta = progress.typical_predictor(counts);
        let clip = clip(facts, share, |clip| law.of_dispersion(eta, clip));
        let least = LEAST * facts.records * law.of_dispersion(eta, clip)[1];
        let table = law.dispersions(counts.ends(target, theta, facts.order), clip);
        let point = QueryPoint::of_own(theta.to_vec(), clip, &table);
        let information = point.own_information((target, budget), OF_INFORMATION * share)?;
        let score = point.score((target, budget), (1.0 - OF_INFORMATION) * share)?;
        let queries = [score, information].into_iter().enumerate().map(|(k, query)| Query { chain: k as u32, ..query });
        Ok((Self { point, least, table }, queries.collect()))
    }

    /// Reads the answers to the queries of a round.
    pub(super) fn read(&self, facts: &Facts, round: &Round, answers: &[&[i128]]) -> Option<DispersionScore> {
        let (score, information) = (answers.first()?, answers.get(1)?);
        let noise = |at: usize| round.queries.get(at).map(|query| query.noise);
        let (score, score_sd) = self.point.read_own(facts, noise(0)?, score);
        let (information, information_sd) = read_information(facts, noise(1)?, information, self.table.unit);
        let at = libm::log(*self.point.theta.last()?);
        Some(DispersionScore { at, score, score_sd, information: information.max(self.least), information_sd })
    }
}

/// Reads the sum of kappa, and the sd of its noise.
fn read_information(facts: &Facts, noise: NoiseScale, totals: &[i128], unit: f64) -> (f64, f64) {
    let shortened = Influence::shortened(1);
    let unit = unit / (shortened * shortened);
    (triangle(1, totals, |_| unit)[(0, 0)], unit * facts.parties.sqrt() * noise.sd() / DIAGONAL)
}

/// Returns the clip with the least error, for typical records whose centre and information are functions of it.
fn clip(facts: &Facts, share: f64, of: impl Fn(f64) -> [f64; 2]) -> f64 {
    let root = of(1e3)[1].max(1e-12).sqrt();
    let noise = 2.0 * facts.unit / ((1.0 - OF_INFORMATION) * share).sqrt();
    let variance = |clip: f64| {
        let [centre, kappa] = of(clip);
        let sd = noise * (clip + centre.abs());
        (facts.records * kappa + sd * sd) / (kappa * kappa)
    };
    let clips = CLIPS.map(|factor| (factor * root).clamp(1e-6, Influence::MOST_CLIP));
    clips.into_iter().min_by(|a, b| variance(*a).total_cmp(&variance(*b))).unwrap_or(1.0)
}
