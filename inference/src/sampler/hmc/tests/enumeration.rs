//! Whole transition matrices of the step on coarse lattices: the step's invariant law, to the last bits, and planted bugs that
//! must show.
//!
//! Momenta lie on a lattice, and so do the places: `u` is `h/4` times an integer of the parity that keeps every midpoint and
//! every end on it. The kick's noise is then not normal, and the step would not be in balance with it. So the kick is enumerated
//! with the density ratio of a normal one. On the lattice of momenta, `p'` is drawn with probability proportional to
//! `exp(-(p' - c p - b g)²/2(1 - c²))`. The sum of these over the lattice depends on the fraction of `c p + b g` only; it differs
//! from a constant by less than `e^(-2 pi² s²)` for a spread of `s` lattice steps, below 1e-16 at `s >= 1.4`.

use crate::sampler::acceptance::expected_acceptance;
use crate::sampler::hmc::law;

/// The planted bug.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bug {
    None,
    /// The momentum is not reversed at a rejection.
    NoFlip,
    /// The remainder subtracts the gradient before its clip.
    Unclipped,
    /// The subtracted gradient is that of the start, not of the midpoint.
    TangentAtStart,
    /// The variance of the kick's noise is a tenth above the value that the friction assumes.
    Hotter,
    /// The penalty is left out.
    NoPenalty,
    /// Remainders are clamped far below their possible size.
    Clamped,
    /// Remainders are clamped from above only.
    ClampedAbove,
    /// The noise of the test has correlation 1/2 with that of the kick.
    Correlated,
    /// The momentum is not reversed at the box.
    NoFlipAtBox,
}

/// A one-dimensional posterior: its log density, and its gradient, clipped.
struct Case {
    step: f64,
    variance: f64,
    test_sd: f64,
    clip: f64,
    box_: f64,
    bug: Bug,
}

const CASE: Case = Case { step: 0.8, variance: 3.0, test_sd: 0.5, clip: 1.0, box_: f64::INFINITY, bug: Bug::None };

/// Neither even nor quadratic, with several bends.
fn log_density(u: f64) -> f64 {
    -0.25 * u * u * u * u - 0.3 * u + 0.4 * (2.0 * u).sin()
}

fn slope(u: f64) -> f64 {
    -u * u * u - 0.3 + 0.8 * (2.0 * u).cos()
}

/// Returns the probability that a uniform's logarithm is below a normal with mean `ratio - sd²/2` and this sd, or with the mean
/// that a bug causes; `kick` is the kick's noise in its own sds.
pub(super) fn acceptance(bug: Bug, ratio: f64, sd: f64, kick: f64) -> f64 {
    let penalty = 0.5 * sd * sd;
    match bug {
        Bug::NoPenalty => expected_acceptance(ratio + penalty, sd),
        Bug::Correlated => {
            let (known, rest) = (0.5 * sd * kick, 0.75_f64.sqrt() * sd);
            expected_acceptance(ratio - penalty + known + 0.5 * rest * rest, rest)
        }
        _ => expected_acceptance(ratio, sd),
    }
}

/// A lattice of momenta, so wide that the mass beyond it is negligible, and of places.
struct Lattice {
    /// Distance between two momenta.
    unit: f64,
    /// Greatest momentum, in units.
    most: i64,
    /// Distance between two places: half a step with the least momentum.
    place: f64,
    /// Farthest place, in units.
    reach: i64,
}

impl Lattice {
    fn of(case: &Case) -> Self {
        let unit = 0.35;
        let place = 0.5 * case.step * unit;
        let most = (9.0 * law::momentum_variance(case.step).sqrt() / unit).ceil() as i64;
        Self { unit, most, place, reach: (3.7 / place) as i64 }
    }

    fn states(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let (reach, most) = (self.reach, self.most);
        (-reach..=reach).flat_map(move |u| (-most..=most).map(move |p| (u, p)))
    }

    fn index(&self, (u, p): (i64, i64)) -> Option<usize> {
        let inside = u.abs() <= self.reach && p.abs() <= self.most;
        inside.then(|| ((u + self.reach) * (2 * self.most + 1) + p + self.most) as usize)
    }
}

/// Returns the end states of one step from `(u, p)` with their probabilities.
fn row(case: &Case, lattice: &Lattice, (u, p): (i64, i64)) -> Vec<((i64, i64), f64)> {
    let Case { step, variance, test_sd, clip, box_, bug } = *case;
    let middle = u + p;
    let (at, momentum) = (|u: i64| u as f64 * lattice.place, |p: i64| p as f64 * lattice.unit);
    let raw = slope(at(middle));
    let gradient = raw.clamp(-clip, clip);
    let kept = law::friction(step, variance);
    let spread = (1.0 - kept * kept) * if bug == Bug::Hotter { 1.1 } else { 1.0 };
    let centre = law::kick(step, &[momentum(p)], &[gradient], &[variance])[0];
    let all = -lattice.most..=lattice.most;
    let weights: Vec<f64> = all.clone().map(|q| (-0.5 * (momentum(q) - centre).powi(2) / spread).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut out = Vec::with_capacity(weights.len() + 1);
    let mut stays = 0.0;
    for (q, weight) in all.zip(weights) {
        let probability = weight / total;
        let end = middle + q;
        if at(end).abs() > box_ {
            out.push(((u, if bug == Bug::NoFlipAtBox { p } else { -p }), probability));
            continue;
        }
        let tangent = match bug {
            Bug::Unclipped => raw,
            Bug::TangentAtStart => slope(at(u)).clamp(-clip, clip),
            _ => gradient,
        };
        let remainder = log_density(at(end)) - log_density(at(u)) - tangent * (at(end) - at(u));
        let remainder = match bug {
            Bug::Clamped => remainder.clamp(-0.1, 0.1),
            Bug::ClampedAbove => remainder.min(0.1),
            _ => remainder,
        };
        // The penalty is subtracted within the acceptance.
        let ratio = law::log_acceptance(step, remainder, 0.0, (&[momentum(p)], &[momentum(q)]));
        let accepted = acceptance(bug, ratio, test_sd, (momentum(q) - centre) / spread.sqrt());
        out.push(((end, q), probability * accepted));
        stays += probability * (1.0 - accepted);
    }
    out.push(((u, if bug == Bug::NoFlip { p } else { -p }), stays));
    out
}

/// Returns the total variation between the invariant law and its image after one step; and the same for the places alone after
/// many steps.
fn moved(case: &Case) -> (f64, f64) {
    let lattice = Lattice::of(case);
    let kappa = law::momentum_variance(case.step).recip();
    let weight = |(u, p): (i64, i64)| {
        let (u, p) = (u as f64 * lattice.place, p as f64 * lattice.unit);
        if u.abs() > case.box_ { 0.0 } else { (log_density(u) - 0.5 * kappa * p * p).exp() }
    };
    let mut law: Vec<f64> = lattice.states().map(weight).collect();
    let total: f64 = law.iter().sum();
    law.iter_mut().for_each(|w| *w /= total);
    let rows: Vec<Vec<(usize, f64)>> = lattice
        .states()
        .map(|state| {
            // The mass that leaves the enumerated states is below their last bits; its momentum is reversed.
            let place = |to| lattice.index(to).or(lattice.index((state.0, -state.1))).unwrap();
            row(case, &lattice, state).into_iter().map(|(to, chance)| (place(to), chance)).collect()
        })
        .collect();
    let advance = |law: &[f64]| {
        let mut next = vec![0.0; law.len()];
        for (row, probability) in rows.iter().zip(law).filter(|(_, probability)| **probability > 0.0) {
            row.iter().for_each(|(to, chance)| next[*to] += probability * chance);
        }
        next
    };
    let apart = |a: &[f64], b: &[f64]| 0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let places = |law: &[f64]| -> Vec<f64> { law.chunks((2 * lattice.most + 1) as usize).map(|row| row.iter().sum()).collect() };
    let one = apart(&advance(&law), &law);
    let many = (0..60).fold(law.clone(), |law, _| advance(&law));
    (one, apart(&places(&many), &places(&law)))
}

/// Clipped gradients at a third of the places, a density with several bends, boxes, and friction that reverses the momentum.
#[test]
fn a_step_leaves_the_posterior_as_it_is() {
    let cases = [
        CASE,
        Case { step: 0.5, variance: 2.0, ..CASE },
        Case { step: 1.3, variance: 1.0, ..CASE },
        Case { box_: 0.9, ..CASE },
        // More noise than the thermostat assumes: c is -0.17.
        Case { variance: 8.8, ..CASE },
        Case { clip: 0.0, ..CASE },
    ];
    for case in cases {
        let (one, many) = moved(&case);
        assert!(one < 1e-12 && many < 1e-12, "step {} variance {}: {one:e}, {many:e}", case.step, case.variance);
    }
    assert!(law::friction(0.8, 8.8) < 0.0);
}

/// Each bug moves the law of places by far more than the error of a correct step.
#[test]
fn planted_bugs_show() {
    for (bug, case, least) in [
        (Bug::NoFlip, CASE, 1e-2),
        (Bug::Unclipped, CASE, 1e-2),
        (Bug::TangentAtStart, CASE, 1e-2),
        (Bug::Hotter, CASE, 3e-3),
        (Bug::NoPenalty, CASE, 3e-3),
        (Bug::Clamped, CASE, 1e-2),
        (Bug::ClampedAbove, CASE, 1e-2),
        (Bug::Correlated, CASE, 1e-2),
        (Bug::NoFlipAtBox, Case { box_: 0.9, ..CASE }, 1e-3),
    ] {
        let (one, many) = moved(&Case { bug, ..case });
        assert!(one > 1e-4 && many > least, "{bug:?}: {one:e}, {many:e}");
    }
}

/// The sign of the momenta's term does not affect the balance, but their law, and the acceptance of every step on a normal
/// posterior.
#[test]
fn no_step_on_a_normal_posterior_is_rejected() {
    for step in [0.3, 0.8, 1.5] {
        let (u, p, q) = (0.7, -0.4, 1.1);
        let middle = u + 0.5 * step * p;
        let end = middle + 0.5 * step * q;
        let log_density = |u: f64| -0.5 * u * u;
        let remainder = log_density(end) - log_density(u) + middle * (end - u);
        assert!(law::log_acceptance(step, remainder, 0.0, (&[p], &[q])).abs() < 1e-15, "{step}");
        assert!((law::momentum_variance(step) - 1.0 / (1.0 - step * step / 4.0)).abs() < 1e-15);
        // The friction matches the heat of stationary momenta: a step adds as much energy as it removes.
        let (variance, kept) = (2.5, law::friction(step, 2.5));
        let pushed = 0.5 * step * (1.0 + kept);
        assert!((pushed * pushed * variance - (1.0 - kept * kept)).abs() < 1e-14);
    }
}
