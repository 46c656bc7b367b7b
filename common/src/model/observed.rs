//! The relation between the information that a model releases and the observed information, minus the second derivative of the
//! log likelihood.
//!
//! A released sum of outer products is positive semidefinite; the observed information need not be. The two agree where the total
//! score is 0, at the maximum of the likelihood. Elsewhere they differ by terms that are linear in the total score, to first order
//! of the distance from the maximum. The receiver knows the total score, because it was released.

/// A model's form of information, at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ObservedForm {
    /// The released information is the observed one everywhere: canonical parameters.
    Canonical,
    /// The released information is the mean of that at the point and of that at the answer: the trapezoidal rule along the path between
    /// the two.
    BothEnds {
        /// The number of the first coefficients, of whose predictors a record has one alone.
        intervals: usize,
    },
    /// An error law of heavy tails. The entry of a coefficient and the logarithm of the scale is this factor times the
    /// coefficient's score.
    HeavyTails {
        /// The factor: `2 (nu + 2) / (nu + 5)`.
        mixed: f64,
        /// The scale of the errors: the unit in which a change of the linear predictor changes a record's information.
        unit: f64,
    },
    /// Overdispersed counts. The own entry is released as a sum of `kappa² (psi'(kappa) - psi'(y + kappa))`, of which the
    /// intercept's entry is to be subtracted.
    Counts {
        /// `kappa`, the inverse of the dispersion.
        size: f64,
        /// The largest `mu / (kappa + mu)` of a record.
        most: f64,
        /// True if the first coefficient is an intercept.
        intercept: bool,
    },
    /// Times in the logarithms of shape and scale. The shape's own entry is the released one less its score, and the mixed entry
    /// the released one less the scale's score.
    Times,
}
