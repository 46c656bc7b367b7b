//! Which entries of a released matrix of second moments share noise, and what that noise adds to residuals.
//!
//! Every entry that is released has noise of its own: variance `sd²` off the diagonal, `2 sd²` on it. Entries
//! that are constants have none, and entries that are functions of others (a ±1 column's square is the
//! count, an indicator's square its sum) have theirs. With `E` the matrix of errors and vectors `v`, `w`,
//! everything that inference needs is `Cov(E v, E w)`; with all entries released it is
//! `sd² (w v' + v'w I)`.

use crate::sampler::matrix::Matrix;

/// An entry without noise of its own. Rows and columns in either order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tie {
    /// Known exactly.
    Known { at: (usize, usize) },
    /// The value of another entry.
    Same { at: (usize, usize), source: (usize, usize) },
}

/// One noise number of the release.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    /// Its variance in units of `sd²`.
    variance: f64,
    /// The entries that it is in, row at most column.
    entries: Vec<(usize, usize)>,
}

/// The noise of a matrix of second moments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MomentsNoise {
    order: usize,
    /// Sd of an off-diagonal entry, summed over the parties.
    sd: f64,
    sources: Vec<Source>,
}

fn sorted((a, b): (usize, usize)) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl MomentsNoise {
    /// The noise of a matrix with `order` rows whose off-diagonal entries have noise of sd `sd`, but for the
    /// entries that are tied. A tie to a tied entry is one to what that one is tied to.
    pub(crate) fn new(order: usize, sd: f64, ties: &[Tie]) -> Self {
        let tie_of = |entry: (usize, usize)| {
            let is = |tie: &&Tie| matches!(**tie, Tie::Known { at } | Tie::Same { at, .. } if sorted(at) == entry);
            ties.iter().find(is)
        };
        let mut sources: Vec<Source> = Vec::new();
        for entry in (0..order).flat_map(|b| (0..=b).map(move |a| (a, b))) {
            let mut root = Some(entry);
            // As many links as there are ties at most: a circle of ties would be a constant.
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
        Self { order, sd, sources }
    }

    /// Sd of the noise of an off-diagonal entry.
    pub(crate) fn sd(&self) -> f64 {
        self.sd
    }

    /// The same ties with noise of another sd.
    pub(crate) fn with_sd(mut self, sd: f64) -> Self {
        self.sd = sd;
        self
    }

    /// The noise of the rows and columns `kept` of the matrix, in that order. What shared noise goes on sharing it, also
    /// where the entry that it was released with is left out.
    pub(crate) fn restricted(&self, kept: &[usize]) -> Self {
        let place = |row: usize| kept.iter().position(|k| *k == row);
        let sources = self.sources.iter().filter_map(|source| {
            let entries = source.entries.iter().filter_map(|(a, b)| Some(sorted((place(*a)?, place(*b)?))));
            let mut entries: Vec<_> = entries.collect();
            entries.sort_unstable();
            (!entries.is_empty()).then_some(Source { variance: source.variance, entries })
        });
        Self { order: kept.len(), sd: self.sd, sources: sources.collect() }
    }

    /// Whether two matrices have the same ties.
    pub(crate) fn same_ties(&self, other: &Self) -> bool {
        self.order == other.order && self.sources == other.sources
    }

    /// `Cov(E v, E w)`.
    pub(crate) fn covariance(&self, v: &[f64], w: &[f64]) -> Matrix {
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

    /// `Cov(E v, E_ab)` for one entry; zeros where it is exact.
    pub(crate) fn covariance_with_entry(&self, v: &[f64], entry: (usize, usize)) -> Vec<f64> {
        let mut sum = vec![0.0; self.order];
        if let Some(source) = self.source(entry) {
            let variance = self.sd * self.sd * source.variance;
            for &own in &source.entries {
                parts(own, v).for_each(|(i, from_v)| sum[i] += variance * from_v);
            }
        }
        sum
    }

    /// The variance of one entry's noise.
    pub(crate) fn variance(&self, entry: (usize, usize)) -> f64 {
        self.source(entry).map_or(0.0, |source| self.sd * self.sd * source.variance)
    }

    fn source(&self, entry: (usize, usize)) -> Option<&Source> {
        self.sources.iter().find(|source| source.entries.contains(&sorted(entry)))
    }
}

/// What a unit error of an entry (and of its mirror image) adds to `E v`: rows and amounts.
fn parts((a, b): (usize, usize), v: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let mirrored = (a != b).then(|| (b, v[a]));
    std::iter::once((a, v[b])).chain(mirrored)
}

#[cfg(test)]
#[path = "tests/moments_noise.rs"]
mod tests;
