//! `algorithm = "noisy-statistics"`: its `[release]` table, and the models that it supports.

use super::declaration::Declaration;
use super::penalty_exp_family::counts_inert;
use super::unused::UNUSED_WITH_RELEASES;
use crate::job::error::JobError;
use crate::job::privacy_spec::ReleaseSpec;
use crate::job::spec::JobSpec;
use crate::job::weights::Weights;
use crate::model::{Combinations, Model, OutcomeTable};
use crate::schema::ModelSpec;
use conclave_privacy::mechanism::QueryKind;

/// Largest number of parameters: gradient and curvature are released in one answer of at most 7168 integers.
pub(in crate::job) const MOST_PARAMETERS: usize = 118;

pub(super) const NOISY_STATISTICS: Declaration = Declaration {
    name: "noisy-statistics",
    asks: |kind| {
        matches!(
            kind,
            QueryKind::Statistic { .. }
                | QueryKind::Moments { .. }
                | QueryKind::Gradient { .. }
                | QueryKind::Curvature { .. }
                | QueryKind::Table { .. }
        )
    },
    releases: |spec| {
        let model = spec.build_model();
        match model.scores() {
            _ if spec.outcome_table(model.as_ref()).is_some() => vec!["table"],
            Some(scores) if scores.cells().is_some() => vec!["moments"],
            Some(scores) if scores.moments_outcome().is_some() => match spec.weights {
                Weights::Never => vec!["moments", "score"],
                _ => vec!["moments", "score", "table"],
            },
            Some(_) if spec.weights != Weights::Never => vec!["score", "table"],
            Some(_) if spec.times_table(model.as_ref()).is_some() => vec!["table", "score"],
            Some(_) => vec!["score"],
            None if model.life_table().is_some() => vec!["table"],
            None => vec!["statistic"],
        }
    },
    most_rounds: |spec| {
        let stages = || match (&spec.release.stages, spec.release.curvature_share) {
            (Some(shares), _) => shares.len() as u64,
            (None, Some(_)) => ReleaseSpec::FIXED_SHARES.len() as u64,
            (None, None) => ReleaseSpec::MOST_LOCATING as u64 + 1,
        };
        // The last stage queries its gradient, and then information twice.
        let rounds = || stages() + 2;
        let model = spec.build_model();
        Some(match model.scores() {
            Some(_) if spec.is_by_table(model.as_ref()) => 1,
            Some(scores) if spec.weights != Weights::Never => {
                // By the releases, an unweighted search may follow.
                let plain = if scores.moments_outcome().is_none() { rounds() } else { 0 };
                let of_counts = if scores.centres_by_table() { ReleaseSpec::MORE_ROUNDS_OF_COUNTS } else { 0 };
                ReleaseSpec::MOST_WEIGHTED_ROUNDS + of_counts + plain
            }
            // Second moments, and then again moments or a score. Two numbers about the residuals' tails may come before the score.
            Some(scores) if scores.moments_outcome().is_some() => 4,
            // A histogram of times comes before the scores.
            Some(_) => rounds() + u64::from(spec.times_table(model.as_ref()).is_some()),
            None => 1,
        })
    },
    unused: |_| {
        let own = [
            ("sampler.proposal", "no moves are proposed: draws are made from the releases"),
            ("sampler.locate_share", "`release.stages` sets the shares of stages"),
            ("sampler.starts", "set `sampler.start`, the point of the first stage"),
        ];
        own.into_iter().chain(UNUSED_WITH_RELEASES).collect()
    },
    check,
    ..Declaration::OF_RELEASES
};

/// Checks that the job's model has a statistic or score to release.
fn check(spec: &JobSpec) -> Result<(), JobError> {
    let model = spec.build_model();
    let kind = spec.model.kind();
    if spec.model.is_bent() {
        let message = format!(
            "the posterior of the model `{kind}` is curved, and a score released once determines only a normal one: use algorithm = \"penalty\" or \"hmc\""
        );
        return Err(JobError::new("algorithm", message));
    }
    check_table(spec, model.as_ref())?;
    check_weights(spec)?;
    if let Some(scores) = model.scores() {
        let most = MOST_PARAMETERS;
        if scores.parameters() > most {
            let message = format!("has {} parameters; algorithm = \"noisy-statistics\" takes up to {most}", scores.parameters());
            return Err(JobError::new("model.predictors", message));
        }
        if scores.moments_outcome().is_some() && spec.power != 1.0 {
            let message = "a linear regression raised to a power has no release of second moments: use algorithm = \"penalty\"";
            return Err(JobError::new("model.power", message));
        }
        return Ok(());
    }
    if model.life_table().is_some() {
        return Ok(());
    }
    let has_family = matches!(
        spec.model,
        ModelSpec::Bernoulli { .. }
            | ModelSpec::PoissonMean { .. }
            | ModelSpec::GaussianMean { .. }
            | ModelSpec::Multinomial { .. }
    );
    if has_family && spec.incomplete_rows {
        return Err(JobError::new("algorithm", counts_inert(kind)));
    }
    if has_family && spec.power == 1.0 {
        return Ok(());
    }
    let why = if has_family { "raised to a power " } else { "" };
    let message = format!("the model `{kind}` {why}has no statistic or score to release once: use algorithm = \"penalty\"");
    Err(JobError::new("algorithm", message))
}

/// Checks that a job that weights records has no setting of another strategy.
fn check_weights(spec: &JobSpec) -> Result<(), JobError> {
    if spec.weights == Weights::Never {
        return Ok(());
    }
    let ReleaseSpec { stages, curvature_share, table, .. } = &spec.release;
    if spec.weights == Weights::Always && spec.has_open_exposure() {
        let message = "a count with an exposure or an offset has no weighted fit unless it was fixed by design, since a follow-up time may depend \
                       on the outcome: state exposure_fixed = true if it was, or weights = \"never\"";
        return Err(JobError::new("model.weights", message));
    }
    if spec.power != 1.0 {
        return Err(JobError::new(
            "model.weights",
            "a likelihood raised to a power has no weighted fit: leave out `model.power`",
        ));
    }
    let most = MOST_PARAMETERS - 1;
    if spec.dimension() > most {
        // A score, an information and a table are released in one answer.
        let message =
            format!("a weighted regression has up to {most} parameters, not {}: state weights = \"never\"", spec.dimension());
        return Err(JobError::new("model.weights", message));
    }
    // A table is an answer of the plain fit, which `"auto"` admits.
    let by_table = *table == Some(true) && spec.weights == Weights::Always;
    if stages.is_none() && curvature_share.is_none() && !by_table {
        return Ok(());
    }
    let message = "a weighted regression chooses its own stages: leave out `release.stages`, `release.curvature_share` and `release.table`, or \
                   state weights = \"never\"";
    Err(JobError::new("model.weights", message))
}

/// Checks that a job that asks for a table has one, and no settings of stages beside it.
fn check_table(spec: &JobSpec, model: &dyn Model) -> Result<(), JobError> {
    let ReleaseSpec { stages, curvature_share, table, .. } = &spec.release;
    if *table != Some(true) {
        return Ok(());
    }
    if stages.is_some() || curvature_share.is_some() {
        let message = "a table is released at once: leave out `release.stages` and `release.curvature_share`, or `release.table`";
        return Err(JobError::new("release.table", message));
    }
    if spec.is_by_table(model) || spec.times_table(model).is_some() {
        return Ok(());
    }
    let message = format!(
        "this model has no table of outcome and categories with at most {} cells (outcomes times combinations of levels; combinations alone, at \
         most {}, for kind \"linear\"). It takes kind \"weibull\", or \"logistic\", \"linear\" or \"poisson\" without a power, with an intercept and no offset or exposure, and predictors that are all binary or \
         have levels, each also a predictor of its own: narrow the counts' range, leave out predictors, or leave out `release.table`",
        OutcomeTable::MOST_CELLS,
        Combinations::MOST
    );
    Err(JobError::new("release.table", message))
}
