//! Expected error of the release of a table of outcome and predictors.

use super::allotment::Allotment;
use super::counts::Pivot;
use super::design::Case;
use super::gaussian::{GaussianPrior, factor};
use super::starting_point::log_of_middle;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::model::{OutcomeTable, TableLaw};
use conclave_common::schema::{ColumnSpec, ModelSpec};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};

/// Returns the rms over the coefficients of the error of a posterior mean, in posterior sds without privacy: the root of the
/// relative increase of the variance that is due to noise.
///
/// The information under noise is that of [`super::counts`]. Each combination of levels is assumed to have its share of the
/// records, and a fixed share of those a 1. Counts are assumed to have the mean at the start of score stages; in the best case
/// also the middle of their range, if that is better.
///
/// # Errors
/// The query has no price.
pub(crate) fn error(
    target: &Target,
    table: &OutcomeTable,
    budget: &Allotment,
    (records, parties): (f64, usize),
    case: Case,
) -> Result<f64, SamplerError> {
    let kind = QueryKind::Table { cells: u32::try_from(table.cells()).unwrap_or(u32::MAX) };
    let sd = budget.whole_sd(&target.spec, target.model.as_ref(), kind, (&[], &[]))? / STEP / QueryKind::COUNT_UNIT as f64;
    let sd = sd.max(kind.noise_sd(NoiseScale::from_units(NoiseScale::MIN_UNITS)?));
    let noise = parties as f64 * sd * sd;
    let rows: Vec<(&Vec<f64>, f64)> = table.rows().iter().map(|row| (row, records * share(target, row, case))).collect();
    let errors = means(target, table, case).into_iter().map(|mean| of_mean(target, table, (&rows, noise), mean));
    Ok(errors.fold(f64::INFINITY, f64::min))
}

/// Returns the assumed means of the outcome.
fn means(target: &Target, table: &OutcomeTable, case: Case) -> Vec<f64> {
    if table.law() == TableLaw::Logistic {
        return vec![case.ones()];
    }
    let start = target.space.location.first().copied().unwrap_or(0.0);
    let middle = log_of_middle(&target.spec);
    let means = std::iter::once(middle.map_or(start, |middle| start.min(middle)));
    means.chain(middle.filter(|_| case == Case::Best)).map(libm::exp).collect()
}

/// Returns the error if the outcome has this mean in every row.
fn of_mean(target: &Target, table: &OutcomeTable, (rows, noise): (&[(&Vec<f64>, f64)], f64), mean: f64) -> f64 {
    let of_record = if table.law() == TableLaw::Logistic { mean * (1.0 - mean) } else { mean };
    let of_noise: f64 = table.outcomes().into_iter().map(|y| (y - mean) * (y - mean)).sum();
    let prior = GaussianPrior::of(&target.space).matrix();
    let order = prior.order();
    let (mut information, mut spread) = (Matrix::zeros(order), Matrix::zeros(order));
    for (row, records) in rows {
        information = information.plus(&Matrix::outer(row, records * of_record), 1.0);
        spread = spread.plus(&Matrix::outer(row, noise * of_noise), 1.0);
    }
    let remaining = Pivot { score: Vec::new(), information: information.clone(), noise: spread }.remaining_information();
    let variances = |of: Matrix| factor(&of.plus(&prior, 1.0)).inverse().diagonal_entries();
    let (with, without) = (variances(remaining), variances(information));
    let squares: f64 = with.iter().zip(&without).map(|(with, without)| (with / without - 1.0).max(0.0)).sum();
    (squares / with.len().max(1) as f64).sqrt()
}

/// Returns the share of the records with a combination of levels, for independent columns.
fn share(target: &Target, row: &[f64], case: Case) -> f64 {
    let ModelSpec::Regression(regression) = &target.spec.model else { return 0.0 };
    let design = &regression.design;
    // A column's own predictors determine its level.
    let is = |column: &str, level: Option<usize>| {
        let own = |f: &conclave_common::schema::Feature| matches!(f.factors.as_slice(), [only] if only.column == column && only.level == level);
        design.features.iter().position(own).is_some_and(|at| row[at + 1] == 1.0)
    };
    let of_column = |name: &str| match target.spec.columns.get(name) {
        Some(ColumnSpec::Levels(levels)) => {
            let level = (0..levels.len()).find(|level| is(name, Some(*level)));
            case.level(level.unwrap_or(0), levels.len())
        }
        _ if is(name, None) => case.ones(),
        _ => 1.0 - case.ones(),
    };
    let mut columns: Vec<&str> = design.features.iter().flat_map(|f| &f.factors).map(|factor| factor.column.as_str()).collect();
    columns.sort_unstable();
    columns.dedup();
    columns.into_iter().map(of_column).product()
}
