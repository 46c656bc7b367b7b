//! Directions beside the coordinates: where a search by coordinates creeps, the direction in which it creeps (Hooke & Jeeves
//! 1961; Powell 1964).

use super::axis::{Axis, LEAST_CURVATURE, LEAST_DELTA};
use crate::sampler::space::Space;

/// Maximum number of directions beside the coordinates.
const MOST_PATTERNS: usize = 3;
/// Number of sds by which a significant movement's squared length, in units of its noise, exceeds that of noise alone.
const SIGNIFICANT: f64 = 3.0;
/// Cosine of the angle between two sweeps' movements, in posterior sds, above which the search creeps.
const SAME_DIRECTION: f64 = 0.7;
/// Cosine above which a creeping movement is along an existing direction.
const KNOWN_DIRECTION: f64 = 0.95;
/// Least ratio of a direction's second coordinate to its first, in posterior sds: below it, the direction is that of a
/// coordinate.
const LEAST_SHARE: f64 = 0.2;
/// Largest ratio of a retained direction's curvature to the curvature with independent coordinates.
const WEAK: f64 = 0.5;
/// Assumed length of the valley, as a multiple of a sweep's movement.
const REACH: f64 = 10.0;
/// Share of a step's squared length along a direction that is added to the coordinates' error.
const MISALIGNED: f64 = 0.1;

/// An additional direction of a search.
pub(super) struct Pattern {
    pub(super) axis: Axis,
    /// A unit vector.
    pub(super) direction: Vec<f64>,
}

/// All additional directions, and the state that detects missing ones.
pub(super) struct Patterns {
    pub(super) active: Vec<Pattern>,
    /// Point at which the present sweep over the coordinates began.
    from: Vec<f64>,
    /// Movement of the last such sweep, if it was significant.
    last: Option<Vec<f64>>,
}

impl Patterns {
    pub(super) fn new(u: &[f64]) -> Self {
        Self { active: Vec::new(), from: u.to_vec(), last: None }
    }

    /// Starts the coordinates' part of a sweep, after the patterns' part.
    pub(super) fn begin_coordinates(&mut self, u: &[f64]) {
        self.from = u.to_vec();
    }

    /// Examines the movement of a sweep over the coordinates, and removes and adds directions.
    pub(super) fn end_sweep(&mut self, axes: &[Axis], u: &[f64], space: &Space) {
        let moved: Vec<f64> = u.iter().zip(&self.from).map(|(u, from)| u - from).collect();
        self.from = u.to_vec();
        self.active.retain(|p| p.axis.curvature < WEAK * independent(axes, &p.direction));
        let moved = significant(axes, &moved).then_some(moved);
        let last = std::mem::replace(&mut self.last, moved.clone());
        let (Some(moved), Some(last)) = (moved, last) else { return };
        if cosine(axes, &moved, &last) < SAME_DIRECTION || !joint(axes, &moved) {
            return;
        }
        if let Some(known) = self.active.iter_mut().find(|p| cosine(axes, &p.direction, &moved).abs() > KNOWN_DIRECTION) {
            known.axis.location = (known.axis.location + (REACH * length(&moved)).powi(2)).min(known.axis.most_location);
        } else if self.active.len() < MOST_PATTERNS {
            self.active.push(Pattern::new(axes, &moved, space));
        }
    }

    /// Returns, per coordinate, the variance of the location along the directions.
    pub(super) fn variances(&self) -> Vec<f64> {
        let one = |j: usize| self.active.iter().map(|p| p.axis.location * p.direction[j] * p.direction[j]).sum();
        (0..self.from.len()).map(one).collect()
    }
}

impl Pattern {
    /// Creates a direction along a sweep's movement, with an unknown parabola.
    fn new(axes: &[Axis], moved: &[f64], space: &Space) -> Self {
        let length = length(moved);
        let direction: Vec<f64> = moved.iter().map(|x| x / length).collect();
        let curvature = independent(axes, &direction) / 2.0;
        let of_axes = |value: &dyn Fn(&Axis) -> f64| -> f64 {
            direction.iter().zip(axes).map(|(d, axis)| d.abs() * value(axis)).sum::<f64>()
        };
        let most = of_axes(&|axis| axis.most.sqrt()).powi(2);
        let reaches = direction.iter().zip(axes).filter(|(d, _)| **d != 0.0);
        let most_delta = reaches.map(|(d, axis)| axis.most_delta / d.abs()).fold(f64::INFINITY, f64::min);
        let precision: f64 = direction.iter().zip(&space.precision).map(|(d, p)| d * d * p).sum();
        let prior: f64 = direction.iter().zip(axes).map(|(d, axis)| d * d * axis.most_location).sum();
        let axis = Axis {
            delta: (2.0 * LEAST_DELTA / curvature.sqrt()).max(3.0 * length).min(most_delta),
            most_delta,
            curvature,
            variance: curvature * curvature,
            location: (REACH * length).powi(2).min(prior),
            most_location: prior,
            most,
            least: (LEAST_CURVATURE * most).max(precision).min(curvature),
            path: Vec::new(),
            noise: 0.0,
        };
        Self { axis, direction }
    }
}

/// Increases the coordinates' errors after a step along a direction that is not exactly the valley's.
pub(super) fn increase_errors(axes: &mut [Axis], pattern: &Pattern, step: f64) {
    for (axis, d) in axes.iter_mut().zip(&pattern.direction) {
        axis.location = (axis.location + MISALIGNED * (step * d).powi(2)).min(axis.most_location);
    }
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns the curvature along a direction if the coordinates were independent.
fn independent(axes: &[Axis], direction: &[f64]) -> f64 {
    direction.iter().zip(axes).map(|(d, axis)| d * d * axis.curvature).sum()
}

/// Returns true if a sweep's movement exceeds the noise of its steps.
fn significant(axes: &[Axis], moved: &[f64]) -> bool {
    let d = axes.len() as f64;
    let squares: f64 = axes.iter().zip(moved).map(|(axis, x)| x * x / axis.noise.max(f64::MIN_POSITIVE)).sum();
    squares > d + SIGNIFICANT * (2.0 * d).sqrt()
}

/// Returns true if more than one coordinate contributes to a movement.
fn joint(axes: &[Axis], moved: &[f64]) -> bool {
    let mut sizes: Vec<f64> = axes.iter().zip(moved).map(|(axis, x)| x.abs() * axis.curvature.sqrt()).collect();
    sizes.sort_by(f64::total_cmp);
    matches!(sizes[..], [.., second, first] if second >= LEAST_SHARE * first)
}

/// Returns the cosine of the angle between two movements in posterior sds.
fn cosine(axes: &[Axis], a: &[f64], b: &[f64]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).zip(axes).map(|((x, y), axis)| x * y * axis.curvature).sum() };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}
