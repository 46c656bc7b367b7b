//! `algorithm = "augmentation"`: one release of the model's statistic for the whole budget.

use crate::accounting::{PrivacyFilter, mu_squared};
use crate::job::error::JobError;
use crate::job::limits::MAX_CHAINS;
use crate::job::spec::{Algorithm, JobSpec};
use crate::model::StatisticGrid;
use crate::schema::{ColumnSpec, Family, ModelSpec, Regression};

/// What the charges of the components may sum to beyond their exact cost, as a share: each is rounded up.
const ROUNDING: f64 = 1e-6;

/// Checks that whole records of the model can be drawn, and sets the noise at which one release of all components of its statistic takes
/// the job's budget.
///
/// # Errors
/// A model without a law of whole records, a power on its likelihood, or more components than a message asks for.
pub(super) fn resolve(mut spec: JobSpec) -> Result<JobSpec, JobError> {
    if spec.algorithm != Algorithm::Augmentation {
        return Ok(spec);
    }
    let wrong = |message: String| Err(JobError::new("algorithm", message));
    let kind = spec.model.kind();
    if let Some(reason) = lacks_record_law(&spec) {
        return wrong(format!("augmentation draws whole records, and {reason}: use algorithm = \"penalty\""));
    }
    if spec.power != 1.0 {
        let message = "augmentation draws records from the model's law, and a likelihood to a power is none: leave it out";
        return Err(JobError::new("model.power", message));
    }
    let model = spec.build_model();
    let Some(family) = model.exponential_family() else {
        return wrong(format!("the model `{kind}` has no bounded statistic to release: use algorithm = \"penalty\""));
    };
    let grids = StatisticGrid::of_family(family).map_err(|e| JobError::new("algorithm", e.to_string()))?;
    if grids.len() > MAX_CHAINS as usize {
        return wrong(format!("the statistic has {} components, and a message asks for {MAX_CHAINS}", grids.len()));
    }
    let filter = PrivacyFilter::new(&spec.privacy.budget).map_err(|e| JobError::new("privacy", e.to_string()))?;
    let budget = mu_squared(filter.limit_units()) * (1.0 - ROUNDING);
    spec.sampler.locate_share = 0.0;
    spec.privacy.noise = StatisticGrid::noise_for(&grids, budget).map_err(|e| JobError::new("privacy", e.to_string()))?;
    Ok(spec)
}

/// Why whole records of a model can't be drawn, where they can't.
fn lacks_record_law(spec: &JobSpec) -> Option<&'static str> {
    match &spec.model {
        ModelSpec::Bernoulli { .. }
        | ModelSpec::PoissonMean { .. }
        | ModelSpec::GaussianMean { .. }
        | ModelSpec::Multinomial { .. }
        | ModelSpec::NaiveBayes { .. } => None,
        ModelSpec::Regression(regression) => lacks_predictor_law(regression, spec),
        ModelSpec::Weibull { .. } => Some("a survival model has no law of what censors"),
        ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => Some("this model has no bounded statistic to release"),
    }
}

/// The same of a regression: the predictors of a linear one are taken to be jointly normal before they are clamped.
fn lacks_predictor_law(regression: &Regression, spec: &JobSpec) -> Option<&'static str> {
    match regression.family {
        Family::Linear { sd: Some(_) } => {}
        Family::Linear { sd: None } => return Some("a linear regression has a bounded statistic to release only where `sd` is known"),
        _ => return Some("this regression has no law of its predictors"),
    }
    if regression.design.offset.is_some() {
        return Some("an offset has no law");
    }
    let numeric = |column: &str| matches!(spec.columns.get(column), Some(ColumnSpec::Numeric { .. }));
    let plain = |f: &crate::schema::Feature| matches!(f.factors.as_slice(), [factor] if numeric(&factor.column));
    let all_plain = regression.design.features.iter().all(plain);
    (!all_plain).then_some("only numeric predictors, one by one, have a law here: jointly normal")
}

#[cfg(test)]
#[path = "../tests/augmentation.rs"]
mod tests;
