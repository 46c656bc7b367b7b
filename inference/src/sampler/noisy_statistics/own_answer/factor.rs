//! The owner's likelihood, and its quadratic at a point.

use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::target::Target;
use conclave_privacy::pass::ModelData;

/// Distance of the differences, in posterior sds. A log likelihood of a million records has a rounding error of about 1e-7, which this
/// distance keeps below 1e-5 in a curvature; terms beyond a quadratic are below that from some hundred records on.
const DISTANCE: f64 = 0.1;

/// The owner's log likelihood, without noise, in coded coordinates.
#[derive(Clone, Copy)]
pub(super) struct OwnFactor<'a> {
    pub(super) target: &'a Target,
    pub(super) coding: &'a Coding,
    pub(super) data: &'a ModelData,
}

/// A quadratic approximation of a log likelihood at a point.
#[derive(Debug, Clone)]
pub(super) struct Quadratic {
    pub(super) at: Vec<f64>,
    /// g, the slope there.
    pub(super) slope: Vec<f64>,
    /// H, minus the second derivative there. It need not be positive definite.
    pub(super) information: Matrix,
}

impl OwnFactor<'_> {
    /// Returns the log likelihood at a coded point, up to a constant.
    pub(super) fn log(&self, at: &[f64]) -> f64 {
        self.log_of(&self.target.space.theta(&self.coding.plain(at)))
    }

    /// Returns the same at values of the parameters.
    pub(super) fn log_of(&self, theta: &[f64]) -> f64 {
        self.target.model.log_likelihood(self.data, theta)
    }

    /// Returns the quadratic at a point, by central differences along the axes of a covariance.
    pub(super) fn quadratic(&self, at: &[f64], covariance: &Matrix) -> Quadratic {
        let (order, root) = (at.len(), factor(covariance));
        let axis = |k: usize| (0..order).map(|i| DISTANCE * root.lower()[(i, k)]).collect::<Vec<f64>>();
        let axes: Vec<Vec<f64>> = (0..order).map(axis).collect();
        let value = |steps: &[(usize, f64)]| {
            let moved = |i: usize| at[i] + steps.iter().map(|(k, sign)| sign * axes[*k][i]).sum::<f64>();
            self.log(&(0..order).map(moved).collect::<Vec<f64>>())
        };
        let middle = value(&[]);
        let (up, down): (Vec<f64>, Vec<f64>) = (0..order).map(|k| (value(&[(k, 1.0)]), value(&[(k, -1.0)]))).unzip();
        let slope: Vec<f64> = (0..order).map(|k| 0.5 * (up[k] - down[k]) / DISTANCE).collect();
        let mut information = Matrix::zeros(order);
        for i in 0..order {
            information[(i, i)] = (2.0 * middle - up[i] - down[i]) / (DISTANCE * DISTANCE);
            for j in 0..i {
                let both = value(&[(i, 1.0), (j, 1.0)]) + value(&[(i, -1.0), (j, -1.0)]);
                let mixed = 0.5 * (up[i] + down[i] + up[j] + down[j] - 2.0 * middle - both) / (DISTANCE * DISTANCE);
                (information[(i, j)], information[(j, i)]) = (mixed, mixed);
            }
        }
        // From the axes back to the coordinates: with theta = at + L z, g = L'^-1 g_z and H = L'^-1 H_z L^-1.
        let unit = |k: usize| (0..order).map(|i| f64::from(u8::from(i == k))).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..order).map(|k| root.solve_lower(&unit(k))).collect();
        let inverse = Matrix::from_fn(order, |i, j| columns[j][i]);
        let back = inverse.transposed();
        Quadratic {
            at: at.to_vec(),
            slope: back.apply(&slope),
            information: back.times(&information).times(&inverse).symmetrised(),
        }
    }
}

impl Quadratic {
    /// Returns the quadratic's value, 0 at its point.
    pub(super) fn log(&self, at: &[f64]) -> f64 {
        let step: Vec<f64> = at.iter().zip(&self.at).map(|(to, from)| to - from).collect();
        dot(&self.slope, &step) - 0.5 * self.information.quadratic(&step)
    }
}
