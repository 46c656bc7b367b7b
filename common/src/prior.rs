//! Prior densities and their text form, `family(argument, …)`.
//!
//! The whole grammar parses; a family that cannot be sampled under yet is refused by its name.

use std::fmt;

/// Every family of the grammar with its number of arguments (`None`: any positive number).
const FAMILIES: &[(&str, Option<usize>)] = &[
    ("normal", Some(2)),
    ("student_t", Some(3)),
    ("cauchy", Some(2)),
    ("half_normal", Some(1)),
    ("half_student_t", Some(2)),
    ("half_cauchy", Some(1)),
    ("uniform", Some(2)),
    ("gamma", Some(2)),
    ("inverse_gamma", Some(2)),
    ("beta", Some(2)),
    ("exponential", Some(1)),
    ("lognormal", Some(2)),
    ("dirichlet", None),
];

/// The prior of one parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prior {
    /// Normal with `mean` and standard deviation `sd` > 0.
    Normal {
        /// Mean, any finite number.
        mean: f64,
        /// Standard deviation, finite and positive.
        sd: f64,
    },
}

/// Why a prior's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriorError {
    /// Not of the form `family(number, …)`.
    #[error("`{0}` is not a prior; write it as `normal(0, 2.5)`")]
    Syntax(String),
    /// No such family.
    #[error("there is no prior family `{family}`; the nearest is `{nearest}`")]
    UnknownFamily {
        /// What was written.
        family: String,
        /// The closest known name.
        nearest: String,
    },
    /// A family with another number of arguments.
    #[error("`{family}` takes {expected} arguments and got {got}")]
    Arguments {
        /// The family.
        family: String,
        /// How many it takes.
        expected: usize,
        /// How many were written.
        got: usize,
    },
    /// Part of the grammar, not yet of the sampler.
    #[error("the prior family `{0}` is not built yet; `normal(mean, sd)` is")]
    NotBuilt(String),
    /// A standard deviation that is not a positive finite number, or another argument out of range.
    #[error("`{0}`: {1}")]
    Range(String, &'static str),
}

impl Prior {
    /// Reads `family(argument, …)`, white space ignored.
    pub fn parse(text: &str) -> Result<Self, PriorError> {
        let (family, arguments) = split(text)?;
        let Some(&(_, arity)) = FAMILIES.iter().find(|(name, _)| *name == family) else {
            return Err(PriorError::UnknownFamily {
                nearest: crate::job::keys::nearest(&family, FAMILIES.iter().map(|f| f.0)).unwrap_or("normal").to_owned(),
                family,
            });
        };
        if let Some(expected) = arity
            && arguments.len() != expected
        {
            return Err(PriorError::Arguments { family, expected, got: arguments.len() });
        }
        match (family.as_str(), arguments.as_slice()) {
            ("normal", &[mean, sd]) if sd > 0.0 => Ok(Prior::Normal { mean, sd }),
            ("normal", _) => Err(PriorError::Range(text.trim().to_owned(), "the standard deviation must be positive")),
            _ => Err(PriorError::NotBuilt(family)),
        }
    }

    /// The natural logarithm of the density at `x`, up to a constant that does not depend on `x`.
    ///
    /// Only differences of it are ever used.
    pub fn log_density(&self, x: f64) -> f64 {
        match *self {
            Prior::Normal { mean, sd } => {
                let z = (x - mean) / sd;
                -0.5 * z * z
            }
        }
    }

    /// The centre that a search for the mode may start from.
    pub fn location(&self) -> f64 {
        match *self {
            Prior::Normal { mean, .. } => mean,
        }
    }

    /// The length over which the density changes.
    pub fn scale(&self) -> f64 {
        match *self {
            Prior::Normal { sd, .. } => sd,
        }
    }

    /// Minus the second derivative of the log density at its centre.
    pub fn precision(&self) -> f64 {
        match *self {
            Prior::Normal { sd, .. } => 1.0 / (sd * sd),
        }
    }
}

impl fmt::Display for Prior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prior::Normal { mean, sd } => write!(f, "normal({mean}, {sd})"),
        }
    }
}

fn split(text: &str) -> Result<(String, Vec<f64>), PriorError> {
    let syntax = || PriorError::Syntax(text.trim().to_owned());
    let (family, rest) = text.trim().split_once('(').ok_or_else(syntax)?;
    let inner = rest.trim_end().strip_suffix(')').ok_or_else(syntax)?;
    let family = family.trim();
    if family.is_empty() || !family.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
        return Err(syntax());
    }
    let arguments: Result<Vec<f64>, _> = inner.split(',').map(|a| a.trim().parse::<f64>()).collect();
    let arguments = arguments.map_err(|_| syntax())?;
    if arguments.iter().any(|a| !a.is_finite()) {
        return Err(PriorError::Range(text.trim().to_owned(), "arguments must be finite"));
    }
    Ok((family.to_owned(), arguments))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn normal_parses_and_prints() {
        let p = Prior::parse(" normal( 0 , 2.5 ) ").unwrap();
        assert_eq!(p, Prior::Normal { mean: 0.0, sd: 2.5 });
        assert_eq!(Prior::parse(&p.to_string()).unwrap(), p);
        assert!((p.log_density(2.5) + 0.5).abs() < 1e-15);
    }

    #[test]
    fn every_other_family_is_refused_by_name() {
        for (text, family) in [
            ("student_t(3, 0, 1)", "student_t"),
            ("cauchy(0, 1)", "cauchy"),
            ("half_normal(1)", "half_normal"),
            ("half_student_t(3, 1)", "half_student_t"),
            ("half_cauchy(1)", "half_cauchy"),
            ("uniform(0, 1)", "uniform"),
            ("gamma(1, 1)", "gamma"),
            ("inverse_gamma(1, 1)", "inverse_gamma"),
            ("beta(1, 1)", "beta"),
            ("exponential(1)", "exponential"),
            ("lognormal(0, 1)", "lognormal"),
            ("dirichlet(1, 1, 1)", "dirichlet"),
        ] {
            assert_eq!(Prior::parse(text), Err(PriorError::NotBuilt(family.to_owned())), "{text}");
        }
    }

    #[test]
    fn bad_text_names_the_fault() {
        assert!(matches!(Prior::parse("normal(0)"), Err(PriorError::Arguments { expected: 2, got: 1, .. })));
        assert!(matches!(Prior::parse("norml(0, 1)"), Err(PriorError::UnknownFamily { nearest, .. }) if nearest == "normal"));
        assert!(matches!(Prior::parse("normal 0 1"), Err(PriorError::Syntax(_))));
        assert!(matches!(Prior::parse("normal(0, 0)"), Err(PriorError::Range(..))));
        assert!(matches!(Prior::parse("normal(nan, 1)"), Err(PriorError::Range(..))));
        assert!(matches!(Prior::parse("normal(a, 1)"), Err(PriorError::Syntax(_))));
    }
}
