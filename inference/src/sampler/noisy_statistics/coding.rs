//! Coded coordinates, in which a predictor of 0 and 1 counts as -1 and 1.
//!
//! With `x' = 2 x - 1` in place of `x`, the linear predictor `x . b` is `x' . b'` for `b' = b / 2` and an intercept that is
//! larger by the sum of the coded `b'`. A record's vector is no longer than before and carries twice the information.

use super::gaussian::GaussianPrior;
use crate::sampler::matrix::Matrix;

/// The linear map between a model's coordinates and coded ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Coding {
    /// Per coordinate, true if it is coded.
    coded: Vec<bool>,
    /// Number of the first coordinates that are intercepts, of which a record has one.
    intercepts: usize,
    /// Matrix that maps coded coordinates to the model's.
    back: Matrix,
}

impl Coding {
    /// Builds the map for `order` coordinates; `coded` marks the coded coefficients, and the first `intercepts` coordinates absorb their shift,
    /// as the model's scores report them.
    pub(crate) fn new(coded: &[bool], intercepts: usize, order: usize) -> Self {
        let coded: Vec<bool> = (0..order).map(|j| coded.get(j).copied().unwrap_or(false)).collect();
        let back = Matrix::from_fn(order, |i, j| match (i == j, i < intercepts && coded[j]) {
            (true, _) if coded[i] => 2.0,
            (true, _) => 1.0,
            (false, true) => -1.0,
            (false, false) => 0.0,
        });
        Self { coded, intercepts, back }
    }

    /// Returns the coded coordinates of a point.
    pub(crate) fn coded(&self, u: &[f64]) -> Vec<f64> {
        let mut coded = u.to_vec();
        for (j, is_coded) in self.coded.iter().enumerate() {
            if *is_coded {
                coded[j] = 0.5 * u[j];
                coded[..self.intercepts].iter_mut().for_each(|intercept| *intercept += 0.5 * u[j]);
            }
        }
        coded
    }

    /// Returns the model's coordinates of a coded point or direction.
    pub(crate) fn plain(&self, coded: &[f64]) -> Vec<f64> {
        self.back.apply(coded)
    }

    /// Converts a covariance from coded coordinates to the model's.
    pub(crate) fn plain_covariance(&self, coded: &Matrix) -> Matrix {
        self.back.times(coded).times(&self.back.transposed()).symmetrised()
    }

    /// Converts a covariance from the model's coordinates to coded ones.
    pub(crate) fn coded_covariance(&self, plain: &Matrix) -> Matrix {
        let to = self.to_coded();
        to.times(plain).times(&to.transposed()).symmetrised()
    }

    /// Returns the matrix that maps the model's coordinates to coded ones.
    fn to_coded(&self) -> Matrix {
        let order = self.back.order();
        let unit = |j: usize| (0..order).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..order).map(|j| self.coded(&unit(j))).collect();
        Matrix::from_fn(order, |i, j| columns[j][i])
    }

    /// Converts a precision matrix, or an information, from coded coordinates to the model's.
    pub(crate) fn plain_precision(&self, coded: &Matrix) -> Matrix {
        let to = self.to_coded();
        to.transposed().times(coded).times(&to).symmetrised()
    }

    /// Converts a gradient from coded coordinates to the model's.
    pub(crate) fn plain_gradient(&self, coded: &[f64]) -> Vec<f64> {
        self.to_coded().transposed().apply(coded)
    }

    /// Returns a prior of coordinates that depend on each other, in coded coordinates.
    pub(crate) fn joint_prior(&self, plain: &GaussianPrior) -> GaussianPrior {
        GaussianPrior::joint(self.coded(&plain.mean), self.moments(&plain.matrix()))
    }

    /// Converts a gradient to coded coordinates.
    pub(crate) fn gradient(&self, plain: &[f64]) -> Vec<f64> {
        self.back.transposed().apply(plain)
    }

    /// Converts a map of coded gradients to one of the model's gradients.
    pub(crate) fn of_gradient(&self, map: &Matrix) -> Matrix {
        map.times(&self.back.transposed())
    }

    /// Returns the second moments of the coded predictors, given those of the plain ones.
    pub(crate) fn moments(&self, plain: &Matrix) -> Matrix {
        let order = plain.order();
        let back = Matrix::from_fn(order, |i, j| self.back[(i, j)]);
        back.transposed().times(plain).times(&back).symmetrised()
    }

    /// Returns independent normal priors in coded coordinates, with the variances that the given priors have there.
    pub(crate) fn prior(&self, plain: &GaussianPrior) -> GaussianPrior {
        let mut variance: Vec<f64> = plain.precision.iter().map(|p| p.recip()).collect();
        for (j, coded) in self.coded.iter().enumerate() {
            if *coded {
                variance[j] *= 0.25;
                let more = variance[j];
                variance[..self.intercepts].iter_mut().for_each(|variance| *variance += more);
            }
        }
        GaussianPrior::independent(self.coded(&plain.mean), variance.into_iter().map(f64::recip).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::matrix::dot;

    #[test]
    fn a_coded_record_has_the_same_linear_predictor() {
        let coding = Coding::new(&[false, true, false, true], 1, 5);
        let (x, x_coded) = ([1.0, 1.0, 0.3, 0.0], [1.0, 1.0, 0.3, -1.0]);
        let u = [0.4, -1.0, 2.0, 0.7, -0.1];
        let coded = coding.coded(&u);
        assert!((dot(&x, &u[..4]) - dot(&x_coded, &coded[..4])).abs() < 1e-15);
        assert!(coding.plain(&coded).iter().zip(u).all(|(a, b)| (a - b).abs() < 1e-15));
        // A gradient is the slope times the record.
        let gradient = coding.gradient(&x.iter().map(|x| 3.0 * x).chain([0.5]).collect::<Vec<_>>());
        assert!(gradient.iter().zip(x_coded.iter().map(|x| 3.0 * x).chain([0.5])).all(|(a, b)| (a - b).abs() < 1e-15));
        let map = Matrix::from_fn(5, |i, j| (i * 5 + j) as f64);
        let plain = coding.of_gradient(&map).apply(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(plain, map.apply(&coding.gradient(&[1.0, 2.0, 3.0, 4.0, 5.0])));
        let moments = coding.moments(&Matrix::outer(&x, 1.0));
        assert_eq!(moments.entries(), Matrix::outer(&x_coded, 1.0).entries());
    }

    /// A record is in one interval, whose coordinate absorbs the shift.
    #[test]
    fn every_interval_absorbs_the_shift_of_a_coded_predictor() {
        let coding = Coding::new(&[false, false, true], 2, 3);
        let u = [0.4, -0.3, 1.2];
        let coded = coding.coded(&u);
        for (interval, x) in [(0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0)] {
            let unit = |at: usize| f64::from(u8::from(interval == at));
            let [plain, moved] = [[unit(0), unit(1), x], [unit(0), unit(1), 2.0 * x - 1.0]];
            assert!((dot(&plain, &u) - dot(&moved, &coded)).abs() < 1e-15, "{interval} {x}");
        }
        assert!(coding.plain(&coded).iter().zip(u).all(|(a, b)| (a - b).abs() < 1e-15));
        let prior = coding.prior(&GaussianPrior::independent(vec![0.0; 3], vec![0.16, 0.16, 0.16]));
        assert_eq!(prior.precision, [1.0 / (6.25 + 6.25 / 4.0), 1.0 / (6.25 + 6.25 / 4.0), 0.64]);
    }

    #[test]
    fn a_coded_prior_has_the_variances_of_the_sums() {
        let prior = GaussianPrior::independent(vec![0.0; 3], vec![0.16, 0.16, 0.0]);
        let coded = Coding::new(&[false, true, false], 1, 3).prior(&prior);
        assert_eq!(coded.precision, [1.0 / (6.25 + 6.25 / 4.0), 0.64, 0.0]);
    }
}
