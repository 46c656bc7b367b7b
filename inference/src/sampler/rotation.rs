//! Turns the chains' moves into the posterior's principal axes, from the chains' own draws in the warm-up.
//!
//! Draws are functions of released values, so their use is free of charge. Moves along principal axes are worthwhile if
//! coordinates are correlated: along its widest direction a posterior is wider than any coordinate given the others.

use super::{Matrix, ProposalScale};
use crate::diagnostics;
use conclave_common::job::{ProposalKind, Warmup};

/// First look in a warm-up of unknown length, in sweeps; each later look comes after half as many more.
const FIRST_LOOK: u64 = 30;
/// Effective draws below which correlations are ignored.
const LEAST_ESS: f64 = 2.0;
/// Smallest plausible eigenvalue of a correlation matrix; smaller ones are raised to it.
const LEAST_EIGENVALUE: f64 = 0.005;

/// Collects the coordinates of all chains, one set per sweep.
pub(super) struct Rotation {
    kind: ProposalKind,
    rule: Warmup,
    /// `history[coordinate][chain][sweep]`.
    history: Vec<Vec<Vec<f64>>>,
    next_look: u64,
}

impl Rotation {
    pub(super) fn new(kind: ProposalKind, rule: Warmup, dimension: usize, chains: usize) -> Self {
        Self { kind, rule, history: vec![vec![Vec::new(); chains]; dimension], next_look: FIRST_LOOK }
    }

    /// Adds the chains' coordinates at the end of a sweep; returns a new scale when it is due. `sd` holds each coordinate's sd
    /// given the others, from the search.
    pub(super) fn sweep<'a>(
        &mut self,
        chains: impl Iterator<Item = &'a [f64]>,
        sweeps: u64,
        sd: &[f64],
    ) -> Option<ProposalScale> {
        for (c, u) in chains.enumerate() {
            self.history.iter_mut().zip(u).for_each(|(coordinate, x)| coordinate[c].push(*x));
        }
        if !self.due(sweeps) {
            return None;
        }
        self.scale(sd)
    }

    fn due(&mut self, sweeps: u64) -> bool {
        match self.rule {
            Warmup::Sweeps(n) => [n / 4, n / 2, n - n / 4, n].contains(&sweeps),
            Warmup::UntilRhat { .. } => {
                let due = sweeps >= self.next_look;
                if due {
                    self.next_look = sweeps + sweeps / 2;
                }
                due
            }
        }
    }

    /// Returns the principal axes of a posterior with the partial correlations of the draws' later half and these sds given the
    /// others.
    ///
    /// Each correlation is shrunk towards 0 by one standard error of its Fisher transform, so an uncertain direction is not
    /// longer than a coordinate's own move.
    pub(super) fn scale(&self, sd: &[f64]) -> Option<ProposalScale> {
        let d = self.history.len();
        let later: Vec<Vec<&[f64]>> =
            self.history.iter().map(|chains| chains.iter().map(|c| &c[c.len() / 2..]).collect()).collect();
        let summaries: Vec<diagnostics::Summary> = later.iter().map(|chains| diagnostics::summarise(chains)).collect();
        let sound = |s: &diagnostics::Summary| s.sd.is_finite() && s.sd > 0.0 && known(s.ess_bulk) >= LEAST_ESS;
        if sd.len() != d || !summaries.iter().all(sound) {
            return None;
        }
        let ess = summaries.iter().map(|s| known(s.ess_bulk)).fold(f64::INFINITY, f64::min);
        let correlation = |i: usize, j: usize| {
            let pairs = later[i].iter().zip(&later[j]).flat_map(|(a, b)| a.iter().zip(*b));
            let products = pairs.map(|(x, y)| (x - summaries[i].mean) * (y - summaries[j].mean));
            let count: usize = later[i].iter().map(|chain| chain.len()).sum();
            let r = products.sum::<f64>() / count as f64 / (summaries[i].sd * summaries[j].sd);
            shrunk(r, ess)
        };
        let pairs = axes(&Matrix::from_fn(d, |i, j| if i == j { 1.0 } else { correlation(i.min(j), i.max(j)) }));
        let precision = Matrix::from_fn(d, |i, j| pairs.iter().map(|(value, v)| v[i] * v[j] / value).sum());
        let vectors = axes(&Matrix::from_fn(d, |i, j| precision[(i, j)] / (precision[(i, i)] * precision[(j, j)]).sqrt()))
            .into_iter()
            .map(|(value, v)| v.iter().zip(sd).map(|(v, sd)| v * sd / value.sqrt()).collect())
            .collect();
        Some(ProposalScale::along(self.kind, vectors))
    }
}

/// Replaces an undefined number of effective draws (NaN) by 0.
fn known(ess: f64) -> f64 {
    if ess.is_nan() { 0.0 } else { ess }
}

/// Returns a matrix's eigenvalues, none too small, and unit eigenvectors.
fn axes(matrix: &Matrix) -> Vec<(f64, Vec<f64>)> {
    matrix.eigen().into_iter().map(|(value, v)| (value.max(LEAST_EIGENVALUE), v)).collect()
}

/// Returns a correlation minus one standard error of its Fisher transform, by `libm` like everything that a replay computes.
fn shrunk(r: f64, ess: f64) -> f64 {
    let z = libm::atanh(r.abs().min(0.999));
    libm::tanh((z - ess.sqrt().recip()).max(0.0)).copysign(r)
}

#[cfg(test)]
#[path = "tests/rotation.rs"]
mod tests;
