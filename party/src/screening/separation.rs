//! Separation: predictors that determine a binary outcome without error, so that the likelihood has no maximum.

use conclave_privacy::pass::ModelData;

use super::records::Records;
use conclave_vault::data::{Binding, DataError};

/// Number of records on which a separating direction is searched, before it is tested on all.
const SAMPLE: usize = 4096;
/// Maximum number of Newton steps. On separated records each increases the smallest margin; far fewer make it positive.
const STEPS: usize = 30;
/// Ridge that keeps a step finite.
const RIDGE: f64 = 1e-6;

/// Predictors that determine the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separation {
    /// A value of one predictor separates the outcomes, except for records with exactly this value.
    One(usize),
    /// Only one outcome occurs where one indicator is not 0.
    Level(usize),
    /// All predictors jointly separate the outcomes.
    Joint,
}

/// Statistics of both classes of a binary outcome.
pub(super) struct Classes {
    counts: [u64; 2],
    /// Smallest and largest value, by class and predictor.
    ranges: [Vec<(f64, f64)>; 2],
    /// The first records: outcome, and the predictors preceded by a 1.
    sample: Vec<(bool, Vec<f64>)>,
}

impl Classes {
    pub(super) fn new(features: usize) -> Self {
        let none = vec![(f64::INFINITY, f64::NEG_INFINITY); features];
        Self { counts: [0; 2], ranges: [none.clone(), none], sample: Vec::new() }
    }

    pub(super) fn take(&mut self, outcomes: &[bool], columns: &[Vec<f64>]) {
        for (row, outcome) in outcomes.iter().enumerate() {
            let class = usize::from(*outcome);
            self.counts[class] += 1;
            for ((least, greatest), column) in self.ranges[class].iter_mut().zip(columns) {
                (*least, *greatest) = (least.min(column[row]), greatest.max(column[row]));
            }
            if self.sample.len() < SAMPLE {
                self.sample.push((*outcome, std::iter::once(1.0).chain(columns.iter().map(|column| column[row])).collect()));
            }
        }
    }

    /// Finds the separations; none if there is only one class, which is reported for the outcome's column.
    pub(super) fn separation(
        &self,
        shard: &dyn Records,
        binding: &Binding,
        varying: &[usize],
    ) -> Result<Vec<Separation>, DataError> {
        if self.counts.contains(&0) {
            return Ok(Vec::new());
        }
        let single: Vec<Separation> = varying.iter().filter_map(|at| self.of_one(*at)).collect();
        if !single.is_empty() {
            return Ok(single);
        }
        let Some(direction) = self.direction() else { return Ok(Vec::new()) };
        let mut least = f64::INFINITY;
        shard.look_at_designs(binding, &mut |data| least = least.min(least_margin(data, &direction)))?;
        Ok(if least > 0.0 { vec![Separation::Joint] } else { Vec::new() })
    }

    fn of_one(&self, at: usize) -> Option<Separation> {
        let [(low, high), (low_of_one, high_of_one)] = [self.ranges[0][at], self.ranges[1][at]];
        if high > low_of_one && high_of_one > low {
            return None;
        }
        // One class is always 0, and the other lies on one side of it.
        let touches = high == low_of_one || high_of_one == low;
        Some(if touches && (low == high || low_of_one == high_of_one) { Separation::Level(at) } else { Separation::One(at) })
    }

    /// Finds a direction that separates the sample.
    fn direction(&self) -> Option<Vec<f64>> {
        let order = self.sample.first()?.1.len();
        let mut direction = vec![0.0; order];
        for _ in 0..STEPS {
            let mut gradient: Vec<f64> = direction.iter().map(|w| -RIDGE * w).collect();
            let mut information: Vec<Vec<f64>> = (0..order).map(|i| vec![0.0; i + 1]).collect();
            let mut least = f64::INFINITY;
            for (outcome, x) in &self.sample {
                let eta: f64 = x.iter().zip(&direction).map(|(x, w)| x * w).sum();
                let probability = 1.0 / (1.0 + libm::exp(-eta));
                let weight = probability * (1.0 - probability);
                least = least.min(if *outcome { eta } else { -eta });
                for i in 0..order {
                    gradient[i] += x[i] * (f64::from(u8::from(*outcome)) - probability);
                    information[i].iter_mut().zip(x).for_each(|(sum, other)| *sum += weight * x[i] * other);
                }
            }
            if least > 0.0 {
                return Some(direction);
            }
            information.iter_mut().enumerate().for_each(|(i, row)| row[i] += RIDGE);
            let (factor, _) = cholesky(&information, 0.0);
            direction.iter_mut().zip(solve(&factor, &gradient)).for_each(|(w, step)| *w += step);
        }
        None
    }
}

/// Returns the smallest margin of the records along a direction.
fn least_margin(data: &ModelData, direction: &[f64]) -> f64 {
    let margin = |(row, outcome): (usize, &f64)| {
        let slopes = data.predictors.iter().zip(&direction[1..]).map(|(column, w)| column[row] * w);
        let eta = direction[0] + slopes.sum::<f64>();
        if *outcome > 0.5 { eta } else { -eta }
    };
    let usable = data.outcome.iter().enumerate().filter(|(_, outcome)| !outcome.is_nan());
    usable.map(margin).fold(f64::INFINITY, f64::min)
}

/// Returns the lower Cholesky factor of a symmetric matrix's lower triangle, and the remainder of each diagonal element after the
/// earlier rows. A row whose remainder is at most `least` is omitted: it is determined by earlier rows.
pub(super) fn cholesky(matrix: &[Vec<f64>], least: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let order = matrix.len();
    let mut factor = vec![vec![0.0; order]; order];
    let mut remainder = vec![0.0; order];
    for i in 0..order {
        for j in 0..i {
            let before: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            factor[i][j] = if factor[j][j] > 0.0 { (matrix[i][j] - before) / factor[j][j] } else { 0.0 };
        }
        remainder[i] = matrix[i][i] - factor[i][..i].iter().map(|x| x * x).sum::<f64>();
        factor[i][i] = if remainder[i] > least { remainder[i].sqrt() } else { 0.0 };
    }
    (factor, remainder)
}

/// Solves a system with its factor; omitted rows stay 0.
fn solve(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let order = right.len();
    let divided = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
    let mut forward = vec![0.0; order];
    for i in 0..order {
        let before: f64 = (0..i).map(|k| factor[i][k] * forward[k]).sum();
        forward[i] = divided(right[i] - before, factor[i][i]);
    }
    let mut solved = vec![0.0; order];
    for i in (0..order).rev() {
        let after: f64 = (i + 1..order).map(|k| factor[k][i] * solved[k]).sum();
        solved[i] = divided(forward[i] - after, factor[i][i]);
    }
    solved
}
