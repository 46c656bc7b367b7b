//! Whole transition matrices of the step on coarse lattices: what it leaves as it is, to the last bits, and the bugs that show.
//!
//! Momenta are on a lattice and the places with them: `u` is `h/4` times an integer of the parity that keeps every middle and every end on
//! it. The kick's noise is then no normal one, and the step would not be in balance with it. So the kick is enumerated with the density ratio
//! that a normal one has: on the lattice of momenta, `p'` is drawn with probability proportional to `exp(-(p' - c p - b g)²/2(1 - c²))`, whose
//! sum over the lattice depends on the fraction of `c p + b g` alone; it differs from a constant by less than `e^(-2 pi² s²)` for a spread
//! of `s` lattice steps, below 1e-16 at `s >= 1.4`.

use crate::sampler::acceptance::expected_acceptance;
use crate::sampler::hmc::law;

/// What is planted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bug {
    None,
    /// The momentum is not turned round at a rejection.
    NoFlip,
    /// The remainder takes off the gradient as it was before it was clipped.
    Unclipped,
    /// The gradient that is taken off is that of the start, not the middle.
    TangentAtStart,
    /// The kick's noise is a tenth more, in variance, than the friction is for.
    Hotter,
    /// The penalty is left out.
    NoPenalty,
    /// Remainders are clamped far below what they can be.
    Clamped,
    /// Remainders are clamped from above alone.
    ClampedAbove,
    /// The noise of the test is correlated, by a half, with that of the kick.
    Correlated,
    /// The box is taken for a reason to leave the momentum as it is.
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

/// Neither even nor quadratic, nor of one bend.
fn log_density(u: f64) -> f64 {
    -0.25 * u * u * u * u - 0.3 * u + 0.4 * (2.0 * u).sin()
}

fn slope(u: f64) -> f64 {
    -u * u * u - 0.3 + 0.8 * (2.0 * u).cos()
}

/// The chance that a uniform's logarithm is below a normal about `ratio - sd²/2` of this sd, or about what a bug makes of that; `kick` is the
/// kick's noise in its own sds.
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

/// A lattice of momenta, wide enough that none beyond it matters, and of places.
struct Lattice {
    /// Between two momenta.
    unit: f64,
    /// The greatest momentum, in units.
    most: i64,
    /// Between two places: half a step with the least momentum.
    place: f64,
    /// The farthest place, in units.
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

/// One step from `(u, p)`: where to, and with what probability.
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
        // The penalty is taken off within the acceptance.
        let ratio = law::log_acceptance(step, remainder, 0.0, (&[momentum(p)], &[momentum(q)]));
        let accepted = acceptance(bug, ratio, test_sd, (momentum(q) - centre) / spread.sqrt());
        out.push(((end, q), probability * accepted));
        stays += probability * (1.0 - accepted);
    }
    out.push(((u, if bug == Bug::NoFlip { p } else { -p }), stays));
    out
}

/// How far, in total variation, one step moves the law that it is to leave; and many steps that of the places alone.
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
            // What leaves the enumerated states is less than their last bits; it is turned round.
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

/// Clipped gradients at a third of the places, a density of several bends, boxes, and friction that is turned round.
#[test]
fn a_step_leaves_the_posterior_as_it_is() {
    let cases = [
        CASE,
        Case { step: 0.5, variance: 2.0, ..CASE },
        Case { step: 1.3, variance: 1.0, ..CASE },
        Case { box_: 0.9, ..CASE },
        // More noise than the thermostat wants: c is -0.17.
        Case { variance: 8.8, ..CASE },
        Case { clip: 0.0, ..CASE },
    ];
    for case in cases {
        let (one, many) = moved(&case);
        assert!(one < 1e-12 && many < 1e-12, "step {} variance {}: {one:e}, {many:e}", case.step, case.variance);
    }
    assert!(law::friction(0.8, 8.8) < 0.0);
}

/// Each of them moves the law of places by far more than what a right step is off.
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

/// The sign in front of the momenta's part is no matter of balance but of their law, and of never rejecting on a normal posterior.
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
        // The friction is such that the noise is the heat of momenta at rest: what a step adds is what it takes.
        let (variance, kept) = (2.5, law::friction(step, 2.5));
        let pushed = 0.5 * step * (1.0 + kept);
        assert!((pushed * pushed * variance - (1.0 - kept * kept)).abs() < 1e-14);
    }
}
