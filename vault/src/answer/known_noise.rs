//! Releases under known noise over a sandbox's made-up records, for the audit, which subtracts the noise again.
//!
//! The sums are an answer's own: the job's model, the query's terms, the kernels and the sampling. Only the noise differs, and it never
//! meets a real record: a sandbox has none.

use conclave_common::query::Query;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::mechanism::{NoiseSample, Sensitivity};
use conclave_privacy::pass::{ModelData, PoissonSampling};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::records::Records;
use super::sandbox::Sandbox;
use super::sums::{Pass, SumQuery, sampled_sums};

impl Sandbox {
    /// Returns the release of a subsampled query whose sample is all of these records, under the same noise every time, and the charged
    /// sensitivity.
    ///
    /// # Errors
    /// A sentence: the job is not open, or has no such query.
    pub fn released_under_known_noise(
        &mut self,
        job: &str,
        query: &Query,
        data: ModelData,
    ) -> Result<(Vec<i64>, Sensitivity), String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let active = self.answerer.jobs.get(job).ok_or("a job that is not on")?;
        let records = Records::new(data, self.answerer.precision);
        let (model, points) = (active.model.as_ref(), (query.from.as_slice(), query.to.as_slice()));
        let terms = QueryTerms::new(model, &active.spec, self.budget.unit, query.kind, points).map_err(|e| text(&e))?;
        let charged = terms.sensitivity();
        let summand = terms.summand(points.0, points.1, charged).map_err(|e| text(&e))?;
        let generator = || ChaCha20Rng::seed_from_u64(0);
        let everybody = PoissonSampling::new(records.blocks().units(), SamplingProbability::ONE).sample(&mut generator());
        let asked = [SumQuery { key: query.chain, kind: query.kind, summand, sample: Some(&everybody) }];
        let pass = Pass { model, blocks: records.blocks(), threads: &self.answerer.threads };
        let sums = sampled_sums(&pass, &asked).map_err(|e| text(&e))?;
        let mut generator = generator();
        let noise = NoiseSample::gathered(query.kind.length(), || NoiseSample::of_scale(query.noise, &mut generator));
        let sum = sums.into_values().next().ok_or("a query without a sum")?;
        Ok((sum.add_noise(noise).as_slice().to_vec(), charged))
    }
}
