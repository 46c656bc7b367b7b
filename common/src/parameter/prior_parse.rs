//! The text form of priors, `family(argument, …)`.

use std::fmt;

use super::prior::Prior;
use crate::spelling::nearest;

/// All prior families with their arguments; `dirichlet` takes any number of them.
const FAMILIES: &[(&str, &[Argument])] = {
    use Argument::{Any, Positive};
    &[
        ("normal", &[Any("mean"), Positive("sd")]),
        ("student_t", &[Positive("df"), Any("location"), Positive("scale")]),
        ("cauchy", &[Any("location"), Positive("scale")]),
        ("half_normal", &[Positive("sd")]),
        ("half_student_t", &[Positive("df"), Positive("scale")]),
        ("half_cauchy", &[Positive("scale")]),
        ("uniform", &[Any("min"), Any("max")]),
        ("gamma", &[Positive("shape"), Positive("rate")]),
        ("inverse_gamma", &[Positive("shape"), Positive("scale")]),
        ("beta", &[Positive("a"), Positive("b")]),
        ("exponential", &[Positive("rate")]),
        ("lognormal", &[Any("location"), Positive("scale")]),
        (DIRICHLET, &[]),
    ]
};
const DIRICHLET: &str = "dirichlet";
/// The least positive argument. With the greatest magnitude below it keeps squares and quotients of arguments finite.
const LEAST_ARGUMENT: f64 = 1e-30;
const GREATEST_ARGUMENT: f64 = 1e30;

#[derive(Clone, Copy)]
enum Argument {
    Any(&'static str),
    Positive(&'static str),
}

/// The reason why a prior's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriorError {
    /// The text is not of the form `family(number, …)`.
    #[error("`{0}` is not a prior; write it as `normal(0, 2.5)`")]
    Syntax(String),
    /// The family does not exist.
    #[error("there is no prior family `{family}`; the nearest is `{nearest}`")]
    UnknownFamily {
        /// The family in the text.
        family: String,
        /// The closest known name.
        nearest: String,
    },
    /// The number of arguments does not fit the family.
    #[error("`{family}` takes {expected} arguments, not {got}")]
    Arguments {
        /// The family.
        family: String,
        /// The arguments that the family takes.
        expected: String,
        /// The number of arguments in the text.
        got: usize,
    },
    /// An argument is out of range.
    #[error("`{0}`: {1}")]
    Range(String, String),
    /// A prior of several parameters was given for one, or the reverse.
    #[error("{0}")]
    Size(String),
}

impl Prior {
    /// Reads `family(argument, …)` for one parameter, ignoring white space.
    ///
    /// # Errors
    /// Text that is not a prior, an unknown family, arguments out of range, and `dirichlet`, which is for several parameters.
    pub fn parse(text: &str) -> Result<Self, PriorError> {
        match read(text)? {
            Read::One(prior) => Ok(prior),
            Read::Dirichlet(_) => Err(PriorError::Size(
                "`dirichlet` is for probabilities that add up to 1; for a single probability write `beta(1, 1)`".into(),
            )),
        }
    }

    /// Reads the prior of `size` probabilities that sum to 1: `dirichlet(a)` with equal concentrations, or
    /// `dirichlet(a_1, …, a_K)`.
    ///
    /// # Errors
    /// The errors of [`Prior::parse`]; another family; a wrong number of arguments.
    pub fn parse_simplex(text: &str, size: usize) -> Result<Vec<Self>, PriorError> {
        match read(text)? {
            Read::Dirichlet(mut concentrations) => {
                if let [all] = concentrations[..] {
                    concentrations = vec![all; size];
                }
                if concentrations.len() == size {
                    return Ok(Self::dirichlet(&concentrations));
                }
                let expected = format!("one argument or {size} here");
                Err(PriorError::Arguments { family: DIRICHLET.into(), expected, got: concentrations.len() })
            }
            Read::One(prior) => {
                Err(PriorError::Size(format!("`{prior}` is for one parameter; these {size} add up to 1: write `dirichlet(1)`")))
            }
        }
    }

    /// Returns the components of a Dirichlet prior with these concentrations.
    #[must_use]
    pub fn dirichlet(concentrations: &[f64]) -> Vec<Self> {
        let after = |k: usize| concentrations[k + 1..].iter().sum();
        concentrations.iter().enumerate().map(|(k, a)| Prior::Dirichlet { concentration: *a, after: after(k) }).collect()
    }
}

enum Read {
    One(Prior),
    Dirichlet(Vec<f64>),
}

fn read(text: &str) -> Result<Read, PriorError> {
    let (family, arguments) = split(text)?;
    let range = |message: String| PriorError::Range(text.trim().to_owned(), message);
    let Some((name, expected)) = FAMILIES.iter().find(|(name, _)| *name == family) else {
        return Err(PriorError::UnknownFamily {
            nearest: nearest(&family, FAMILIES.iter().map(|f| f.0)).unwrap_or("normal").to_owned(),
            family,
        });
    };
    if *name == DIRICHLET {
        if let Some(bad) = arguments.iter().find(|a| **a < LEAST_ARGUMENT) {
            return Err(range(format!("every concentration must be positive, not {bad}")));
        }
        return Ok(Read::Dirichlet(arguments));
    }
    if arguments.len() != expected.len() {
        let names: Vec<&str> = expected.iter().map(|(Argument::Any(n) | Argument::Positive(n))| *n).collect();
        let expected = format!("{} ({})", expected.len(), names.join(", "));
        return Err(PriorError::Arguments { family, expected, got: arguments.len() });
    }
    for (argument, value) in expected.iter().zip(&arguments) {
        if let Argument::Positive(name) = argument
            && *value < LEAST_ARGUMENT
        {
            return Err(range(format!("{name} must be positive, not {value}")));
        }
    }
    build(name, &arguments).map(Read::One).ok_or_else(|| range("min must be below max".into()))
}

fn build(family: &str, arguments: &[f64]) -> Option<Prior> {
    Some(match (family, arguments) {
        ("normal", &[mean, sd]) => Prior::Normal { mean, sd },
        ("student_t", &[df, location, scale]) => Prior::StudentT { df, location, scale },
        ("cauchy", &[location, scale]) => Prior::Cauchy { location, scale },
        ("half_normal", &[sd]) => Prior::HalfNormal { sd },
        ("half_student_t", &[df, scale]) => Prior::HalfStudentT { df, scale },
        ("half_cauchy", &[scale]) => Prior::HalfCauchy { scale },
        ("uniform", &[min, max]) if min < max => Prior::Uniform { min, max },
        ("gamma", &[shape, rate]) => Prior::Gamma { shape, rate },
        ("inverse_gamma", &[shape, scale]) => Prior::InverseGamma { shape, scale },
        ("beta", &[a, b]) => Prior::Beta { a, b },
        ("exponential", &[rate]) => Prior::Exponential { rate },
        ("lognormal", &[location, scale]) => Prior::LogNormal { location, scale },
        _ => return None,
    })
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
    if arguments.iter().any(|a| !a.is_finite() || a.abs() > GREATEST_ARGUMENT) {
        return Err(PriorError::Range(text.trim().to_owned(), format!("arguments must lie within ±{GREATEST_ARGUMENT:e}")));
    }
    Ok((family.to_owned(), arguments))
}

impl fmt::Display for Prior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prior::Normal { mean, sd } => write!(f, "normal({mean}, {sd})"),
            Prior::StudentT { df, location, scale } => write!(f, "student_t({df}, {location}, {scale})"),
            Prior::Cauchy { location, scale } => write!(f, "cauchy({location}, {scale})"),
            Prior::HalfNormal { sd } => write!(f, "half_normal({sd})"),
            Prior::HalfStudentT { df, scale } => write!(f, "half_student_t({df}, {scale})"),
            Prior::HalfCauchy { scale } => write!(f, "half_cauchy({scale})"),
            Prior::Uniform { min, max } => write!(f, "uniform({min}, {max})"),
            Prior::Gamma { shape, rate } => write!(f, "gamma({shape}, {rate})"),
            Prior::InverseGamma { shape, scale } => write!(f, "inverse_gamma({shape}, {scale})"),
            Prior::Beta { a, b } => write!(f, "beta({a}, {b})"),
            Prior::Exponential { rate } => write!(f, "exponential({rate})"),
            Prior::LogNormal { location, scale } => write!(f, "lognormal({location}, {scale})"),
            Prior::Dirichlet { concentration, .. } => write!(f, "dirichlet({concentration})"),
        }
    }
}
