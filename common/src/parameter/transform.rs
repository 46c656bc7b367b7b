//! Transforms between constrained parameters `theta` and the real line. Chains move in unconstrained values `u`; everything else
//! uses `theta`.
//!
//! The conventions are those of the Stan reference manual, "Constraint transforms". A positive parameter is transformed by its
//! logarithm, one in the unit interval by its logit, and a simplex of K parameters by stick-breaking to K − 1 unconstrained
//! values. A real parameter is unchanged. With the log determinant of the Jacobian added to the log prior density, a chain in `u`
//! samples the posterior of `theta`.
//!
//! Every result is a function of its input bits by `libm`, so that a replay on another machine makes the same chain.

use super::constraint::{Constraint, Interval, LEAST_MAGNITUDE};

/// The largest magnitude of an unconstrained value of a constrained parameter, far beyond every box.
const FURTHEST: f64 = 30.0;

/// The transforms of all parameters of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transform {
    /// One block per parameter, or per simplex.
    blocks: Vec<Constraint>,
}

impl Transform {
    /// Creates the transforms for these constraints, one entry per parameter. A simplex has as many consecutive entries as
    /// parameters.
    #[must_use]
    pub fn new(constraints: &[Constraint]) -> Self {
        let mut blocks = Vec::new();
        let mut at = 0;
        while let Some(constraint) = constraints.get(at) {
            blocks.push(*constraint);
            at += width(*constraint);
        }
        Self { blocks }
    }

    /// Returns the number of unconstrained values.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.blocks.iter().map(|block| coordinates(*block)).sum()
    }

    /// Returns the index of the parameter for each unconstrained value. The sticks of a simplex map to all of its parameters but
    /// the last.
    #[must_use]
    pub fn parameters(&self) -> Vec<usize> {
        let mut at = 0;
        let mut parameters = Vec::new();
        for block in &self.blocks {
            parameters.extend(at..at + coordinates(*block));
            at += width(*block);
        }
        parameters
    }

    /// Returns the constraint for each unconstrained value.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.blocks.iter().flat_map(|block| std::iter::repeat_n(*block, coordinates(*block))).collect()
    }

    /// Returns `theta` for unconstrained values: one value per parameter, each 0 or at least [`LEAST_MAGNITUDE`] in magnitude.
    #[must_use]
    pub fn constrain(&self, u: &[f64]) -> Vec<f64> {
        let mut theta = Vec::with_capacity(u.len() + self.blocks.len());
        let mut at = 0;
        for block in &self.blocks {
            let u = &u[at..at + coordinates(*block)];
            match *block {
                Constraint::Real => theta.push(u[0]),
                Constraint::Positive => theta.push(libm::exp(u[0])),
                Constraint::UnitInterval => theta.push(inverse_logit(u[0])),
                Constraint::Simplex { .. } => break_stick(u, &mut theta),
            }
            at += u.len();
        }
        theta.iter_mut().filter(|x| x.abs() < LEAST_MAGNITUDE).for_each(|x| *x = 0.0);
        theta
    }

    /// Returns the unconstrained values of `theta`. Values at or beyond the edge of a constraint map to the largest magnitude in
    /// use.
    #[must_use]
    pub fn unconstrain(&self, theta: &[f64]) -> Vec<f64> {
        let mut u = Vec::with_capacity(theta.len());
        let mut at = 0;
        for block in &self.blocks {
            let theta = &theta[at..at + width(*block)];
            match *block {
                Constraint::Real => u.push(theta[0]),
                Constraint::Positive => u.push(within(libm::log(theta[0].max(0.0)))),
                Constraint::UnitInterval => u.push(logit(theta[0], 1.0 - theta[0])),
                Constraint::Simplex { .. } => {
                    // From the last: the rest of the stick is the sum of the later parameters.
                    let mut rest = *theta.last().unwrap_or(&0.0);
                    let mut sticks = Vec::new();
                    for (k, x) in theta.iter().enumerate().rev().skip(1) {
                        sticks.push(logit(*x, rest) + libm::log((theta.len() - 1 - k) as f64));
                        rest += x;
                    }
                    u.extend(sticks.into_iter().rev());
                }
            }
            at += theta.len();
        }
        u
    }

    /// Returns the logarithm of the determinant of d theta / d u; 0 for real parameters.
    #[must_use]
    pub fn log_jacobian(&self, u: &[f64]) -> f64 {
        let mut total = 0.0;
        let mut at = 0;
        for block in &self.blocks {
            let u = &u[at..at + coordinates(*block)];
            match *block {
                Constraint::Real => {}
                Constraint::Positive => total += u[0],
                Constraint::UnitInterval => total += log_inverse_logit(u[0]) + log_inverse_logit(-u[0]),
                Constraint::Simplex { .. } => {
                    let mut log_left = 0.0;
                    for (k, u) in u.iter().enumerate() {
                        let y = stick(*u, coordinates(*block) - k);
                        // d theta_k / d u_k = left · z (1 − z), and the rest of the stick is then left · (1 − z).
                        total += log_left + log_inverse_logit(y) + log_inverse_logit(-y);
                        log_left += log_inverse_logit(-y);
                    }
                }
            }
            at += u.len();
        }
        total
    }

    /// Returns the box of `theta`, one interval per parameter, as one interval per unconstrained value. The sticks of a simplex
    /// are only held to a general limit; its box is checked in `theta`.
    #[must_use]
    pub fn unconstrained_box(&self, support: &[Interval]) -> Vec<Interval> {
        self.parameters()
            .into_iter()
            .zip(self.constraints())
            .map(|(parameter, constraint)| {
                let Interval { min, max } = support[parameter];
                match constraint {
                    Constraint::Real => Interval { min, max },
                    Constraint::Positive => {
                        Interval { min: within(libm::log(min.max(0.0))), max: within(libm::log(max.max(0.0))) }
                    }
                    Constraint::UnitInterval => Interval { min: logit(min, 1.0 - min), max: logit(max, 1.0 - max) },
                    Constraint::Simplex { .. } => Interval { min: -FURTHEST / 2.0, max: FURTHEST / 2.0 },
                }
            })
            .collect()
    }
}

/// Returns the number of parameters of a block.
fn width(constraint: Constraint) -> usize {
    if let Constraint::Simplex { size } = constraint { size.max(1) } else { 1 }
}

/// Returns the number of unconstrained values of a block.
fn coordinates(constraint: Constraint) -> usize {
    if let Constraint::Simplex { size } = constraint { size.max(1) - 1 } else { 1 }
}

/// Returns the logit of a stick's share of the rest when `after` more parameters follow. At u = 0 all parameters are equal.
fn stick(u: f64, after: usize) -> f64 {
    u - libm::log(after as f64)
}

fn break_stick(u: &[f64], theta: &mut Vec<f64>) {
    let mut left = 1.0;
    for (k, value) in u.iter().enumerate() {
        let y = stick(*value, u.len() - k);
        theta.push(left * inverse_logit(y));
        left *= inverse_logit(-y);
    }
    theta.push(left);
}

fn inverse_logit(u: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-u))
}

/// Returns `log(1 / (1 + e^-u))`, accurate in both tails.
fn log_inverse_logit(u: f64) -> f64 {
    if u < 0.0 { u - libm::log1p(libm::exp(u)) } else { -libm::log1p(libm::exp(-u)) }
}

/// Returns `log(part / rest)`.
fn logit(part: f64, rest: f64) -> f64 {
    within(libm::log(part.max(0.0)) - libm::log(rest.max(f64::MIN_POSITIVE)))
}

/// Clamps an unconstrained value. NaN, which only a simplex of zeros yields, becomes 0.
fn within(u: f64) -> f64 {
    if u.is_nan() { 0.0 } else { u.clamp(-FURTHEST, FURTHEST) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Transform {
        use Constraint::{Positive, Real, Simplex, UnitInterval};
        let simplex = Simplex { size: 4 };
        Transform::new(&[Real, Positive, UnitInterval, simplex, simplex, simplex, simplex, Real])
    }

    #[test]
    fn a_simplex_has_one_value_less() {
        let t = all();
        assert_eq!((t.dimension(), t.parameters()), (7, vec![0, 1, 2, 3, 4, 5, 7]));
        let theta = t.constrain(&[0.0; 7]);
        let expected = [0.0, 1.0, 0.5, 0.25, 0.25, 0.25, 0.25, 0.0];
        assert!(theta.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{theta:?}");
    }

    #[test]
    fn real_parameters_keep_their_bits() {
        let t = Transform::new(&[Constraint::Real; 3]);
        let u = [0.1 + 0.2, -1e-29, 3e300];
        assert_eq!(t.constrain(&u).map_bits(), u.map(f64::to_bits).to_vec());
        assert_eq!((t.log_jacobian(&u), t.constrain(&[1e-40, 0.0, -1e-310])), (0.0, vec![0.0; 3]));
    }

    trait Bits {
        fn map_bits(&self) -> Vec<u64>;
    }

    impl Bits for Vec<f64> {
        fn map_bits(&self) -> Vec<u64> {
            self.iter().map(|x| x.to_bits()).collect()
        }
    }

    /// Determinant by elimination.
    fn log_determinant(mut a: Vec<Vec<f64>>) -> f64 {
        let mut log = 0.0;
        while !a.is_empty() {
            let pivot = (0..a.len()).max_by(|x, y| a[*x][0].abs().total_cmp(&a[*y][0].abs())).unwrap_or(0);
            let row = a.swap_remove(pivot);
            log += row[0].abs().ln();
            for other in &mut a {
                let factor = other[0] / row[0];
                *other = other.iter().zip(&row).skip(1).map(|(x, p)| x - factor * p).collect();
            }
        }
        log
    }

    proptest! {
        #[test]
        fn there_and_back(u in prop::collection::vec(-4.0..4.0f64, 7)) {
            let t = all();
            let theta = t.constrain(&u);
            prop_assert!(theta[1] > 0.0 && (0.0..1.0).contains(&theta[2]));
            prop_assert!((theta[3..7].iter().sum::<f64>() - 1.0).abs() < 1e-14);
            for (a, b) in t.unconstrain(&theta).iter().zip(&u) {
                prop_assert!((a - b).abs() < 1e-10, "{a} {b}");
            }
        }

        /// The Jacobian against central differences; the last entry of the simplex follows from the others.
        #[test]
        fn the_jacobian_is_the_derivative(u in prop::collection::vec(-3.0..3.0f64, 7)) {
            let t = all();
            let h = 1e-5;
            let free = t.parameters();
            let columns: Vec<Vec<f64>> = (0..7).map(|j| {
                let side = |sign: f64| {
                    let mut u = u.clone();
                    u[j] += sign * h;
                    t.constrain(&u)
                };
                let (up, down) = (side(1.0), side(-1.0));
                free.iter().map(|i| (up[*i] - down[*i]) / (2.0 * h)).collect()
            }).collect();
            let numeric = log_determinant(columns);
            prop_assert!((t.log_jacobian(&u) - numeric).abs() < 1e-6, "{} {numeric}", t.log_jacobian(&u));
        }

        #[test]
        fn any_theta_has_finite_values(theta in prop::collection::vec(-2.0..3.0f64, 8)) {
            prop_assert!(all().unconstrain(&theta).iter().all(|u| u.is_finite()));
        }
    }
}
