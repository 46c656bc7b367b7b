//! The draws of a model's parameters, where some of them may vary by party.

use conclave_common::job::JobSpec;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::error::PredictError;

/// The stream of a new party's values, apart from those of outcomes, which are numbered by row.
const NEW_PARTY: u64 = u64::MAX;

/// The party that a prediction is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site<'a> {
    /// The parameters that all parties share; those that vary by party at their mean over the parties.
    Mean,
    /// A party of the job.
    Party(&'a str),
    /// A party outside the job: each varying parameter is drawn from N(mean, sd²), once per draw of the posterior.
    New {
        /// Seed of those draws.
        seed: u64,
    },
}

/// Draws of a model's parameters, on the scale of the priors.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    draws: Vec<Vec<f64>>,
}

impl Posterior {
    /// Reads the kept draws of a job, `[value][chain][draw]`, whose values are those of [`JobSpec::draw_names`].
    ///
    /// # Errors
    /// No draws, or draws of another job; a party for a job that has no parameters by party, or an unknown one.
    pub fn new(spec: &JobSpec, samples: &[Vec<Vec<f64>>], site: Site<'_>) -> Result<Self, PredictError> {
        let values: Vec<Vec<f64>> = samples.iter().map(|chains| chains.concat()).collect();
        let count = values.first().map_or(0, Vec::len);
        if values.len() != spec.draw_names().len() || values.iter().any(|draws| draws.len() != count) {
            return Err(PredictError::new("the draws do not fit the job's parameters"));
        }
        if count == 0 {
            return Err(PredictError::new("the job has no draws"));
        }
        let party = party(spec, site)?;
        let (order, step) = (spec.dimension(), spec.parties.len() + 1);
        let mut rng = ChaCha20Rng::seed_from_u64(if let Site::New { seed } = site { seed } else { 0 });
        rng.set_stream(NEW_PARTY);
        let mut draw = |at: usize| {
            let mut theta: Vec<f64> = values[..order].iter().map(|draws| draws[at]).collect();
            for (varying, site_parameter) in spec.varying().iter().enumerate() {
                let own = |place: usize| values[order + varying * step + place][at];
                let theta = &mut theta[site_parameter.index];
                match (site, party) {
                    (Site::New { .. }, _) => {
                        let z: f64 = StandardNormal.sample(&mut rng);
                        *theta += own(step - 1) * z;
                    }
                    (_, Some(party)) => *theta = own(party),
                    _ => {}
                }
            }
            theta
        };
        Ok(Self { draws: (0..count).map(&mut draw).collect() })
    }

    /// Returns the draws, `[draw][parameter]`.
    pub(crate) fn draws(&self) -> &[Vec<f64>] {
        &self.draws
    }

    /// Returns the number of draws over all chains.
    #[must_use]
    pub fn count(&self) -> usize {
        self.draws.len()
    }
}

/// Returns the number of the party that is asked for.
fn party(spec: &JobSpec, site: Site<'_>) -> Result<Option<usize>, PredictError> {
    if site != Site::Mean && spec.sites.is_none() {
        return Err(PredictError::new("all parties of the job share every parameter: predict without a party"));
    }
    let Site::Party(name) = site else { return Ok(None) };
    match spec.parties.iter().position(|party| party == name) {
        Some(party) => Ok(Some(party)),
        None => Err(PredictError::new(format!("the job has no party `{name}`; it has {}", spec.parties.join(", ")))),
    }
}
