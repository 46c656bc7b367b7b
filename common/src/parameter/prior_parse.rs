//! The text form of priors, `family(argument, …)`.

use super::family::{Argument, DIRICHLET, FAMILIES, Prior, build};
use crate::spelling::nearest;

/// The least positive argument. With the greatest magnitude below it keeps squares and quotients of arguments finite.
const LEAST_ARGUMENT: f64 = 1e-30;
const GREATEST_ARGUMENT: f64 = 1e30;

/// The reason why a prior's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PriorError(String);

impl Prior {
    /// Reads `family(argument, …)` for one parameter, ignoring white space.
    ///
    /// # Errors
    /// Text that is not a prior, an unknown family, arguments out of range, and `dirichlet`, which is for several parameters.
    pub fn parse(text: &str) -> Result<Self, PriorError> {
        match read(text)? {
            Read::One(prior) => Ok(prior),
            Read::Dirichlet(_) => Err(PriorError(
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
                Err(PriorError(format!("`{DIRICHLET}` takes one argument or {size} here, not {}", concentrations.len())))
            }
            Read::One(prior) => {
                Err(PriorError(format!("`{prior}` is for one parameter; these {size} add up to 1: write `dirichlet(1)`")))
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
    let range = |message: String| PriorError(format!("`{}`: {message}", text.trim()));
    let Some((name, expected)) = FAMILIES.iter().find(|(name, _)| *name == family) else {
        let nearest = nearest(&family, FAMILIES.iter().map(|f| f.0)).unwrap_or("normal");
        return Err(PriorError(format!("there is no prior family `{family}`; the nearest is `{nearest}`")));
    };
    if *name == DIRICHLET {
        if let Some(bad) = arguments.iter().find(|a| **a < LEAST_ARGUMENT) {
            return Err(range(format!("every concentration must be positive, not {bad}")));
        }
        return Ok(Read::Dirichlet(arguments));
    }
    if arguments.len() != expected.len() {
        let names: Vec<&str> = expected.iter().map(|(Argument::Any(n) | Argument::Positive(n))| *n).collect();
        let (count, names) = (expected.len(), names.join(", "));
        return Err(PriorError(format!("`{family}` takes {count} ({names}) arguments, not {}", arguments.len())));
    }
    for (argument, value) in expected.iter().zip(&arguments) {
        if let Argument::Positive(name) = argument
            && *value < LEAST_ARGUMENT
        {
            return Err(range(format!("{name} must be positive, not {value}")));
        }
    }
    match build(name, &arguments) {
        Some(Prior::Uniform { min, max }) if min >= max => Err(range("min must be below max".into())),
        Some(prior) => Ok(Read::One(prior)),
        None => unreachable!("the number of arguments is that of the family"),
    }
}

fn split(text: &str) -> Result<(String, Vec<f64>), PriorError> {
    let syntax = || PriorError(format!("`{}` is not a prior; write it as `normal(0, 2.5)`", text.trim()));
    let (family, rest) = text.trim().split_once('(').ok_or_else(syntax)?;
    let inner = rest.trim_end().strip_suffix(')').ok_or_else(syntax)?;
    let family = family.trim();
    if family.is_empty() || !family.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
        return Err(syntax());
    }
    let arguments: Result<Vec<f64>, _> = inner.split(',').map(|a| a.trim().parse::<f64>()).collect();
    let arguments = arguments.map_err(|_| syntax())?;
    if arguments.iter().any(|a| !a.is_finite() || a.abs() > GREATEST_ARGUMENT) {
        return Err(PriorError(format!("`{}`: arguments must lie within ±{GREATEST_ARGUMENT:e}", text.trim())));
    }
    Ok((family.to_owned(), arguments))
}
