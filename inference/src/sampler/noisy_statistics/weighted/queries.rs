//! The queries of a weighted regression, and the numbers in their answers.

use super::count_law::CountTable;
use super::learnt_frame::LearntFrame;
use super::plan::Facts;
use super::setting::PLAIN_TRACE;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::scores::{plain, triangle};
use crate::sampler::target::Target;
use conclave_common::model::Influence;
use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::hold::DIAGONAL;
use conclave_privacy::pass::{Frame, GRADIENT_SCALE};

/// A point and the limits of influence there.
#[derive(Debug, Clone)]
pub(super) struct QueryPoint {
    /// theta
    pub(super) theta: Vec<f64>,
    /// The frame, c and R, as a query states them.
    influence: Vec<f64>,
    /// The largest magnitude of a record's residual.
    limit: f64,
    trace: f64,
}

impl QueryPoint {
    pub(super) fn new(theta: Vec<f64>, frame: &LearntFrame, (clip, trace): (f64, f64)) -> Self {
        let (dimension, matrix) = (theta.len(), frame.matrix());
        let order = matrix.order();
        let entry = |at: usize| {
            let (i, j) = (at / dimension, at % dimension);
            if i < order && j < order { plain(matrix[(i, j)]) } else { 0.0 }
        };
        let rows = (0..dimension * dimension).map(entry);
        let influence = rows.chain(std::iter::repeat_n(0.0, dimension)).chain([clip, trace]).collect();
        Self { theta, influence, limit: clip, trace }
    }

    /// Adds the table of a count's expectations.
    pub(super) fn with_table(mut self, table: Option<CountTable>) -> Self {
        if let Some(table) = table {
            self.limit = table.limit;
            self.influence.extend(table.numbers);
        }
        self
    }

    /// Returns the point of queries about the family's own parameter alone, whose slope has this clip and this table.
    pub(super) fn of_own(theta: Vec<f64>, clip: f64, table: &CountTable) -> Self {
        let mut influence = vec![0.0; Frame::length(theta.len())];
        influence[theta.len() * theta.len() - 1] = 1.0;
        influence.extend([clip, PLAIN_TRACE]);
        Self { theta, influence, limit: clip, trace: PLAIN_TRACE }.with_table(Some(table.clone()))
    }

    /// Returns the point of a table of information about the linear predictor, of a job with an intercept.
    pub(super) fn of_intercept(theta: Vec<f64>, clip: f64, table: CountTable) -> Self {
        let mut influence = vec![0.0; Frame::length(theta.len())];
        influence[0] = 1.0;
        influence.extend([clip, PLAIN_TRACE]);
        Self { theta, influence, limit: clip, trace: PLAIN_TRACE }.with_table(Some(table))
    }

    /// Asks for the sum of kappa of the own parameter: one number.
    pub(super) fn own_information(&self, of: (&Target, &mut Allotment), share: f64) -> Result<Query, SamplerError> {
        self.ask(of, QueryKind::Curvature { parameters: 1 }, &self.influence, share)
    }

    /// Reads the score of the own parameter, and the sd of its noise.
    pub(super) fn read_own(&self, facts: &Facts, noise: NoiseScale, totals: &[i128]) -> (f64, f64) {
        let (sums, sd) = read_vector(facts, noise, totals);
        (self.limit * sums.last().copied().unwrap_or(0.0), self.limit * sd)
    }

    fn ask(
        &self,
        (target, budget): (&Target, &mut Allotment),
        kind: QueryKind,
        to: &[f64],
        share: f64,
    ) -> Result<Query, SamplerError> {
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&self.theta, to), share)?;
        Ok(Query { chain: 0, kind, from: self.theta.clone(), to: to.to_vec(), noise })
    }

    /// Asks for the score.
    pub(super) fn score(&self, of: (&Target, &mut Allotment), share: f64) -> Result<Query, SamplerError> {
        self.ask(of, QueryKind::Gradient { parameters: self.theta.len() as u32 }, &self.influence, share)
    }

    /// Asks for the information half way to an answer, by the coefficients of that point.
    pub(super) fn information_half_way(
        &self,
        of: (&Target, &mut Allotment),
        point: &[f64],
        share: f64,
    ) -> Result<Query, SamplerError> {
        self.ask(of, QueryKind::Curvature { parameters: self.theta.len() as u32 }, &self.with_point(point), share)
    }

    /// Asks for the score's variance under the model, half way to an answer: one number.
    pub(super) fn variance_half_way(
        &self,
        of: (&Target, &mut Allotment),
        point: &[f64],
        share: f64,
    ) -> Result<Query, SamplerError> {
        self.ask(of, QueryKind::Curvature { parameters: 1 }, &self.with_point(point), share)
    }

    fn with_point(&self, point: &[f64]) -> Vec<f64> {
        // The own parameter, if there is one, stays where it is.
        let own = &self.theta[point.len()..];
        self.influence.iter().chain(point).chain(own).copied().map(plain).collect()
    }

    /// Asks for the information.
    pub(super) fn information(&self, of: (&Target, &mut Allotment), share: f64) -> Result<Query, SamplerError> {
        self.ask(of, QueryKind::Curvature { parameters: self.theta.len() as u32 }, &self.influence, share)
    }

    /// Asks for the numbers of records by their standardised residual.
    pub(super) fn residuals(&self, of: (&Target, &mut Allotment), edges: &[f64], share: f64) -> Result<Query, SamplerError> {
        self.ask(of, cells(edges), edges, share)
    }

    /// Asks for the numbers of records by the squared length of their image.
    pub(super) fn lengths(&self, of: (&Target, &mut Allotment), edges: &[f64], share: f64) -> Result<Query, SamplerError> {
        self.ask(of, cells(edges), &[&self.influence, edges].concat(), share)
    }

    /// Asks, at a point whose last parameter is a sigma, for the sum of `min(e²/sigma², 2) - 1` over residuals `e`.
    ///
    /// It is the slope along log sigma, which a record's greatest contribution limits. An unusable record adds 0.
    pub(super) fn squares((target, budget): (&Target, &mut Allotment), theta: &[f64], share: f64) -> Result<Query, SamplerError> {
        let dimension = theta.len();
        let mut frame = vec![0.0; Frame::length(dimension)];
        frame[dimension * dimension - 1] = 1.0;
        let kind = QueryKind::Gradient { parameters: dimension as u32 };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (theta, &frame), share)?;
        Ok(Query { chain: 0, kind, from: theta.to_vec(), to: frame, noise })
    }

    /// Reads a score from the totals over the parties: its components, and the sd of their noise.
    pub(super) fn read_score(&self, facts: &Facts, noise: NoiseScale, totals: &[i128]) -> (Vec<f64>, f64) {
        let (sums, sd) = read_vector(facts, noise, totals);
        (sums.into_iter().take(facts.order).map(|sum| self.limit * sum).collect(), self.limit * sd)
    }

    /// Returns the unit of an information's entries, at the score's point or half way.
    fn unit(&self, half_way: bool) -> f64 {
        let shortened = Influence::shortened(self.theta.len());
        self.trace * if half_way { Influence::MOST_HALF_WAY } else { 1.0 } / (shortened * shortened)
    }

    /// Reads a score's variance half way to an answer, and the sd of its noise.
    pub(super) fn read_variance(&self, facts: &Facts, noise: NoiseScale, totals: &[i128]) -> (f64, f64) {
        let unit = self.unit(true);
        (triangle(1, totals, |_| unit)[(0, 0)], unit * facts.parties.sqrt() * noise.sd() / DIAGONAL)
    }

    /// Reads an information matrix: its entries, and the sd of the noise of those off the diagonal.
    pub(super) fn read_information(&self, facts: &Facts, half_way: bool, noise: NoiseScale, totals: &[i128]) -> (Matrix, f64) {
        let scale = self.unit(half_way);
        let all = triangle(self.theta.len(), totals, |_| scale);
        let among = Matrix::from_fn(facts.order, |i, j| all[(i, j)]);
        (among, scale * facts.parties.sqrt() * noise.sd())
    }
}

fn cells(edges: &[f64]) -> QueryKind {
    QueryKind::Table { cells: edges.len() as u32 + 2 }
}

/// Reads a vector in units of a record's greatest contribution: its components, and the sd of their noise.
pub(super) fn read_vector(facts: &Facts, noise: NoiseScale, totals: &[i128]) -> (Vec<f64>, f64) {
    let sums = totals.iter().map(|total| *total as f64 / GRADIENT_SCALE).collect();
    (sums, facts.parties.sqrt() * noise.units() as f64 / GRADIENT_SCALE)
}

/// Counts of records by cell, and beside them of unusable records.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    pub(super) cells: Vec<f64>,
    pub(super) unusable: f64,
    /// Sd of a count's noise.
    pub(super) sd: f64,
}

/// Reads counts.
pub(super) fn read_counts(facts: &Facts, kind: QueryKind, noise: NoiseScale, totals: &[i128]) -> Counts {
    let mut cells: Vec<f64> = totals.iter().map(|total| *total as f64 / QueryKind::COUNT_UNIT as f64).collect();
    let unusable = cells.pop().unwrap_or(0.0);
    Counts { cells, unusable, sd: facts.parties.sqrt() * kind.noise_sd(noise) }
}
