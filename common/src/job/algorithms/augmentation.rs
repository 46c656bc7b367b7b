//! `algorithm = "augmentation"`: for models whose whole records can be drawn and that have a statistic or table to release.

use super::declaration::Declaration;
use super::penalty_exp_family::counts_inert;
use super::unused::UNUSED_WITH_RELEASES;
use crate::job::error::JobError;
use crate::job::limits::MAX_CHAINS;
use crate::job::spec::JobSpec;
use crate::schema::{ColumnSpec, Family, Feature, ModelSpec, Regression};
use conclave_privacy::mechanism::QueryKind;

pub(super) const AUGMENTATION: Declaration = Declaration {
    name: "augmentation",
    asks: |kind| matches!(kind, QueryKind::Statistic { .. } | QueryKind::Table { .. }),
    releases: |spec| if spec.build_model().tables().is_some() { vec!["table"] } else { vec!["statistic"] },
    most_rounds: |_| Some(1),
    protocol: |spec| if has_no_family(&spec.model) { 11 } else { 3 },
    unused: |_| {
        let own = [
            ("sampler.proposal", "records are imputed, and the parameters drawn given them: no moves are proposed"),
            ("sampler.locate_share", "there is one release and no search for the mode"),
            ("sampler.starts", "set `sampler.start` or nothing: the starting values are dispersed"),
            ("sampler.records_guess", "record counts that are not public are imputed"),
            ("privacy.clip_watch_share", "nothing is clipped"),
        ];
        own.into_iter().chain(UNUSED_WITH_RELEASES).collect()
    },
    check,
    ..Declaration::OF_RELEASES
};

/// Checks that whole records of the job's model can be drawn, and that one message can query the whole release.
///
/// # Errors
/// The model has no law of whole records, or a power on its likelihood; the components exceed the limit of a message.
fn check(spec: &JobSpec) -> Result<(), JobError> {
    let wrong = |message: String| Err(JobError::new("algorithm", message));
    if let Some(reason) = lacks_record_law(spec) {
        return wrong(format!("augmentation draws whole records, and {reason}: use algorithm = \"penalty\""));
    }
    if spec.incomplete_rows && spec.build_model().tables().is_none() {
        return wrong(counts_inert(spec.model.kind()));
    }
    if spec.power != 1.0 {
        let message =
            "augmentation draws records from the model's law, and a likelihood raised to a power is not a law: leave it out";
        return Err(JobError::new("model.power", message));
    }
    let model = spec.build_model();
    let components = model.statistic().filter(|_| model.tables().is_none()).map_or(0, |statistic| statistic.ranges().len());
    if components > MAX_CHAINS as usize {
        return wrong(format!("the statistic has {components} components, and a message holds at most {MAX_CHAINS}"));
    }
    Ok(())
}

/// Returns the reason why whole records of a model cannot be drawn, if there is one.
fn lacks_record_law(spec: &JobSpec) -> Option<&'static str> {
    match &spec.model {
        ModelSpec::Bernoulli { .. }
        | ModelSpec::PoissonMean { .. }
        | ModelSpec::GaussianMean { .. }
        | ModelSpec::Multinomial { .. }
        | ModelSpec::NaiveBayes { .. } => None,
        ModelSpec::Regression(regression) => lacks_predictor_law(regression, spec),
        ModelSpec::Weibull { .. } | ModelSpec::PiecewiseExponential(_) | ModelSpec::LifeTable(_) => {
            Some("a survival model has no law of the censoring")
        }
        ModelSpec::GaussianMixture { .. } | ModelSpec::Banana { .. } => Some("this model has no bounded statistic to release"),
    }
}

/// Returns true for a regression whose released sums are no sufficient statistic of an exponential family.
fn has_no_family(model: &ModelSpec) -> bool {
    matches!(model, ModelSpec::Regression(regression) if matches!(regression.family, Family::Logistic | Family::Linear { sd: None }))
}

/// Returns the same for a regression. Its predictors are taken to be jointly normal before they are clamped.
fn lacks_predictor_law(regression: &Regression, spec: &JobSpec) -> Option<&'static str> {
    if !matches!(regression.family, Family::Linear { .. } | Family::Logistic) {
        return Some("only regressions of kind `linear` and `logistic` have a law of their predictors");
    }
    if regression.design.offset.is_some() {
        return Some("an offset has no law");
    }
    let numeric = |column: &str| matches!(spec.columns.get(column), Some(ColumnSpec::Numeric { .. }));
    let plain = |f: &Feature| matches!(f.factors.as_slice(), [factor] if numeric(&factor.column));
    let all_plain = regression.design.features.iter().all(plain);
    (!all_plain).then_some("only numeric predictors, one by one, have a law here: jointly normal")
}

#[cfg(test)]
#[path = "../tests/augmentation.rs"]
mod tests;
