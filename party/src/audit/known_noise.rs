//! Releases under noise that is the same every time, so that those of neighbouring shards differ by the unit alone.

use std::fmt::Display;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::{Candidates, QueryTerms};
use conclave_privacy::accounting::{Cover, Honest, Priced, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::{NoiseSample, NoiseScale, QueryKind};
use conclave_privacy::pass::{BlockPass, Hold, LatticeSum, ModelData, PoissonSampling, Threads};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// A job's query.
pub(super) struct Asked<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) spec: &'a JobSpec,
    pub(super) unit: PrivacyUnit,
    pub(super) kind: QueryKind,
    /// The numbers of the query, as in a proposal.
    pub(super) numbers: (&'a [f64], &'a [f64]),
    pub(super) noise: NoiseScale,
}

impl Asked<'_> {
    /// Returns the release over these simulated records; of a choice, all log weights. The sum is an answer's own: the model, the
    /// query's terms, the holds and the sampling. All units are in the sample of a subsampled release.
    ///
    /// # Errors
    /// A sentence: the query has no sum.
    pub(super) fn released(&self, terms: &QueryTerms, data: &ModelData) -> Result<Vec<i64>, String> {
        let ((from, to), charged, threads) = (self.numbers, terms.sensitivity(), Threads::one());
        let because = |why: &dyn Display| format!("the audit's query of the kind {}: {why}", self.kind);
        let sums = if let Some(count) = self.kind.candidates() {
            let candidates = Candidates::new(count, from, to).ok_or_else(|| because(&"no candidates"))?;
            let steps = candidates.steps(self.model, self.spec, self.unit, charged).map_err(|e| because(&e))?;
            let holds: Vec<Hold<'_>> = steps.iter().map(|step| Hold::Step(*step)).collect();
            threads.sums(data, &holds, &|_, pass: BlockPass<'_>| self.model.ratio_kernel(pass))
        } else {
            let summand = terms.summand(from, to, charged).map_err(|e| because(&e))?;
            let kernel = |_: usize, pass: BlockPass<'_>| summand.give(self.model, pass);
            if self.kind.is_sampled() {
                let everybody = PoissonSampling::new(data.units(), SamplingProbability::ONE).sample(&mut generator());
                threads.sampled_sums(data, vec![(summand.hold(), everybody)], &kernel)
            } else {
                threads.sums(data, &[summand.hold()], &kernel)
            }
        };
        let mut generator = generator();
        // A log weight of a choice is a ratio with its own noise here.
        let kind = if self.kind.candidates().is_some() { QueryKind::Ratio } else { self.kind };
        let mut noised = |sum: LatticeSum| {
            let noise = NoiseSample::gathered(sum.length(), || NoiseSample::of_scale(self.noise, &mut generator));
            let priced = Priced::new(kind, charged, self.noise, Honest::ALONE);
            let cover = Cover { priced, sampled: sum.sampled(), unit: self.unit };
            sum.release(&cover, noise).ok_or_else(|| because(&"one unit moves its sum further than is charged"))
        };
        let released = sums.map_err(|e| because(&e))?.into_iter().map(&mut noised).collect::<Result<Vec<_>, _>>()?;
        Ok(released.iter().flat_map(|release| release.as_slice()).copied().collect())
    }
}

/// The seed is not secret: the records are simulated.
fn generator() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(0)
}
