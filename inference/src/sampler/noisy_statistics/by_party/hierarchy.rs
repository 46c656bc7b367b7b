//! The hierarchy over parties, given each party's factor.
//!
//! Source: design of parameters by party, section 3.3, derived again: with `T = diag tau⁻²` and `Q_i = A_i,αα + T`, integrating
//! `alpha_i` out of party i's factor times `N(alpha_i; mu, tau²)` leaves a Gaussian in `(beta, mu)` with the blocks
//! `A_ββ - A_βα Q⁻¹ A_αβ`, `A_βα Q⁻¹ T` and `T Q⁻¹ A_αα`, the pull `(h_β - A_βα Q⁻¹ h_α, T Q⁻¹ h_α)`, and the constant
//! `½ h_α'Q⁻¹h_α - ½ log|Q| + ½ log|T|`. The block of `mu` is written so that nothing cancels for large tau.

use super::factor::Factor;
use crate::sampler::matrix::{Cholesky, Matrix, dot};
use crate::sampler::noisy_statistics::gaussian::{GaussianPrior, factor};
use crate::sampler::space::Space;
use conclave_common::job::SiteParameter;
use conclave_common::parameter::Prior;

/// The hierarchy of a job: which coordinates vary by party, and the priors.
#[derive(Debug, Clone)]
pub(super) struct Hierarchy {
    /// Coordinates that vary by party, and those that all parties share.
    varying: Vec<usize>,
    shared: Vec<usize>,
    /// Stand-in for the prior of the means and the shared coordinates, in the model's order.
    prior: GaussianPrior,
    /// Priors of the sds.
    sds: Vec<Prior>,
}

/// The posterior given the sds.
pub(super) struct Given {
    /// Log density of the logarithms of the sds, up to a constant.
    pub(super) log_density: f64,
    /// Mean of `(beta, mu)`, in the model's order.
    pub(super) mean: Vec<f64>,
    /// Factor of its precision matrix.
    pub(super) precision: Cholesky,
}

/// A party's own values given `(beta, mu)`: `alpha = Q⁻¹ h_α + R (beta, mu) + N(0, Q⁻¹)`.
pub(super) struct Own {
    /// Factor of Q.
    pub(super) precision: Cholesky,
    /// `Q⁻¹ h_α`.
    constant: Vec<f64>,
    /// R, a row for each varying coordinate, over the model's order.
    rows: Vec<Vec<f64>>,
}

impl Own {
    /// Returns the mean of the party's own values given `(beta, mu)`.
    pub(super) fn mean(&self, common: &[f64]) -> Vec<f64> {
        self.constant.iter().zip(&self.rows).map(|(constant, row)| constant + dot(row, common)).collect()
    }

    /// Returns the variances of the party's own values if `(beta, mu)` has this covariance.
    pub(super) fn variances(&self, common: &Matrix) -> Vec<f64> {
        let own = self.precision.inverse().diagonal_entries();
        own.into_iter().zip(&self.rows).map(|(own, row)| own + common.quadratic(row)).collect()
    }
}

impl Hierarchy {
    pub(super) fn new(space: &Space, varying: &[SiteParameter]) -> Self {
        let (varying, sds): (Vec<usize>, _) = varying.iter().map(|site| (site.index, site.sd)).unzip();
        Self::of(varying, GaussianPrior::of(space), sds)
    }

    /// Returns the hierarchy with this prior of the means and the shared coordinates.
    pub(super) fn of(varying: Vec<usize>, prior: GaussianPrior, sds: Vec<Prior>) -> Self {
        let shared = (0..prior.mean.len()).filter(|j| !varying.contains(j)).collect();
        Self { varying, shared, prior, sds }
    }

    /// Returns the coordinates that vary by party.
    pub(super) fn varying(&self) -> &[usize] {
        &self.varying
    }

    /// Returns the stand-in for the prior of the means and the shared coordinates.
    pub(super) fn prior(&self) -> &GaussianPrior {
        &self.prior
    }

    /// Returns the sds at which a search starts: the centres of their priors.
    pub(super) fn central_sds(&self) -> Vec<f64> {
        self.sds.iter().map(|prior| prior.location().max(f64::MIN_POSITIVE)).collect()
    }

    /// Returns the posterior of `(beta, mu)` given these sds, and the sds' own density.
    pub(super) fn given<'a>(&self, factors: impl Iterator<Item = &'a Factor>, sds: &[f64]) -> Given {
        let tightness = self.tightness(sds);
        let (mut precision, mut pull) = (self.prior.matrix(), self.prior.pull());
        let mut log_density = self.log_prior(sds);
        for part in factors {
            log_density += self.add(part, &tightness, &mut precision, &mut pull);
        }
        let precision = factor(&precision.symmetrised());
        let mean = precision.solve(&pull);
        log_density += 0.5 * dot(&pull, &mean) - 0.5 * precision.log_determinant();
        Given { log_density, mean, precision }
    }

    /// Returns a party's own values given `(beta, mu)` and these sds.
    pub(super) fn own(&self, part: &Factor, sds: &[f64]) -> Own {
        let tightness = self.tightness(sds);
        let precision = self.q(part, &tightness);
        let constant = precision.solve(&self.varying_of(&part.pull));
        let columns: Vec<Vec<f64>> = (0..part.pull.len())
            .map(|j| match self.varying.iter().position(|at| *at == j) {
                Some(a) => precision.solve(&unit(self.varying.len(), a, tightness[a])),
                None => precision.solve(&self.varying.iter().map(|at| -part.precision[(*at, j)]).collect::<Vec<_>>()),
            })
            .collect();
        let rows = (0..self.varying.len()).map(|a| columns.iter().map(|column| column[a]).collect()).collect();
        Own { precision, constant, rows }
    }

    /// Returns what the other parties' factors and the hierarchy say of a party's parameters beforehand, given these sds.
    pub(super) fn beside<'a>(&self, others: impl Iterator<Item = &'a Factor>, sds: &[f64]) -> GaussianPrior {
        let given = self.given(others, sds);
        let mut covariance = given.precision.inverse();
        for (at, sd) in self.varying.iter().zip(sds) {
            covariance[(*at, *at)] += sd * sd;
        }
        GaussianPrior::joint(given.mean, factor(&covariance.symmetrised()).inverse().symmetrised())
    }

    /// Adds a party's factor, its own values integrated out; returns the constant's logarithm.
    fn add(&self, part: &Factor, tightness: &[f64], precision: &mut Matrix, pull: &mut [f64]) -> f64 {
        let (a, h) = (&part.precision, self.varying_of(&part.pull));
        let q = self.q(part, tightness);
        let of_pull = q.solve(&h);
        let column = |j: usize| -> Vec<f64> { self.varying.iter().map(|at| a[(*at, j)]).collect() };
        for i in &self.shared {
            let through = q.solve(&column(*i));
            for j in &self.shared {
                precision[(*i, *j)] += a[(*i, *j)] - dot(&through, &column(*j));
            }
            for ((at, t), x) in self.varying.iter().zip(tightness).zip(&through) {
                precision[(*i, *at)] += t * x;
                precision[(*at, *i)] += t * x;
            }
            pull[*i] += part.pull[*i] - dot(&through, &h);
        }
        for j in &self.varying {
            let through = q.solve(&column(*j));
            for ((at, t), x) in self.varying.iter().zip(tightness).zip(&through) {
                precision[(*at, *j)] += t * x;
            }
        }
        for ((at, t), x) in self.varying.iter().zip(tightness).zip(&of_pull) {
            pull[*at] += t * x;
        }
        let logs: f64 = tightness.iter().map(|t| libm::log(*t)).sum();
        0.5 * dot(&h, &of_pull) - 0.5 * q.log_determinant() + 0.5 * logs
    }

    /// Returns the factor of `Q = A_αα + T`.
    fn q(&self, part: &Factor, tightness: &[f64]) -> Cholesky {
        let (varying, a) = (&self.varying, &part.precision);
        factor(&Matrix::from_fn(varying.len(), |i, j| a[(varying[i], varying[j])] + if i == j { tightness[i] } else { 0.0 }))
    }

    fn varying_of(&self, values: &[f64]) -> Vec<f64> {
        self.varying.iter().map(|at| values[*at]).collect()
    }

    /// Returns `1 / tau²`.
    fn tightness(&self, sds: &[f64]) -> Vec<f64> {
        /// Least sd: below it a party's own value equals the mean in every digit.
        const LEAST: f64 = 1e-8;
        sds.iter().map(|sd| sd.max(LEAST).powi(-2)).collect()
    }

    /// Returns the log prior of the logarithms of the sds: without the term of the change of variable, the posterior would be improper
    /// as an sd falls to 0.
    fn log_prior(&self, sds: &[f64]) -> f64 {
        let one = |(prior, sd): (&Prior, &f64)| {
            let (least, most) = prior.support();
            if *sd < least || *sd > most { f64::NEG_INFINITY } else { prior.log_density(*sd) + libm::log(*sd) }
        };
        self.sds.iter().zip(sds).map(one).sum()
    }
}

/// Returns a vector with one entry that is not 0.
fn unit(length: usize, at: usize, value: f64) -> Vec<f64> {
    (0..length).map(|i| if i == at { value } else { 0.0 }).collect()
}
