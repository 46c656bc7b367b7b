//! Expected error of the one release of an augmentation job, in the best case and in a worse one.

use super::Release;
use super::state_machine::sensible;
use crate::sampler::noisy_statistics::{expected_law, predictor_moments};
use crate::sampler::{Case, Matrix, Outlook, SamplerError, Target};
use conclave_common::job::JobSpec;
use conclave_common::model::Tables;
use conclave_common::query::PartyMetadata;
use conclave_common::schema::{ColumnSpec, Family, ModelSpec, Regression};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::StatisticGrid;

/// Returns the rms over the parameters of the error of a posterior mean, in posterior sds without privacy. Errors: the sampler's
/// own refusals before its first query.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Outlook, SamplerError> {
    let target = Target::new(spec);
    let release = Release::new(&target, parties)?;
    let noise = release.noise(&target, parties)?;
    let counts: Vec<usize> = parties.iter().filter_map(PartyMetadata::most_records).map(|n| n as usize).collect();
    sensible(spec, counts.iter())?;
    let records = counts.iter().map(|n| *n as f64).sum::<f64>().max(1.0);
    let of = |case| error(&target, &release, (noise, parties.len() as f64, records), case);
    let best = of(Case::Best);
    Ok(Outlook { best, worse: of(Case::Worse).max(best) })
}

fn error(target: &Target, release: &Release, (noise, parties, records): (NoiseScale, f64, f64), case: Case) -> f64 {
    let variance = |grid: &StatisticGrid| parties * (noise.units() as f64 * grid.step) * (noise.units() as f64 * grid.step);
    let squares = match (release, &target.spec.model) {
        (Release::Tables(tables), _) => {
            let sd = noise.units() as f64 / QueryKind::COUNT_UNIT as f64;
            of_tables(tables, parties * sd * sd / records, case)
        }
        (Release::Statistic(statistic), ModelSpec::Regression(regression)) => {
            let variances: Vec<f64> = statistic.grids.iter().map(variance).collect();
            of_line(target, regression, &variances, records, case)
        }
        (Release::Statistic(statistic), _) => {
            let record = expected_law(target, case).unwrap_or_default();
            record.iter().zip(&statistic.grids).map(|(own, grid)| variance(grid) / (records * own)).collect()
        }
    };
    (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
}

/// Returns the squared errors of the classes' shares and of each level's within a class; `noise` is a cell's noise variance over
/// the number of records.
fn of_tables(tables: &Tables, noise: f64, case: Case) -> Vec<f64> {
    let classes = tables.classes();
    let square = |noise: f64, share: f64, of: usize| noise * (1.0 - 1.0 / of.max(2) as f64) / (share * (1.0 - share));
    // Every table counts the classes, each by the sum of its levels.
    let tables_say: f64 = tables.levels().iter().map(|levels| 1.0 / *levels as f64).sum();
    let of_class = if tables.levels().is_empty() { noise } else { noise / tables_say };
    let mut squares: Vec<f64> = (0..classes).map(|class| square(of_class, case.level(class, classes), classes)).collect();
    for levels in tables.levels() {
        for class in 0..classes {
            let within = noise / case.level(class, classes);
            squares.extend((0..*levels).map(|level| square(within, case.level(level, *levels), *levels)));
        }
    }
    squares
}

/// Returns the squared errors of a linear regression's coefficients, for known scatter. The components are the predictors'
/// products, row after row, and then their products with the outcome.
fn of_line(target: &Target, regression: &Regression, variances: &[f64], records: f64, case: Case) -> Vec<f64> {
    let Family::Linear { sd: Some(sd) } = regression.family else { return vec![f64::INFINITY] };
    let sigma = sd / target.spec.columns.get(&regression.outcome).map_or(1.0, ColumnSpec::half_width);
    let moments = predictor_moments(&regression.design, &target.spec.columns, case);
    let order = moments.order();
    let beta = &target.space.location;
    let mut components = variances.iter().copied();
    let mut products = Matrix::zeros(order);
    for (j, k) in (0..order).flat_map(|j| (j..order).map(move |k| (j, k))) {
        // The intercept's square is the number of records.
        let known = regression.design.intercept && (j, k) == (0, 0);
        let variance = if known { 0.0 } else { components.next().unwrap_or(0.0) };
        products[(j, k)] = variance;
        products[(k, j)] = variance;
    }
    let with_outcome: Vec<f64> = components.collect();
    // The noise of the products with the outcome, minus the coefficients times the noise of the predictors' products.
    let spread = Matrix::from_fn(order, |a, c| {
        let own = records * sigma * sigma * moments[(a, c)];
        if a != c {
            return own + products[(a, c)] * beta[a] * beta[c];
        }
        let of_products: f64 = (0..order).map(|b| products[(a, b)] * beta[b] * beta[b]).sum();
        own + with_outcome.get(a).copied().unwrap_or(0.0) + of_products
    });
    let prior = Matrix::diagonal(&target.space.precision[..order]);
    let slope = moments.scaled(records);
    let inverse = |matrix: &Matrix| matrix.cholesky().map(|factor| factor.inverse());
    let with = inverse(&spread).and_then(|weight| inverse(&slope.times(&weight).times(&slope).plus(&prior, 1.0).symmetrised()));
    let without = inverse(&slope.clone().scaled(1.0 / (sigma * sigma)).plus(&prior, 1.0));
    match (with, without) {
        (Some(with), Some(without)) => {
            let pairs = with.diagonal_entries().into_iter().zip(without.diagonal_entries());
            pairs.map(|(with, without)| (with / without - 1.0).max(0.0)).collect()
        }
        _ => vec![f64::INFINITY],
    }
}

#[cfg(test)]
#[path = "tests/expected.rs"]
mod tests;
