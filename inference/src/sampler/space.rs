//! The space of the chains: unconstrained values, their box, and the prior's density there.

use conclave_common::job::JobSpec;
use conclave_common::parameter::{Constraint, Interval, Transform};

/// Ratio of the starting values' variance to the posterior's.
pub(super) const START_VARIANCE: f64 = 2.0;
/// Number of starting values that may fall outside the box before the centre is used.
pub(super) const START_TRIES: usize = 100;

/// The unconstrained space of a job's parameters.
pub(super) struct Space {
    transform: Transform,
    /// One interval per coordinate; a simplex's box is checked in theta.
    pub(super) boxes: Vec<Interval>,
    /// Starting point of a search for the mode, the prior's width around it, and the prior's precision, per coordinate.
    pub(super) location: Vec<f64>,
    pub(super) scale: Vec<f64>,
    pub(super) precision: Vec<f64>,
    /// Parameter of each coordinate.
    pub(super) parameters: Vec<usize>,
}

impl Space {
    pub(super) fn new(spec: &JobSpec) -> Self {
        let transform = spec.transform();
        let parameters = transform.parameters();
        let constraints = transform.constraints();
        let boxes = transform.unconstrained_box(&spec.support);
        let prior = |at: usize| &spec.priors[parameters[at]];
        let dimension = parameters.len();
        let location = transform
            .unconstrain(&prior_centre(spec))
            .into_iter()
            .zip(&boxes)
            .map(|(u, box_)| u.clamp(box_.min, box_.max))
            .collect();
        let scale = (0..dimension).map(|j| prior(j).scale(constraints[j])).collect();
        let precision = (0..dimension).map(|j| prior(j).precision(constraints[j])).collect();
        Self { transform, boxes, location, scale, precision, parameters }
    }

    pub(super) fn dimension(&self) -> usize {
        self.parameters.len()
    }

    pub(super) fn theta(&self, u: &[f64]) -> Vec<f64> {
        self.transform.constrain(u)
    }

    /// Returns theta of these coordinates, moved into the parameter box if rounding or a simplex's edge put it outside.
    pub(super) fn theta_inside(&self, spec: &JobSpec, u: &[f64]) -> Vec<f64> {
        self.theta(u).into_iter().zip(&spec.support).map(|(x, box_)| x.clamp(box_.min, box_.max)).collect()
    }

    pub(super) fn coordinates(&self, theta: &[f64]) -> Vec<f64> {
        self.transform.unconstrain(theta)
    }

    /// Moves `u` within the box by independent normal steps, more widely than a posterior of these sds. The error of `u` widens them,
    /// so that R-hat can reveal a search that ended far away.
    pub(super) fn disperse(&self, u: &mut [f64], (sd, error_sd): (&[f64], &[f64]), mut normal: impl FnMut() -> f64) {
        let widths = sd.iter().zip(error_sd).map(|(s, e)| (START_VARIANCE * s * s + e * e).sqrt());
        for ((x, width), interval) in u.iter_mut().zip(widths).zip(&self.boxes) {
            let inside = |candidate: &f64| interval.contains(*candidate);
            *x = (0..START_TRIES).map(|_| *x + width * normal()).find(inside).unwrap_or(*x);
        }
    }

    /// Returns the log density of the prior of the coordinates, up to a constant.
    pub(super) fn log_prior(&self, spec: &JobSpec, u: &[f64], theta: &[f64]) -> f64 {
        spec.log_prior(theta) + self.transform.log_jacobian(u)
    }
}

/// Returns the centres of the priors, within the box. A Dirichlet component's prior holds its share of the remainder after the
/// components before it.
fn prior_centre(spec: &JobSpec) -> Vec<f64> {
    let mut left = 1.0;
    let mut theta = Vec::with_capacity(spec.priors.len());
    for ((prior, box_), constraint) in spec.priors.iter().zip(&spec.support).zip(spec.model.constraints()) {
        let mut centre = prior.location();
        if let Constraint::Simplex { .. } = constraint {
            let share = centre;
            centre *= left;
            left = if share == 1.0 { 1.0 } else { left * (1.0 - share) };
        }
        theta.push(centre.clamp(box_.min, box_.max));
    }
    theta
}
