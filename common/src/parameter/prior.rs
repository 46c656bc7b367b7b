//! Densities of priors, their support, and their extent for the mode search and the parameter box.

use super::constraint::Constraint;
use super::family::Prior;

impl Prior {
    /// Returns the natural logarithm of the density at `x`, up to a constant that does not depend on `x`; −∞ where the density is
    /// 0.
    ///
    /// Only its differences are used. The components of a Dirichlet prior sum to its log density. Computed by `libm`, so that a
    /// replay on another machine makes the same decisions.
    #[must_use]
    pub fn log_density(&self, x: f64) -> f64 {
        let (least, greatest) = self.support();
        if !(least <= x && x <= greatest) {
            return f64::NEG_INFINITY;
        }
        match *self {
            Prior::Normal { mean, sd } => {
                let z = (x - mean) / sd;
                -0.5 * z * z
            }
            Prior::HalfNormal { sd } => -0.5 * (x / sd) * (x / sd),
            Prior::StudentT { df, location, scale } => student_t(df, (x - location) / scale),
            Prior::HalfStudentT { df, scale } => student_t(df, x / scale),
            Prior::Cauchy { location, scale } => student_t(1.0, (x - location) / scale),
            Prior::HalfCauchy { scale } => student_t(1.0, x / scale),
            Prior::Uniform { .. } => 0.0,
            Prior::Gamma { shape, rate } => log_power(shape - 1.0, x) - rate * x,
            Prior::Exponential { rate } => -rate * x,
            Prior::InverseGamma { .. } | Prior::LogNormal { .. } if x == 0.0 => f64::NEG_INFINITY,
            Prior::InverseGamma { shape, scale } => -(shape + 1.0) * libm::log(x) - scale / x,
            Prior::LogNormal { location, scale } => {
                let log = libm::log(x);
                let z = (log - location) / scale;
                -log - 0.5 * z * z
            }
            Prior::Beta { a, b } => log_power(a - 1.0, x) + log_power(b - 1.0, 1.0 - x),
            Prior::Dirichlet { concentration, .. } => log_power(concentration - 1.0, x),
        }
    }

    /// Returns the least and the greatest value that may have a positive density.
    #[must_use]
    pub fn support(&self) -> (f64, f64) {
        match *self {
            Prior::Normal { .. } | Prior::StudentT { .. } | Prior::Cauchy { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Prior::Uniform { min, max } => (min, max),
            Prior::Beta { .. } | Prior::Dirichlet { .. } => (0.0, 1.0),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// Returns the default prior of a parameter with the unit `unit` ([`crate::schema::ModelSpec::units`]).
    #[must_use]
    pub fn weak(constraint: Constraint, unit: f64) -> Self {
        match constraint {
            Constraint::Real => Prior::Normal { mean: 0.0, sd: 2.5 * unit },
            Constraint::Positive => Prior::HalfNormal { sd: 2.5 * unit },
            Constraint::UnitInterval => Prior::Beta { a: 1.0, b: 1.0 },
            Constraint::Simplex { .. } => Prior::Dirichlet { concentration: 1.0, after: 1.0 },
        }
    }

    /// Returns the centre at which a search for the mode may start. For densities on the positive line it is the mode of the
    /// density of log x, for `beta` the mode of that of logit x.
    #[must_use]
    pub fn location(&self) -> f64 {
        match *self {
            Prior::Normal { mean, .. } => mean,
            Prior::StudentT { location, .. } | Prior::Cauchy { location, .. } => location,
            Prior::HalfNormal { sd } => sd,
            Prior::HalfStudentT { scale, .. } | Prior::HalfCauchy { scale } => scale,
            Prior::Uniform { min, max } => min / 2.0 + max / 2.0,
            Prior::Gamma { shape, rate } => shape / rate,
            Prior::InverseGamma { shape, scale } => scale / shape,
            Prior::Exponential { rate } => 1.0 / rate,
            Prior::LogNormal { location, .. } => libm::exp(location),
            Prior::Beta { a, b } => a / (a + b),
            Prior::Dirichlet { concentration, after } => concentration / (concentration + after),
        }
    }

    /// Returns an interval around the prior's centre that no box may cut silently.
    ///
    /// It extends two standard deviations or scales either way if the density has them, and over the whole of a `uniform`. For
    /// deliberately weak densities on the positive line it is the centre alone.
    #[must_use]
    pub fn core(&self) -> (f64, f64) {
        let centre = self.location();
        match *self {
            Prior::Normal { sd: scale, .. } | Prior::StudentT { scale, .. } | Prior::Cauchy { scale, .. } => {
                (centre - 2.0 * scale, centre + 2.0 * scale)
            }
            Prior::HalfNormal { .. } | Prior::HalfStudentT { .. } | Prior::HalfCauchy { .. } => (centre, 2.0 * centre),
            // A limit at 0 is that of the parameter itself.
            Prior::Uniform { min, max } => (if min < 0.0 { min } else { centre }, if max > 0.0 { max } else { centre }),
            Prior::Gamma { shape, .. } => (centre, centre * (1.0 + 2.0 / shape.sqrt())),
            Prior::Exponential { .. } => (centre, 3.0 * centre),
            _ => (centre, centre),
        }
    }

    /// Returns the largest magnitude that a box should allow a parameter with this prior. The prior mass beyond it is negligible
    /// for a posterior: ten standard deviations, or a hundred scales of a heavy tail.
    #[must_use]
    pub fn reach(&self) -> f64 {
        let centre = self.location().abs();
        match *self {
            Prior::Normal { sd, .. } => centre + 10.0 * sd,
            Prior::HalfNormal { sd } => 10.0 * sd,
            Prior::StudentT { scale, .. }
            | Prior::Cauchy { scale, .. }
            | Prior::HalfStudentT { scale, .. }
            | Prior::HalfCauchy { scale } => centre + 100.0 * scale,
            Prior::Uniform { min, max } => min.abs().max(max.abs()),
            Prior::Gamma { shape, rate } => (shape + 10.0 * shape.sqrt() + 20.0) / rate,
            Prior::Exponential { rate } => 30.0 / rate,
            Prior::InverseGamma { shape, .. } => centre * libm::exp(10.0 / shape.sqrt()),
            Prior::LogNormal { location, scale } => libm::exp(location + 10.0 * scale),
            Prior::Beta { .. } | Prior::Dirichlet { .. } => 1.0,
        }
    }

    /// Returns minus the second derivative of the log density at its centre, on the parameter's unconstrained scale
    /// ([`super::Transform`], Jacobian included); 0 if the prior does not determine it.
    #[must_use]
    pub fn precision(&self, constraint: Constraint) -> f64 {
        match (*self, constraint) {
            (Prior::Normal { sd, .. }, Constraint::Real) => 1.0 / (sd * sd),
            (Prior::StudentT { df, scale, .. }, Constraint::Real) => (df + 1.0) / (df * scale * scale),
            (Prior::Cauchy { scale, .. }, Constraint::Real) => 2.0 / (scale * scale),
            (_, Constraint::Real) => 0.0,
            (Prior::HalfNormal { .. }, Constraint::Positive) => 2.0,
            (Prior::HalfStudentT { df, .. }, Constraint::Positive) => 2.0 * df / (df + 1.0),
            (Prior::HalfCauchy { .. } | Prior::Exponential { .. }, Constraint::Positive) => 1.0,
            (Prior::Gamma { shape, .. } | Prior::InverseGamma { shape, .. }, Constraint::Positive) => shape,
            (Prior::LogNormal { scale, .. }, Constraint::Positive) => 1.0 / (scale * scale),
            (Prior::Beta { a, b }, Constraint::UnitInterval) => a * b / (a + b),
            (Prior::Dirichlet { concentration, after }, Constraint::Simplex { .. }) if after > 0.0 => {
                concentration * after / (concentration + after)
            }
            _ => 0.0,
        }
    }

    /// Returns the length over which the density changes, on the parameter's unconstrained scale.
    #[must_use]
    pub fn scale(&self, constraint: Constraint) -> f64 {
        match (*self, constraint) {
            (Prior::Normal { sd, .. }, Constraint::Real) => sd,
            (Prior::StudentT { scale, .. } | Prior::Cauchy { scale, .. }, Constraint::Real) => scale,
            (Prior::Uniform { min, max }, Constraint::Real) => (max - min) / 4.0,
            (_, Constraint::Real) => self.location().abs(),
            // On log and logit scales the length is limited: tails count up to a factor of e², and a flat prior has the length of
            // a factor of e.
            _ => match self.precision(constraint) {
                0.0 => 1.0,
                precision => precision.max(0.25).sqrt().recip(),
            },
        }
    }
}

/// Returns `power · log x`, and 0 for a power of 0 at any `x`.
fn log_power(power: f64, x: f64) -> f64 {
    if power == 0.0 { 0.0 } else { power * libm::log(x) }
}

fn student_t(df: f64, z: f64) -> f64 {
    -0.5 * (df + 1.0) * libm::log1p(z * z / df)
}
