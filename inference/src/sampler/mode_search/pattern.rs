//! Directions beside the coordinates: where a search by coordinates creeps, the way that it creeps (Hooke &
//! Jeeves 1961; Powell 1964).

use super::axis::{Axis, LEAST_CURVATURE, LEAST_DELTA};
use crate::sampler::space::Space;

/// Most directions beside the coordinates.
const MOST_PATTERNS: usize = 3;
/// A sweep's movement counts where its squared length, in units of its noise, is this many sds above what
/// noise alone gives.
const SIGNIFICANT: f64 = 3.0;
/// Cosine of the angle between two sweeps' movements, in posterior sds, above which the search creeps.
const SAME_WAY: f64 = 0.7;
/// The same, above which a creeping movement is along a direction that is known already.
const KNOWN_WAY: f64 = 0.95;
/// Least share of the second coordinate of a direction in the first, in posterior sds: below, it is that
/// coordinate's own.
const LEAST_SHARE: f64 = 0.2;
/// A direction stays while its curvature is below this share of what independent coordinates would give it.
const WEAK: f64 = 0.5;
/// How many times further than a sweep's movement the valley may go on.
const REACH: f64 = 10.0;
/// Squared share of a step along a direction by which its error unsettles the coordinates.
const MISALIGNED: f64 = 0.1;

/// One more direction of a search.
pub(super) struct Pattern {
    pub(super) axis: Axis,
    /// A unit vector.
    pub(super) direction: Vec<f64>,
}

/// All of them, and what tells whether one is missing.
pub(super) struct Patterns {
    pub(super) active: Vec<Pattern>,
    /// Where the present sweep over the coordinates began.
    from: Vec<f64>,
    /// What the last such sweep moved, where that was more than noise.
    last: Option<Vec<f64>>,
}

impl Patterns {
    pub(super) fn new(u: &[f64]) -> Self {
        Self { active: Vec::new(), from: u.to_vec(), last: None }
    }

    /// The patterns of this sweep are done; its coordinates begin here.
    pub(super) fn coordinates_begin(&mut self, u: &[f64]) {
        self.from = u.to_vec();
    }

    /// Looks at what a sweep over the coordinates moved, and drops and takes up directions.
    pub(super) fn sweep_done(&mut self, axes: &[Axis], u: &[f64], space: &Space) {
        let moved: Vec<f64> = u.iter().zip(&self.from).map(|(u, from)| u - from).collect();
        self.from = u.to_vec();
        self.active.retain(|p| p.axis.curvature < WEAK * independent(axes, &p.direction));
        let moved = significant(axes, &moved).then_some(moved);
        let last = std::mem::replace(&mut self.last, moved.clone());
        let (Some(moved), Some(last)) = (moved, last) else { return };
        if cosine(axes, &moved, &last) < SAME_WAY || !joint(axes, &moved) {
            return;
        }
        if let Some(known) = self.active.iter_mut().find(|p| cosine(axes, &p.direction, &moved).abs() > KNOWN_WAY) {
            known.axis.location = (known.axis.location + (REACH * length(&moved)).powi(2)).min(known.axis.most_location);
        } else if self.active.len() < MOST_PATTERNS {
            self.active.push(Pattern::new(axes, &moved, space));
        }
    }

    /// Per coordinate, the variance of the place that the directions leave.
    pub(super) fn variances(&self) -> Vec<f64> {
        let one = |j: usize| self.active.iter().map(|p| p.axis.location * p.direction[j] * p.direction[j]).sum();
        (0..self.from.len()).map(one).collect()
    }
}

impl Pattern {
    /// A direction along what a sweep moved, with a parabola to be found out.
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

/// After a step along a direction that is not quite the valley's, the coordinates have something to mend.
pub(super) fn unsettle(axes: &mut [Axis], pattern: &Pattern, step: f64) {
    for (axis, d) in axes.iter_mut().zip(&pattern.direction) {
        axis.location = (axis.location + MISALIGNED * (step * d).powi(2)).min(axis.most_location);
    }
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The curvature along a direction if the coordinates were independent.
fn independent(axes: &[Axis], direction: &[f64]) -> f64 {
    direction.iter().zip(axes).map(|(d, axis)| d * d * axis.curvature).sum()
}

/// Whether a sweep moved by more than the noise of its steps.
fn significant(axes: &[Axis], moved: &[f64]) -> bool {
    let d = axes.len() as f64;
    let squares: f64 = axes.iter().zip(moved).map(|(axis, x)| x * x / axis.noise.max(f64::MIN_POSITIVE)).sum();
    squares > d + SIGNIFICANT * (2.0 * d).sqrt()
}

/// Whether more than one coordinate has a part in a movement.
fn joint(axes: &[Axis], moved: &[f64]) -> bool {
    let mut sizes: Vec<f64> = axes.iter().zip(moved).map(|(axis, x)| x.abs() * axis.curvature.sqrt()).collect();
    sizes.sort_by(f64::total_cmp);
    matches!(sizes[..], [.., second, first] if second >= LEAST_SHARE * first)
}

/// Cosine of the angle between two movements in posterior sds.
fn cosine(axes: &[Axis], a: &[f64], b: &[f64]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).zip(axes).map(|((x, y), axis)| x * y * axis.curvature).sum() };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}
