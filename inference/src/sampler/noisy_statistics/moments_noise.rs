//! The entries of a released matrix of second moments that share noise, and the effect of that noise on residuals.
//!
//! Every released entry has its own noise: variance `sd²` off the diagonal, `2 sd²` on it. Constant entries have none, and
//! entries that are functions of others have theirs: a ±1 column's square is the count, an indicator's square its sum. With `E`
//! the matrix of errors and vectors `v`, `w`, inference needs `Cov(E v, E w)` only. With all entries released it is
//! `sd² (w v' + v'w I)`.

use super::cell_noise::CellNoise;
use crate::sampler::matrix::Matrix;

/// An entry without its own noise. Rows and columns may be in either order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tie {
    /// Known exactly.
    Known { at: (usize, usize) },
    /// Equal to another entry.
    Same { at: (usize, usize), source: (usize, usize) },
}

/// One noise variable of the release.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    /// Its variance in units of `sd²`.
    variance: f64,
    /// Entries that contain it, with row at most column.
    entries: Vec<(usize, usize)>,
}

/// The noise of a matrix of second moments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MomentsNoise {
    order: usize,
    /// Noise sd of an off-diagonal entry, summed over the parties.
    sd: f64,
    sources: Vec<Source>,
    /// The noise if the moments are released by combinations of levels; there are no sources then.
    cells: Option<CellNoise>,
}

fn sorted((a, b): (usize, usize)) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl MomentsNoise {
    /// Builds the noise of a matrix with `order` rows whose off-diagonal entries have noise of sd `sd`, except for the tied
    /// entries. Chains of ties are followed to their end.
    pub(crate) fn new(order: usize, sd: f64, ties: &[Tie]) -> Self {
        let tie_of = |entry: (usize, usize)| {
            let is = |tie: &&Tie| matches!(**tie, Tie::Known { at } | Tie::Same { at, .. } if sorted(at) == entry);
            ties.iter().find(is)
        };
        let mut sources: Vec<Source> = Vec::new();
        for entry in (0..order).flat_map(|b| (0..=b).map(move |a| (a, b))) {
            let mut root = Some(entry);
            // At most as many links as there are ties; a cycle of ties is treated as a constant.
            for link in 0..=ties.len() {
                root = match root.and_then(tie_of) {
                    None => break,
                    Some(Tie::Known { .. }) => None,
                    Some(Tie::Same { source, .. }) => Some(sorted(*source)).filter(|_| link < ties.len()),
                };
            }
            let Some(root) = root else { continue };
            let variance = if root.0 == root.1 { 2.0 } else { 1.0 };
            match sources.iter_mut().find(|source| source.entries.contains(&root)) {
                Some(source) => source.entries.push(entry),
                None if root == entry => sources.push(Source { variance, entries: vec![entry] }),
                None => sources.push(Source { variance, entries: vec![root, entry] }),
            }
        }
        sources.iter_mut().for_each(|source| {
            source.entries.sort_unstable();
            source.entries.dedup();
        });
        Self { order, sd, sources, cells: None }
    }

    /// Creates the noise of a matrix with `order` rows that is released by combinations of levels.
    pub(crate) fn of_cells(order: usize, sd: f64, cells: CellNoise) -> Self {
        Self { order, sd, sources: Vec::new(), cells: Some(cells) }
    }

    /// Returns the noise sd of an off-diagonal entry of the released matrix.
    pub(crate) fn sd(&self) -> f64 {
        self.sd
    }

    /// Returns the noise sd beside moments `among` of the predictors that are scaled to the identity, if combinations are released
    /// and the moments are definite.
    pub(crate) fn beside_identity(&self, among: &Matrix) -> Option<f64> {
        Some(self.sd * self.cells.as_ref()?.beside_identity(&among.cholesky()?.inverse()))
    }

    /// Returns the same ties with noise of another sd.
    pub(crate) fn with_sd(mut self, sd: f64) -> Self {
        self.sd = sd;
        self
    }

    /// Returns the noise of the rows and columns `kept` of the matrix, in that order. Entries that shared noise continue to share
    /// it, even if the entry that it was released with is left out.
    pub(crate) fn restricted(&self, kept: &[usize]) -> Self {
        let place = |row: usize| kept.iter().position(|k| *k == row);
        let sources = self.sources.iter().filter_map(|source| {
            let entries = source.entries.iter().filter_map(|(a, b)| Some(sorted((place(*a)?, place(*b)?))));
            let mut entries: Vec<_> = entries.collect();
            entries.sort_unstable();
            (!entries.is_empty()).then_some(Source { variance: source.variance, entries })
        });
        let cells = self.cells.as_ref().map(|cells| cells.restricted(kept));
        Self { order: kept.len(), sd: self.sd, sources: sources.collect(), cells }
    }

    /// Returns true if both matrices have the same ties.
    pub(crate) fn same_ties(&self, other: &Self) -> bool {
        self.order == other.order && self.sources == other.sources && self.cells == other.cells
    }

    /// Returns `Cov(E v, E w)`.
    pub(crate) fn covariance(&self, v: &[f64], w: &[f64]) -> Matrix {
        if let Some(cells) = &self.cells {
            return cells.covariance(v, w).scaled(self.sd * self.sd);
        }
        let mut sum = Matrix::zeros(self.order);
        for source in &self.sources {
            let variance = self.sd * self.sd * source.variance;
            for &left in &source.entries {
                for &right in &source.entries {
                    for (i, from_v) in parts(left, v) {
                        for (j, from_w) in parts(right, w) {
                            sum[(i, j)] += variance * from_v * from_w;
                        }
                    }
                }
            }
        }
        sum
    }

    /// Returns `Cov(E v, E_ab)` for one entry; zeros if it is exact. Where combinations are released, for entries among the predictors.
    pub(crate) fn covariance_with_entry(&self, v: &[f64], entry: (usize, usize)) -> Vec<f64> {
        if let Some(cells) = &self.cells {
            return cells.with_entry(v, entry).0.into_iter().map(|shared| self.sd * self.sd * shared).collect();
        }
        let mut sum = vec![0.0; self.order];
        if let Some(source) = self.source(entry) {
            let variance = self.sd * self.sd * source.variance;
            for &own in &source.entries {
                parts(own, v).for_each(|(i, from_v)| sum[i] += variance * from_v);
            }
        }
        sum
    }

    /// Returns the noise variance of one entry. Where combinations are released, of one among the predictors.
    pub(crate) fn variance(&self, entry: (usize, usize)) -> f64 {
        if let Some(cells) = &self.cells {
            return self.sd * self.sd * cells.with_entry(&vec![0.0; self.order], entry).1;
        }
        self.source(entry).map_or(0.0, |source| self.sd * self.sd * source.variance)
    }

    fn source(&self, entry: (usize, usize)) -> Option<&Source> {
        self.sources.iter().find(|source| source.entries.contains(&sorted(entry)))
    }
}

/// Yields the rows of `E v` that a unit error of an entry and of its mirror image changes, and the amounts.
fn parts((a, b): (usize, usize), v: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let mirrored = (a != b).then(|| (b, v[a]));
    std::iter::once((a, v[b])).chain(mirrored)
}

#[cfg(test)]
#[path = "tests/moments_noise.rs"]
mod tests;
