//! The whole transition matrix of a trajectory on a lattice: its invariant law, to the last bits, and planted bugs that must
//! show.
//!
//! Momenta lie on a lattice, and so do the places, as in the tests of [`crate::sampler::hmc`]. The kick's noise has a density
//! that is evaluated at the lattice's momenta. So a kick from `p` to `p'` has probability `f(p' - p - h g) / Z`, where `Z`
//! depends on the fraction of `h g` only, and the reverse kick has the same: there is no approximation.

#![allow(clippy::unwrap_used)]

use crate::sampler::acceptance::expected_acceptance;
use crate::sampler::hmc::dp_hmc::law;

/// The planted bug.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    /// The momentum is not reversed at a rejection.
    NoFlip,
    /// The heat is not rejected: the kinetic energy is left out of the test.
    HeatKept,
    /// Half of the noise's variance is not subtracted.
    NoPenalty,
    /// The test uses the remainder beyond the first gradient, as with friction.
    Remainder,
}

struct Case {
    step: f64,
    kicks: u32,
    /// Variance of a kick's noise.
    variance: f64,
    test_sd: f64,
    clip: f64,
    /// No end may lie beyond it, and no midpoint beyond one and a half times it.
    box_: f64,
    bug: Bug,
}

const CASE: Case = Case { step: 0.6, kicks: 2, variance: 2.0, test_sd: 0.8, clip: 1.0, box_: f64::INFINITY, bug: Bug::None };

/// Neither even nor quadratic, with several bends.
fn log_density(u: f64) -> f64 {
    -0.25 * u * u * u * u - 0.3 * u + 0.4 * (2.0 * u).sin()
}

fn slope(u: f64) -> f64 {
    -u * u * u - 0.3 + 0.8 * (2.0 * u).cos()
}

/// Distance between two momenta.
const UNIT: f64 = 0.4;
/// Greatest momentum, in units.
const MOST: i64 = 20;

/// A place and a momentum, in units.
type State = (i64, i64);

impl Case {
    fn at(&self, u: i64) -> f64 {
        0.5 * self.step * UNIT * u as f64
    }

    fn reach(&self) -> i64 {
        (3.6 / self.at(1)) as i64
    }

    fn states(&self) -> impl Iterator<Item = State> + use<> {
        let reach = self.reach();
        (-reach..=reach).flat_map(|u| (-MOST..=MOST).map(move |p| (u, p)))
    }

    fn index(&self, (u, p): State) -> Option<usize> {
        let inside = u.abs() <= self.reach() && p.abs() <= MOST;
        inside.then(|| ((u + self.reach()) * (2 * MOST + 1) + p + MOST) as usize)
    }

    /// Returns the results of the kicks from a state with their probabilities; `None` once a midpoint cannot be queried.
    fn kicked(&self, (middle, p): State) -> Option<Vec<(i64, f64)>> {
        if self.at(middle).abs() > 1.5 * self.box_ {
            return None;
        }
        let gradient = slope(self.at(middle)).clamp(-self.clip, self.clip);
        let centre = law::kick(self.step, &[p as f64 * UNIT], &[gradient])[0];
        let spread = self.step * self.step * self.variance;
        let weight = |q: i64| (-0.5 * (q as f64 * UNIT - centre).powi(2) / spread).exp();
        let total: f64 = (-3 * MOST..=3 * MOST).map(weight).sum();
        Some((-MOST..=MOST).map(|q| (q, weight(q) / total)).collect())
    }

    /// Returns the end states of one trajectory with their probabilities.
    fn row(&self, start: State) -> Vec<(State, f64)> {
        let mut ends = vec![(start, 1.0)];
        for _ in 0..self.kicks {
            let mut next = std::collections::BTreeMap::new();
            for ((u, p), probability) in ends {
                let middle = u + p;
                for (q, chance) in self.kicked((middle, p)).unwrap_or_default() {
                    *next.entry((middle + q, q)).or_insert(0.0) += probability * chance;
                }
            }
            ends = next.into_iter().collect();
        }
        let (mut out, mut left) = (Vec::new(), 1.0);
        for (end, probability) in ends.into_iter().filter(|((u, _), _)| self.at(*u).abs() <= self.box_) {
            let accepted = probability * self.accepted(start, end);
            out.push((end, accepted));
            left -= accepted;
        }
        let turn = if self.bug == Bug::NoFlip { 1 } else { -1 };
        out.push(((start.0, turn * start.1), left));
        out
    }

    fn accepted(&self, (u, p): State, (to, q): State) -> f64 {
        let mut ratio = log_density(self.at(to)) - log_density(self.at(u));
        if self.bug == Bug::Remainder {
            ratio -= slope(self.at(u + p)).clamp(-self.clip, self.clip) * (self.at(to) - self.at(u));
        }
        let momenta = [p, q].map(|p| if self.bug == Bug::HeatKept { 0.0 } else { p as f64 * UNIT });
        // The penalty is subtracted within the acceptance.
        let ratio = law::log_acceptance(ratio, 0.0, (&momenta[..1], &momenta[1..]));
        let penalty = if self.bug == Bug::NoPenalty { 0.5 * self.test_sd * self.test_sd } else { 0.0 };
        expected_acceptance(ratio + penalty, self.test_sd)
    }
}

/// Returns the total variation between the law of places and momenta and its image after one trajectory, before the momenta are
/// drawn afresh; and that of the places' law after many trajectories with fresh momenta.
fn moved(case: &Case) -> (f64, f64) {
    let weight = |(u, p): State| {
        let (u, p) = (case.at(u), p as f64 * UNIT);
        if u.abs() > case.box_ { 0.0 } else { (log_density(u) - 0.5 * p * p).exp() }
    };
    let mut law: Vec<f64> = case.states().map(weight).collect();
    let total: f64 = law.iter().sum();
    law.iter_mut().for_each(|w| *w /= total);
    // The mass that leaves the enumerated states is below their last bits; its momentum is reversed.
    let place = |state: State, to| case.index(to).or(case.index((state.0, -state.1))).unwrap();
    let row = |state: State| case.row(state).into_iter().map(|(to, chance)| (place(state, to), chance)).collect();
    let rows: Vec<Vec<(usize, f64)>> = case.states().map(row).collect();
    let advance = |law: &[f64]| {
        let mut next = vec![0.0; law.len()];
        for (row, probability) in rows.iter().zip(law).filter(|(_, probability)| **probability > 0.0) {
            row.iter().for_each(|(to, chance)| next[*to] += probability * chance);
        }
        next
    };
    let width = (2 * MOST + 1) as usize;
    let fresh: Vec<f64> = (-MOST..=MOST).map(|p| (-0.5 * (p as f64 * UNIT).powi(2)).exp()).collect();
    let all: f64 = fresh.iter().sum();
    let refreshed = |law: Vec<f64>| -> Vec<f64> {
        law.chunks(width).flat_map(|at| fresh.iter().map(|f| f / all * at.iter().sum::<f64>()).collect::<Vec<_>>()).collect()
    };
    let apart = |a: &[f64], b: &[f64]| 0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let one = apart(&advance(&law), &law);
    let many = (0..20).fold(law.clone(), |law, _| refreshed(advance(&law)));
    (one, apart(&many, &law))
}

/// Clipped gradients, a density with several bends, trajectories of one kick and of several, boxes, and more heat than any
/// acceptance survives.
#[test]
fn a_trajectory_leaves_the_posterior_as_it_is() {
    let cases = [
        CASE,
        Case { kicks: 1, step: 0.9, ..CASE },
        Case { kicks: 3, variance: 0.5, ..CASE },
        Case { box_: 0.9, ..CASE },
        Case { variance: 9.0, ..CASE },
        Case { clip: 0.0, ..CASE },
    ];
    for case in cases {
        let (one, many) = moved(&case);
        println!("{} kicks, noise {}: {one:e}, {many:e}", case.kicks, case.variance);
        assert!(one < 1e-12 && many < 1e-12, "{} kicks, noise {}: {one:e}, {many:e}", case.kicks, case.variance);
    }
}

/// Each bug moves the law by far more than the error of a correct trajectory. A momentum that is not reversed does so only before
/// it is drawn afresh: the places are not affected.
#[test]
fn planted_bugs_show() {
    for bug in [Bug::HeatKept, Bug::NoPenalty, Bug::Remainder] {
        let (one, many) = moved(&Case { bug, ..CASE });
        println!("{bug:?}: {one:e}, {many:e}");
        assert!(one > 1e-3 && many > 1e-3, "{bug:?}: {one:e}, {many:e}");
    }
    let (one, many) = moved(&Case { bug: Bug::NoFlip, ..CASE });
    println!("NoFlip: {one:e}, {many:e}");
    assert!(one > 1e-2 && many < 1e-12, "{one:e}, {many:e}");
}
