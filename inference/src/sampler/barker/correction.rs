//! The correction `V_cor`, which makes normal noise of variance C nearly logistic (Heikkilä et al. 2019, section 3.2 and appendix
//! B, after Seita, Pan, Chen & Canny 2017).
//!
//! The authors fit a mixture of normals by least squares. Here each table is the law on at most 561 points, symmetric about 0,
//! whose sum with `N(0, C)` minimises the largest distance of its distribution function from the logistic one. It is the solution
//! by HiGHS of a linear programme over the points 0, 0.025, ..., 14 and the distances at -18, -17.975, ..., 0. For C above 2 that
//! distance grows fast (1.6e-3 at 2.25, 1.3e-2 at 3).

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// Largest distances as published with the tables; a test reproduces them.
const SUP_ERRORS: [f64; 3] = [5.874e-4, 2.731e-5, 1.073e-7];

/// An atom's distance from 0, and the total weight of both signs.
type Atom = (f64, f64);

/// C = 2: within 5.874e-4.
const TWO: [Atom; 5] =
    [(0.0, 0.865967975), (2.95, 0.1248467016), (2.975, 0.0069498524), (9.2, 0.0003965483), (9.225, 0.0018389227)];

/// C = 1.5: within 2.731e-5.
const ONE_AND_A_HALF: [Atom; 8] = [
    (0.0, 0.6877052136),
    (1.9, 0.0173360944),
    (1.925, 0.2550484251),
    (4.1, 0.0072706669),
    (4.125, 0.029370088),
    (6.85, 0.0006684356),
    (6.875, 0.0025408183),
    (14.0, 0.0000602581),
];

/// C = 1: within 1.073e-7.
const ONE: [Atom; 18] = [
    (0.0, 0.4209294231),
    (1.15, 0.1918000099),
    (1.175, 0.1962921249),
    (2.325, 0.1071392593),
    (2.575, 0.0293490099),
    (3.45, 0.00111373),
    (3.675, 0.0385033508),
    (5.0, 0.0108069554),
    (5.25, 0.0003693274),
    (6.35, 0.0011067129),
    (6.5, 0.0017738683),
    (7.9, 0.0002086688),
    (8.05, 0.0004507846),
    (9.55, 0.0000178188),
    (9.75, 0.0001149721),
    (11.625, 0.0000023918),
    (11.725, 0.0000188433),
    (14.0, 0.0000027487),
];

/// The table of a correction.
///
/// | C | largest error of the distribution function | error of the log odds of acceptance, up to 1, 2, 4, 6 | variance with short steps |
/// |---|---|---|---|
/// | 2 | 5.9e-4 | 2.6e-3, 5.5e-3, 2.1e-2, 1.6e-1 | 1.006 |
/// | 1.5 | 2.7e-5 | 1.1e-4, 1.7e-4, 8.5e-4, 8.5e-3 | 1.0004 |
/// | 1 | 1.1e-7 | 3.2e-7, 6.4e-7, 3.7e-6, 1.3e-5 | 1.0000 |
///
/// The log odds are `ln a(D) - ln a(-D)`, which balance requires to be D. For short steps D is small, and the slope at 0 decides.
/// For C = 2 it is 0.60 % below the logistic slope, so that such chains have the posterior at a power of 0.994, whose variance is
/// 0.6 % greater, if the noise is known exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Correction {
    /// C.
    pub(super) variance: f64,
    atoms: &'static [Atom],
    /// Largest distance between the distribution functions of `N(0, C) + V_cor` and the logistic law.
    pub(super) sup_error: f64,
}

impl Correction {
    /// Returns the table for normal noise of this variance; `None` if there is none.
    pub(super) fn of(variance: f64) -> Option<Self> {
        let tables: [(f64, &'static [Atom]); 3] = [(2.0, &TWO), (1.5, &ONE_AND_A_HALF), (1.0, &ONE)];
        let found = tables.into_iter().zip(SUP_ERRORS).find(|((of, _), _)| *of == variance);
        found.map(|((variance, atoms), sup_error)| Self { variance, atoms, sup_error })
    }

    /// Returns the correction drawn by a uniform number in (0, 1].
    pub(super) fn draw(&self, uniform: f64) -> f64 {
        // The side of 1/2 is the sign, and the distance from it is a uniform number for the atom.
        let centred = 2.0 * uniform - 1.0;
        let mut left = centred.abs() * self.total();
        let beyond = |(_, weight): &&Atom| {
            left -= weight;
            left < 0.0
        };
        let atom = self.atoms.iter().find(beyond).or(self.atoms.last()).map_or(0.0, |(distance, _)| *distance);
        if centred < 0.0 { -atom } else { atom }
    }

    /// Returns the sum of the weights, which normalises them: they are rounded to ten digits.
    fn total(&self) -> f64 {
        self.atoms.iter().map(|(_, weight)| weight).sum()
    }

    /// Returns the probability that a step with this log posterior ratio is accepted: the distribution function of
    /// `N(0, C) + V_cor`.
    pub(super) fn acceptance(&self, log_ratio: f64) -> f64 {
        let normal = |x: f64| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2 / self.variance.sqrt());
        let both = |(distance, weight): &Atom| 0.5 * weight * (normal(log_ratio - distance) + normal(log_ratio + distance));
        self.atoms.iter().map(both).sum::<f64>() / self.total()
    }

    /// Returns the ratio of the posterior variance with short steps to the correct one: the logistic law's slope at 0 over this
    /// one's.
    pub(super) fn variance_by_short_steps(&self) -> f64 {
        let sd = self.variance.sqrt();
        let density = |(distance, weight): &Atom| weight * libm::exp(-0.5 * (distance / sd) * (distance / sd));
        let slope = self.atoms.iter().map(density).sum::<f64>() / self.total() * 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 / sd;
        0.25 / slope
    }
}
