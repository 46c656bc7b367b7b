//! Coordinates in which a score is released, chosen so that its noise harms the posterior least.
//!
//! The set of possible contributions of a record to a score at a public point is public. A centre `c` and a frame `F` with
//! `‖F(z - c)‖ <= 1` on that set make one noise scale serve every component: two records differ by at most 2. Noise of covariance `t²
//! I` on the sum of `F(z - c)` is noise of covariance `t² F^-1 F^-T` on the score.
//!
//! The chosen frame minimises the posterior variances. With the posterior covariance `C`, `D` its diagonal and
//! `z̃ = D^(-1/2) C z`, it is given by the matrix `S` of least trace with `z̃' S^-1 z̃ <= 1`. At the optimum `S² = sum p z̃ z̃'`
//! with weights `p` on the points that touch the boundary. Multiplicative updates find them (Silvey, Titterington & Torsney
//! 1978).
//!
//! An inert record contributes `-F c`, so that the receiver adds the centre back the same number of times for all data. With a
//! centre, 0 is therefore one of the points.

use super::gaussian::{factor, largest};
use crate::sampler::matrix::{Matrix, dot};

/// Maximum number of updates of the weights.
const UPDATES: usize = 100;
/// Relative excess of the farthest point at which the updates stop.
const GOOD_ENOUGH: f64 = 2e-3;
/// Least eigenvalue of the weighted points' second moments, relative to the greatest.
const LEAST_EIGENVALUE: f64 = 1e-9;
/// Number of steps towards the centre of the smallest enclosing ball.
const BALL_STEPS: usize = 300;
/// Relative shrinkage of a frame that absorbs rounding.
const ROUNDING: f64 = 1e-9;
/// Magnitude below which points need no frame.
const NOTHING: f64 = 1e-100;

/// Affine coordinates in which a record's score lies within the unit ball.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// c
    pub(crate) centre: Vec<f64>,
    /// F
    pub(crate) matrix: Matrix,
    /// F^-1
    pub(crate) inverse: Matrix,
}

impl Frame {
    /// Returns the frame of a ball of this radius around 0, for many predictors; the unit ball if the radius is not a positive
    /// finite number.
    pub(crate) fn ball(order: usize, radius: f64) -> Self {
        let radius = if radius.is_finite() && radius > NOTHING { radius } else { 1.0 };
        Self::round(vec![0.0; order], radius)
    }

    /// Returns the frame of a small ball that contains the points, with its own centre or around 0.
    pub(crate) fn enclosing_ball(order: usize, points: &[Vec<f64>], centred: bool) -> Self {
        let points = usable(order, points);
        let Some(scale) = scale(&points) else { return Self::ball(order, 1.0) };
        let points = scaled(points, scale, centred);
        let mut centre = vec![0.0; order];
        let steps = if centred { BALL_STEPS } else { 0 };
        for step in 0..steps {
            let (_, at) = farthest(&points, &centre);
            let part = 1.0 / (step as f64 + 2.0);
            centre.iter_mut().zip(&points[at]).for_each(|(c, z)| *c += part * (z - *c));
        }
        let (radius, _) = farthest(&points, &centre);
        Self::round(centre.iter().map(|c| c * scale).collect(), scale * radius.max(NOTHING) * (1.0 + ROUNDING))
    }

    fn round(centre: Vec<f64>, radius: f64) -> Self {
        let order = centre.len();
        let matrix = Matrix::identity(order).scaled(1.0 / radius);
        Self { centre, matrix, inverse: Matrix::identity(order).scaled(radius) }
    }

    /// Returns the frame that minimises the posterior variances, given the posterior covariance `weight` as far as it is known.
    /// It has its own centre or lies around 0. Points that are not finite are left out, because such a record is inert. Falls
    /// back to a ball if the numbers allow no better frame.
    pub(crate) fn shaped(points: &[Vec<f64>], weight: &Matrix, centred: bool) -> Self {
        let order = weight.order();
        let kept = usable(order, points);
        let Some(scale) = scale(&kept) else { return Self::ball(order, 1.0) };
        let kept = scaled(kept, scale, centred);
        let shaped = Self::of_scaled(&kept, &weigh(weight), centred).map(|frame| frame.grown(scale));
        let ball = Self::enclosing_ball(order, points, centred);
        // For points in few directions the ellipsoid's iteration may stop early, and a ball may be better.
        let better = |shaped: &Self| shaped.finite() && shaped.harm(weight) <= ball.harm(weight);
        shaped.filter(better).unwrap_or(ball)
    }

    /// Returns the sum of the posterior variances that noise of unit sd causes, in units of the posterior's own `weight`.
    pub(super) fn harm(&self, weight: &Matrix) -> f64 {
        let made = weight.times(&self.noise(1.0)).times(weight);
        let shares = made.diagonal_entries().into_iter().zip(weight.diagonal_entries());
        shares.map(|(made, own)| made / own).sum()
    }

    /// Computes the frame of finite points whose largest entry is 1; the points include 0 if there is a centre.
    fn of_scaled(points: &[Vec<f64>], (weigh, unweigh): &(Matrix, Matrix), centred: bool) -> Option<Self> {
        let seen: Vec<Vec<f64>> = points.iter().map(|z| weigh.apply(z)).collect();
        let mut weights = vec![1.0 / seen.len() as f64; seen.len()];
        let mut shape = Shape::of(&seen, &weights, centred)?;
        for _ in 0..UPDATES {
            let reached = shape.distances(&seen);
            let mean = dot(&weights, &reached);
            if !(mean > 0.0 && mean.is_finite()) {
                return None;
            }
            if largest(&reached) <= (1.0 + GOOD_ENOUGH) * mean {
                break;
            }
            weights.iter_mut().zip(&reached).for_each(|(p, r)| *p *= r / mean);
            shape = Shape::of(&seen, &weights, centred)?;
        }
        let centre = if centred { combined(points, &weights) } else { vec![0.0; weigh.order()] };
        let frame = Self {
            matrix: shape.roots(|root| 1.0 / root.sqrt()).times(weigh),
            inverse: unweigh.times(&shape.roots(f64::sqrt)),
            centre,
        };
        let reach = points.iter().map(|z| norm_squared(&frame.transform(z))).fold(0.0, f64::max).sqrt() * (1.0 + ROUNDING);
        (reach > 0.0).then(|| frame.shrunk(reach))
    }

    /// Scales the frame for points that lie `scale` times as far out.
    fn grown(mut self, scale: f64) -> Self {
        self.centre.iter_mut().for_each(|c| *c *= scale);
        self.shrunk(scale)
    }

    /// Returns the frame whose images are closer to the centre by this factor.
    pub(crate) fn shrunk(self, factor: f64) -> Self {
        Self { matrix: self.matrix.scaled(1.0 / factor), inverse: self.inverse.scaled(factor), centre: self.centre }
    }

    pub(super) fn finite(&self) -> bool {
        let all = [&self.centre[..], self.matrix.entries(), self.inverse.entries()];
        all.iter().all(|part| part.iter().all(|x| x.is_finite()))
    }

    /// Returns a record's contribution, `F (z - c)`.
    pub(crate) fn transform(&self, z: &[f64]) -> Vec<f64> {
        let moved: Vec<f64> = z.iter().zip(&self.centre).map(|(z, c)| z - c).collect();
        self.matrix.apply(&moved)
    }

    /// Computes the score from the sums of the contributions of `records` records: `F^-1 sums + records c`.
    pub(crate) fn total(&self, sums: &[f64], records: f64) -> Vec<f64> {
        self.inverse.apply(sums).iter().zip(&self.centre).map(|(s, c)| s + records * c).collect()
    }

    /// Returns the covariance of the score's noise if each component of the sums has noise of sd `t`.
    pub(crate) fn noise(&self, t: f64) -> Matrix {
        self.inverse.times(&self.inverse.transposed()).scaled(t * t).symmetrised()
    }
}

/// Eigenvectors of the weighted points' second moments around their centre, and the roots of the eigenvalues, which are the
/// eigenvalues of `S`.
struct Shape {
    centre: Vec<f64>,
    axes: Vec<(f64, Vec<f64>)>,
}

impl Shape {
    fn of(points: &[Vec<f64>], weights: &[f64], centred: bool) -> Option<Self> {
        let order = points.first()?.len();
        let centre = if centred { combined(points, weights) } else { vec![0.0; order] };
        let mut moments = Matrix::zeros(order);
        for (z, p) in points.iter().zip(weights) {
            for i in 0..order {
                let weighted = p * (z[i] - centre[i]);
                (0..=i).for_each(|j| moments[(i, j)] += weighted * (z[j] - centre[j]));
            }
        }
        let symmetric = Matrix::from_fn(order, |i, j| moments[(i.max(j), i.min(j))]);
        let axes = symmetric.eigen();
        let most = axes.iter().map(|(value, _)| *value).fold(0.0, f64::max);
        let root = |(value, axis): (f64, Vec<f64>)| (value.max(LEAST_EIGENVALUE * most).sqrt(), axis);
        (most > 0.0 && most.is_finite()).then(|| Self { centre, axes: axes.into_iter().map(root).collect() })
    }

    /// Returns `(z - c)' S^-1 (z - c)` of every point.
    fn distances(&self, points: &[Vec<f64>]) -> Vec<f64> {
        let along = |z: &[f64], axis: &[f64]| z.iter().zip(&self.centre).zip(axis).map(|((z, c), a)| (z - c) * a).sum::<f64>();
        let one = |z: &Vec<f64>| self.axes.iter().map(|(root, axis)| along(z, axis) * along(z, axis) / root).sum();
        points.iter().map(one).collect()
    }

    /// Returns the symmetric matrix with the axes of `S` and its eigenvalues mapped by `map`.
    fn roots(&self, map: impl Fn(f64) -> f64) -> Matrix {
        let add = |sum: Matrix, (root, axis): &(f64, Vec<f64>)| sum.plus(&Matrix::outer(axis, map(*root)), 1.0);
        self.axes.iter().fold(Matrix::zeros(self.axes.len()), add)
    }
}

/// Returns `D^(-1/2) C` and its inverse; the identity if C is not a covariance.
fn weigh(weight: &Matrix) -> (Matrix, Matrix) {
    let order = weight.order();
    let scales = weight.diagonal_entries();
    if weight.cholesky().is_none() {
        return (Matrix::identity(order), Matrix::identity(order));
    }
    let inverse = factor(weight).inverse();
    let forward = Matrix::from_fn(order, |i, j| weight[(i, j)] / scales[i].sqrt());
    let backward = Matrix::from_fn(order, |i, j| inverse[(i, j)] * scales[j].sqrt());
    (forward, backward)
}

fn usable(order: usize, points: &[Vec<f64>]) -> Vec<Vec<f64>> {
    points.iter().filter(|z| z.len() == order && z.iter().all(|x| x.is_finite())).cloned().collect()
}

/// Returns the largest magnitude of an entry; `None` if there is nothing to frame.
fn scale(points: &[Vec<f64>]) -> Option<f64> {
    let most = points.iter().map(|z| largest(z)).fold(0.0, f64::max);
    (most > NOTHING).then_some(most)
}

/// Returns the points in units of `scale`, and, with a centre, the contribution of an inert record.
fn scaled(mut points: Vec<Vec<f64>>, scale: f64, centred: bool) -> Vec<Vec<f64>> {
    points.iter_mut().flatten().for_each(|x| *x /= scale);
    if centred && let Some(first) = points.first() {
        points.push(vec![0.0; first.len()]);
    }
    points
}

/// Returns the weighted mean of the points.
fn combined(points: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut mean = vec![0.0; points.first().map_or(0, Vec::len)];
    for (z, p) in points.iter().zip(weights) {
        mean.iter_mut().zip(z).for_each(|(m, x)| *m += p * x);
    }
    mean
}

fn norm_squared(z: &[f64]) -> f64 {
    dot(z, z)
}

/// Returns the distance of the farthest point from a centre, and its index.
fn farthest(points: &[Vec<f64>], centre: &[f64]) -> (f64, usize) {
    let distance = |z: &Vec<f64>| z.iter().zip(centre).map(|(z, c)| (z - c) * (z - c)).sum::<f64>();
    let most = points.iter().map(distance).enumerate().fold((0.0, 0), |best, (at, d)| if d > best.0 { (d, at) } else { best });
    (most.0.sqrt(), most.1)
}

#[cfg(test)]
#[path = "tests/frame.rs"]
mod tests;
