//! The cost of a job's releases: one by one for full gradients, in advance by blocks for subsampled ones.

use crate::sampler::{Allotment, SamplerError};
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{PrivacyUnit, SamplingProbability, SubsampledError};
use conclave_privacy::mechanism::{GRADIENT_UNITS, NoiseScale, QueryKind, Sensitivity};

/// Returns the kind of gradient that a job's chains ask for.
pub(crate) fn kind(spec: &JobSpec, parameters: usize) -> QueryKind {
    let parameters = parameters as u32;
    if spec.sampler.batch == SamplingProbability::ONE {
        QueryKind::Gradient { parameters }
    } else {
        QueryKind::SampledGradient { parameters }
    }
}

/// Returns the cost of one release as a share of the smallest budget over the parties. A subsampled release costs its part of the
/// blocks that pay for all of them. `None` if no block can be opened, because the noise hides too little of a unit. Errors: a
/// charge is out of range.
pub(crate) fn share(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    budget: &Allotment,
    kind: QueryKind,
    noise: NoiseScale,
) -> Result<Option<f64>, SamplerError> {
    let record = Sensitivity::from_units(GRADIENT_UNITS)?;
    if !kind.is_sampled() {
        return budget.share_of(kind, record, noise).map(Some);
    }
    let mut units: Vec<PrivacyUnit> = parties.iter().map(PartyMetadata::unit).collect();
    units.sort_by_key(|unit| (unit.factor(), unit.records_per_person()));
    units.dedup();
    let mut most: f64 = 0.0;
    for unit in units {
        let Some(terms) = spec.block_terms(kind, unit, (unit.sensitivity(record)?, noise)) else { return Ok(None) };
        let charge = match terms.charge() {
            Ok(charge) => charge.units,
            Err(SubsampledError::RelativeSensitivity(_)) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        // Every block is paid for completely.
        let blocks = spec.planned_releases().div_ceil(terms.releases);
        most = most.max(budget.share_of_units(charge) * blocks as f64 / spec.planned_releases().max(1) as f64);
    }
    Ok(Some(most))
}
