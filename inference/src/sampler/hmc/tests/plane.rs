//! The whole transition matrix of the step on a coarse lattice in the plane: a bent density in a box, gradients shortened at
//! three in ten of the midpoints, and a different friction in each direction.
//!
//! The kick is enumerated with the density ratio of a normal kick, as in one dimension. Momenta beyond the lattice's greatest are
//! rejected, like places outside the box. Both sets are symmetric, so the invariant law is the one truncated there.

use super::enumeration::{Bug, acceptance};
use crate::sampler::hmc::law;

/// A step, its gradients' noise, the length that gradients are shortened to, and the planted bug.
struct Case {
    step: f64,
    variances: [f64; 2],
    test_sd: f64,
    longest: f64,
    bug: Bug,
}

const CASE: Case = Case { step: 0.9, variances: [2.3, 7.0], test_sd: 0.4, longest: 2.8, bug: Bug::None };

/// Distance between two momenta. The least spread of a kick is 1.4 times as large: the lattice's sums of normal densities are
/// constant to 1e-16.
const UNIT: f64 = 0.65;
/// Greatest momentum and farthest place, in units.
const MOST: i64 = 4;
const REACH: i64 = 7;

type State = [i64; 4];

/// A banana with light tails.
fn log_density([x, y]: [f64; 2]) -> f64 {
    let bent = y - 0.6 * x * x + 0.4;
    -0.2 * x * x * x * x + 0.3 * x - 0.8 * bent * bent
}

fn slope([x, y]: [f64; 2]) -> [f64; 2] {
    let bent = y - 0.6 * x * x + 0.4;
    [-0.8 * x * x * x + 0.3 + 1.92 * x * bent, -1.6 * bent]
}

fn length([x, y]: [f64; 2]) -> f64 {
    libm::hypot(x, y)
}

fn shortened(slope: [f64; 2], longest: f64) -> [f64; 2] {
    slope.map(|g| g * (longest / length(slope)).min(1.0))
}

impl Case {
    fn place(&self, u: [i64; 2]) -> [f64; 2] {
        u.map(|u| u as f64 * 0.5 * self.step * UNIT)
    }

    /// Returns the probabilities of a component's momenta after a kick, for the lattice's momenta; the rest lies beyond.
    fn kicked(&self, component: usize, before: i64, gradient: f64) -> Vec<(i64, f64, f64)> {
        let kept = law::friction(self.step, self.variances[component]);
        let spread = (1.0 - kept * kept) * if self.bug == Bug::Hotter { 1.1 } else { 1.0 };
        let centre = law::kick(self.step, &[before as f64 * UNIT], &[gradient], &self.variances[component..=component])[0];
        let off = |q: i64| (q as f64 * UNIT - centre) / spread.sqrt();
        let weight = |q: i64| (-0.5 * off(q) * off(q)).exp();
        // The sum is complete: a kick's mean lies among the lattice's momenta, or near them.
        let total: f64 = (-60..=60).map(weight).sum();
        (-MOST..=MOST).map(|q| (q, weight(q) / total, off(q))).collect()
    }

    /// Returns the end states of a step with their probabilities.
    fn row(&self, [x, y, p, q]: State) -> Vec<(State, f64)> {
        let middle = [x + p, y + q];
        let raw = slope(self.place(middle));
        let gradient = shortened(raw, self.longest);
        let at = |u: [i64; 2]| log_density(self.place(u));
        let tangent = match self.bug {
            Bug::Unclipped => raw,
            Bug::TangentAtStart => shortened(slope(self.place([x, y])), self.longest),
            _ => gradient,
        };
        let (start, from) = (at([x, y]), self.place([x, y]));
        let before = [p, q].map(|p| p as f64 * UNIT);
        let (mut out, mut left) = (Vec::new(), 1.0);
        for (a, of_a, off_a) in self.kicked(0, p, gradient[0]) {
            for (b, of_b, off_b) in self.kicked(1, q, gradient[1]) {
                let end = [middle[0] + a, middle[1] + b];
                if end.iter().any(|u| u.abs() > REACH) {
                    continue;
                }
                let to = self.place(end);
                let along: f64 = (0..2).map(|j| tangent[j] * (to[j] - from[j])).sum();
                let remainder = at(end) - start - along;
                let remainder = match self.bug {
                    Bug::Clamped => remainder.clamp(-0.1, 0.1),
                    Bug::ClampedAbove => remainder.min(0.1),
                    _ => remainder,
                };
                let after = [a, b].map(|p| p as f64 * UNIT);
                let ratio = law::log_acceptance(self.step, remainder, 0.0, (&before, &after));
                let kick = (off_a + off_b) * std::f64::consts::FRAC_1_SQRT_2;
                let chance = of_a * of_b * acceptance(self.bug, ratio, self.test_sd, kick);
                out.push(([end[0], end[1], a, b], chance));
                left -= chance;
            }
        }
        let turn = if self.bug == Bug::NoFlip { 1 } else { -1 };
        out.push(([x, y, turn * p, turn * q], left));
        out
    }
}

fn index([x, y, p, q]: State) -> usize {
    let (places, momenta) = (2 * REACH + 1, 2 * MOST + 1);
    ((((x + REACH) * places + y + REACH) * momenta + p + MOST) * momenta + q + MOST) as usize
}

fn states() -> impl Iterator<Item = State> {
    let (places, momenta) = (|| -REACH..=REACH, || -MOST..=MOST);
    places().flat_map(move |x| places().flat_map(move |y| momenta().flat_map(move |p| momenta().map(move |q| [x, y, p, q]))))
}

/// The effect of a case on its law.
struct Moved {
    /// Total variation after one step.
    one: f64,
    /// Total variation of the places' law after many steps.
    many: f64,
    /// Means of the places after many steps.
    means: [f64; 2],
    /// Share of steps whose gradient is shortened.
    clipped: f64,
}

fn moved(case: &Case) -> Moved {
    let kappa = law::momentum_variance(case.step).recip();
    let weight = |[x, y, p, q]: State| {
        let squares = [p, q].map(|p| (p as f64 * UNIT).powi(2)).iter().sum::<f64>();
        (log_density(case.place([x, y])) - 0.5 * kappa * squares).exp()
    };
    let mut law: Vec<f64> = states().map(weight).collect();
    let total: f64 = law.iter().sum();
    law.iter_mut().for_each(|w| *w /= total);
    let rows: Vec<Vec<(usize, f64)>> =
        states().map(|state| case.row(state).into_iter().map(|(to, chance)| (index(to), chance)).collect()).collect();
    let advance = |law: &[f64]| {
        let mut next = vec![0.0; law.len()];
        for (row, probability) in rows.iter().zip(law) {
            row.iter().for_each(|(to, chance)| next[*to] += probability * chance);
        }
        next
    };
    let apart = |a: &[f64], b: &[f64]| 0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let momenta = ((2 * MOST + 1) * (2 * MOST + 1)) as usize;
    let places = |law: &[f64]| -> Vec<f64> { law.chunks(momenta).map(|row| row.iter().sum()).collect() };
    let mean = |law: &[f64], j: usize| states().zip(law).map(|(s, w)| w * case.place([s[0], s[1]])[j]).sum::<f64>();
    let clipped = |[x, y, p, q]: State| length(slope(case.place([x + p, y + q]))) > case.longest;
    let many = (0..40).fold(law.clone(), |law, _| advance(&law));
    Moved {
        one: apart(&advance(&law), &law),
        many: apart(&places(&many), &places(&law)),
        means: [0, 1].map(|j| mean(&many, j) - mean(&law, j)),
        clipped: states().zip(&law).filter(|(state, _)| clipped(*state)).map(|(_, w)| w).sum(),
    }
}

#[test]
fn a_step_in_the_plane_leaves_the_posterior_as_it_is() {
    for case in [CASE, Case { step: 0.7, variances: [9.0, 5.0], longest: 2.3, ..CASE }] {
        let Moved { one, many, means, clipped } = moved(&case);
        println!("one {one:e}, many {many:e}, means {means:?}, clipped {clipped:.3}");
        assert!(one < 1e-12 && many < 1e-12 && means.iter().all(|m| m.abs() < 1e-12), "{one:e} {many:e} {means:?}");
        assert!((0.29..0.32).contains(&clipped), "{clipped}");
    }
    // The friction is negative in one direction.
    assert!(law::friction(CASE.step, CASE.variances[0]) > 0.0 && law::friction(CASE.step, CASE.variances[1]) < 0.0);
}

/// Each bug moves the places' law by at least a hundred million times the error of a correct step.
#[test]
fn planted_bugs_show_in_the_plane() {
    let bugs = [
        Bug::NoFlip,
        Bug::Unclipped,
        Bug::TangentAtStart,
        Bug::Hotter,
        Bug::NoPenalty,
        Bug::Clamped,
        Bug::ClampedAbove,
        Bug::Correlated,
    ];
    for bug in bugs {
        let Moved { one, many, .. } = moved(&Case { bug, ..CASE });
        println!("{bug:?}: one {one:.4}, many {many:.4}");
        assert!(one > 1e-4 && many > 1e-3, "{bug:?}: {one:e}, {many:e}");
    }
}
