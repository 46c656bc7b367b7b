//! The posterior given released statistics: a function of the unconstrained coordinates that is cheap to evaluate.

use super::space::Space;
use conclave_common::job::JobSpec;
use conclave_common::model::ExponentialFamily;

/// Number of sweeps of one-coordinate searches before Newton's method.
const SWEEPS: u32 = 30;
/// Number of narrowings of an interval in a one-coordinate search: to 1e-10 of it.
const NARROWINGS: u32 = 48;
/// Maximum number of Newton steps.
const NEWTON: u32 = 20;
/// Length of finite differences, in sds of a coordinate given the others.
const DIFFERENCE: f64 = 0.3;
/// Initial half width of a search, in scales of the prior.
const REACH: f64 = 50.0;

/// The surrogate: `n log g(theta) + phi(theta) . S + log prior(theta)`.
pub(super) struct Surrogate<'a> {
    pub spec: &'a JobSpec,
    pub space: &'a Space,
    pub family: &'a dyn ExponentialFamily,
    /// n
    pub records: f64,
    /// S, noisy.
    pub statistics: Vec<f64>,
    /// Variances of S's noise.
    pub variances: Vec<f64>,
}

/// The surrogate's estimate of the posterior.
pub(super) struct Mode {
    /// Mode, in coordinates.
    pub u: Vec<f64>,
    /// Posterior sd of each coordinate given the others.
    pub sd: Vec<f64>,
    /// Standard error of each coordinate of `u`, from the noise of S.
    pub error_sd: Vec<f64>,
}

impl Surrogate<'_> {
    /// Returns the log density at the coordinates `u`.
    fn at(&self, u: &[f64]) -> f64 {
        let theta = &self.space.theta(u);
        if !self.spec.in_support(theta) {
            return f64::NEG_INFINITY;
        }
        let fit: f64 = self.family.natural(theta).iter().zip(&self.statistics).map(|(phi, s)| phi * s).sum();
        let value = self.records * self.family.log_normaliser(theta) + fit + self.space.log_prior(self.spec, u, theta);
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }

    /// Finds the mode and the curvature there. For any released values, the result is inside the box and its widths are positive.
    pub(super) fn mode(&self) -> Mode {
        let mut u = self.start();
        let mut width: Vec<f64> = self.reach();
        for _ in 0..SWEEPS {
            for j in 0..u.len() {
                let before = u[j];
                u[j] = self.search(&u, j, width[j]);
                width[j] = (10.0 * (u[j] - before).abs()).clamp(1e-6 * width[j], width[j]);
            }
        }
        let mut sd = self.widths(&u);
        for _ in 0..NEWTON {
            let Some(step) = self.newton(&u, &sd) else { break };
            let (now, mut factor) = (self.at(&u), 1.0);
            let try_at = |factor: f64| -> Vec<f64> { u.iter().zip(&step).map(|(t, s)| t + factor * s).collect() };
            while factor > 1e-3 && self.at(&try_at(factor)) <= now {
                factor /= 2.0;
            }
            if factor <= 1e-3 {
                break;
            }
            u = try_at(factor);
            sd = self.widths(&u);
        }
        let error_sd = self.errors(&u, &sd);
        Mode { u, sd, error_sd }
    }

    fn start(&self) -> Vec<f64> {
        let start = self.spec.sampler.start.as_ref();
        let u = start.map_or_else(|| self.space.location.clone(), |theta| self.space.coordinates(theta));
        let inside = |(u, s): (&f64, &conclave_common::parameter::Interval)| {
            let edge = 1e-3 * (s.max - s.min);
            u.clamp(s.min + edge, s.max - edge)
        };
        u.iter().zip(&self.space.boxes).map(inside).collect()
    }

    fn reach(&self) -> Vec<f64> {
        let one = |(scale, s): (&f64, &conclave_common::parameter::Interval)| (REACH * scale).min(s.max - s.min);
        self.space.scale.iter().zip(&self.space.boxes).map(one).collect()
    }

    /// Runs a golden-section search along one coordinate, within `width` on either side.
    fn search(&self, u: &[f64], j: usize, width: f64) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let interval = self.space.boxes[j];
        let mut point = u.to_vec();
        let mut value = |x: f64| {
            point[j] = x;
            self.at(&point)
        };
        let (mut low, mut high) = ((u[j] - width).max(interval.min), (u[j] + width).min(interval.max));
        let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_a, mut at_b) = (value(a), value(b));
        for _ in 0..NARROWINGS {
            if at_a >= at_b {
                (high, b, at_b) = (b, a, at_a);
                a = high - GOLDEN * (high - low);
                at_a = value(a);
            } else {
                (low, a, at_a) = (a, b, at_b);
                b = low + GOLDEN * (high - low);
                at_b = value(b);
            }
        }
        let (best, at_best) = if at_a >= at_b { (a, at_a) } else { (b, at_b) };
        if at_best >= value(u[j]) { best } else { u[j] }
    }

    /// Returns the sd of each coordinate given the others, by second differences over a fraction of it.
    fn widths(&self, u: &[f64]) -> Vec<f64> {
        let one = |j: usize| {
            let interval = self.space.boxes[j];
            let most = (interval.max - interval.min) / 4.0;
            let mut h = (1e-3 * self.space.scale[j]).min(most);
            let mut sd = self.space.scale[j].min(most);
            for _ in 0..8 {
                let middle = u[j].clamp(interval.min + h, interval.max - h);
                let value = |x: f64| {
                    let mut point = u.to_vec();
                    point[j] = x;
                    self.at(&point)
                };
                let curvature = -(value(middle + h) - 2.0 * value(middle) + value(middle - h)) / (h * h);
                if curvature.is_finite() && curvature > 0.0 {
                    sd = curvature.sqrt().recip().min(most);
                    h = DIFFERENCE * sd;
                } else {
                    h = (h / 10.0).max(1e-9 * most);
                }
            }
            sd
        };
        (0..u.len()).map(one).collect()
    }

    /// Returns minus the matrix of second derivatives, in units of `sd`.
    fn information(&self, u: &[f64], sd: &[f64]) -> Vec<Vec<f64>> {
        let d = u.len();
        let inside = |j: usize| {
            let (s, h) = (self.space.boxes[j], DIFFERENCE * sd[j]);
            u[j].clamp(s.min + h, s.max - h)
        };
        let base: Vec<f64> = (0..d).map(inside).collect();
        let moved = |steps: &[(usize, f64)]| {
            let mut point = base.clone();
            steps.iter().for_each(|(j, sign)| point[*j] += sign * DIFFERENCE * sd[*j]);
            self.at(&point)
        };
        let second = |i: usize, j: usize| {
            let curvature = if i == j {
                moved(&[(i, 1.0)]) - 2.0 * moved(&[]) + moved(&[(i, -1.0)])
            } else {
                // The order is the same for both orders of the pair, so that the matrix is symmetric bit for bit.
                let (i, j) = (i.max(j), i.min(j));
                let corners = moved(&[(i, 1.0), (j, 1.0)]) - moved(&[(i, 1.0), (j, -1.0)]) - moved(&[(i, -1.0), (j, 1.0)])
                    + moved(&[(i, -1.0), (j, -1.0)]);
                corners / 4.0
            };
            -curvature / (DIFFERENCE * DIFFERENCE)
        };
        (0..d).map(|i| (0..d).map(|j| second(i, j)).collect()).collect()
    }

    fn newton(&self, u: &[f64], sd: &[f64]) -> Option<Vec<f64>> {
        let slope = |j: usize| {
            let mut point = u.to_vec();
            point[j] += DIFFERENCE * sd[j];
            let up = self.at(&point);
            point[j] = u[j] - DIFFERENCE * sd[j];
            (up - self.at(&point)) / (2.0 * DIFFERENCE)
        };
        let gradient: Vec<f64> = (0..u.len()).map(slope).collect();
        let step = solve(self.information(u, sd), gradient)?;
        Some(step.iter().zip(sd).map(|(s, sd)| s * sd).collect())
    }

    /// Returns the standard error of the mode from the noise in S: the information's inverse on the slope's noise.
    fn errors(&self, u: &[f64], sd: &[f64]) -> Vec<f64> {
        let information = self.information(u, sd);
        let mut variance = vec![0.0; u.len()];
        let natural = |j: usize, sign: f64| {
            let (s, mut point) = (self.space.boxes[j], u.to_vec());
            point[j] = (point[j] + sign * DIFFERENCE * sd[j]).clamp(s.min, s.max);
            self.family.natural(&self.space.theta_inside(self.spec, &point))
        };
        let ends: Vec<(Vec<f64>, Vec<f64>)> = (0..u.len()).map(|j| (natural(j, 1.0), natural(j, -1.0))).collect();
        for (k, noise) in self.variances.iter().enumerate() {
            let slope = ends.iter().map(|(up, down)| (up[k] - down[k]) / (2.0 * DIFFERENCE) * noise.sqrt()).collect();
            let Some(moved) = solve(information.clone(), slope) else { return sd.to_vec() };
            variance.iter_mut().zip(moved).for_each(|(v, m)| *v += m * m);
        }
        let most = self.reach();
        let one = |((v, sd), most): ((&f64, &f64), &f64)| (v.sqrt() * sd).min(*most);
        let errors: Vec<f64> = variance.iter().zip(sd).zip(&most).map(one).collect();
        if errors.iter().all(|e| e.is_finite()) { errors } else { sd.to_vec() }
    }
}

/// Solves a small linear system by elimination with pivots; `None` if it is singular.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let d = b.len();
    for column in 0..d {
        let pivot = (column..d).max_by(|i, j| a[*i][column].abs().total_cmp(&a[*j][column].abs()))?;
        if !(a[pivot][column].abs() > 1e-12 && a[pivot][column].is_finite()) {
            return None;
        }
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..d {
            let factor = a[row][column] / a[column][column];
            let upper = a[column].clone();
            a[row].iter_mut().zip(&upper).skip(column).for_each(|(x, u)| *x -= factor * u);
            b[row] -= factor * b[column];
        }
    }
    for row in (0..d).rev() {
        let known: f64 = (row + 1..d).map(|k| a[row][k] * b[k]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    b.iter().all(|x| x.is_finite()).then_some(b)
}

#[cfg(test)]
#[path = "tests/surrogate.rs"]
mod tests;
