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

/// The error law of a regression's outcome, as far as its expected error depends on it.
struct Scatter {
    /// Expected change of the outcome per unit of the linear predictor.
    slope: f64,
    variance: f64,
    /// True if the variance is a parameter, the last.
    unknown: bool,
}

impl Scatter {
    /// Returns the law at even odds of a binary outcome. An unknown variance is the largest that the outcome's bounds allow in the
    /// best case. In the worse case its sd is the prior's centre, or a fifth of the best case if that is less. Returns `None` for
    /// another family.
    fn of(target: &Target, regression: &Regression, case: Case) -> Option<Self> {
        let half_width = target.spec.columns.get(&regression.outcome).map_or(1.0, ColumnSpec::half_width);
        let sd = match regression.family {
            Family::Logistic => return Some(Self { slope: 0.25, variance: 0.25, unknown: false }),
            Family::Linear { sd: Some(sd) } => sd / half_width,
            Family::Linear { sd: None } => {
                let most = target.spec.support.last()?.max.min(1.0);
                let centre = target.spec.priors.last()?.location();
                if case == Case::Best { most } else { centre.min(case.filled() * most).max(f64::MIN_POSITIVE) }
            }
            _ => return None,
        };
        Some(Self { slope: 1.0, variance: sd * sd, unknown: matches!(regression.family, Family::Linear { sd: None }) })
    }
}

/// Noise variances of a regression's released products.
struct ProductNoise {
    /// The predictors' products. The intercept's square is the number of records and has none.
    among: Matrix,
    with_outcome: Vec<f64>,
    /// The outcome's square, if it is released.
    square: f64,
}

impl ProductNoise {
    /// Reads the variances of the components: the predictors' products, row after row, then their products with the outcome, then the
    /// square of an outcome with an unknown sd.
    fn of(variances: &[f64], order: usize, intercept: bool) -> Self {
        let mut components = variances.iter().copied();
        let mut among = Matrix::zeros(order);
        for (j, k) in (0..order).flat_map(|j| (j..order).map(move |k| (j, k))) {
            let known = intercept && (j, k) == (0, 0);
            let variance = if known { 0.0 } else { components.next().unwrap_or(0.0) };
            among[(j, k)] = variance;
            among[(k, j)] = variance;
        }
        let with_outcome = (0..order).map(|_| components.next().unwrap_or(0.0)).collect();
        Self { among, with_outcome, square: components.next().unwrap_or(0.0) }
    }

    /// Returns the noise covariance of the products with the outcome, minus the coefficients times the noise of the predictors'
    /// products.
    fn of_equations(&self, beta: &[f64]) -> Matrix {
        Matrix::from_fn(beta.len(), |a, c| {
            if a != c {
                return self.among[(a, c)] * beta[a] * beta[c];
            }
            let of_products: f64 = (0..beta.len()).map(|b| self.among[(a, b)] * beta[b] * beta[b]).sum();
            self.with_outcome[a] + of_products
        })
    }

    /// Returns the noise variance of the sum of squared residuals.
    fn of_residual(&self, beta: &[f64]) -> f64 {
        let pairs = (0..beta.len()).flat_map(|a| (a..beta.len()).map(move |b| (a, b)));
        let twice = |a: usize, b: usize| if a == b { 1.0 } else { 2.0 };
        let among: f64 = pairs.map(|(a, b)| self.among[(a, b)] * (twice(a, b) * beta[a] * beta[b]).powi(2)).sum();
        let with_outcome: f64 = self.with_outcome.iter().zip(beta).map(|(noise, beta)| 4.0 * noise * beta * beta).sum();
        self.square + with_outcome + among
    }
}

/// Returns the squared errors of a regression's coefficients, for a known law of the error, and of an unknown sd for known
/// coefficients.
fn of_line(target: &Target, regression: &Regression, variances: &[f64], records: f64, case: Case) -> Vec<f64> {
    let Some(Scatter { slope, variance, unknown }) = Scatter::of(target, regression, case) else { return vec![f64::INFINITY] };
    let moments = predictor_moments(&regression.design, &target.spec.columns, case);
    let order = moments.order();
    let fitted: Vec<f64> = target.space.location[..order].iter().map(|beta| slope * beta).collect();
    let noise = ProductNoise::of(variances, order, regression.design.intercept);
    let spread = noise.of_equations(&fitted).plus(&moments, records * variance);
    let prior = Matrix::diagonal(&target.space.precision[..order]);
    let slopes = moments.scaled(slope * records);
    let inverse = |matrix: &Matrix| matrix.cholesky().map(|factor| factor.inverse());
    let with = inverse(&spread).and_then(|weight| inverse(&slopes.times(&weight).times(&slopes).plus(&prior, 1.0).symmetrised()));
    let without = inverse(&slopes.clone().scaled(slope / variance).plus(&prior, 1.0));
    let (Some(with), Some(without)) = (with, without) else { return vec![f64::INFINITY] };
    let pairs = with.diagonal_entries().into_iter().zip(without.diagonal_entries());
    let of_coefficients = pairs.map(|(with, without)| (with / without - 1.0).max(0.0));
    // Relative to the variance of the sum of squared residuals itself, 2 n sigma^4.
    let of_sd = unknown.then(|| 0.5 * noise.of_residual(&fitted) / (records * variance * variance));
    of_coefficients.chain(of_sd).collect()
}

#[cfg(test)]
#[path = "tests/expected.rs"]
mod tests;
