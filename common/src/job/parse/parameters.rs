//! `[prior]` and `[parameters]`: the prior density and the box of each parameter.

use std::collections::BTreeMap;

use super::checks::known_parameters;
use crate::job::error::JobError;
use crate::job::limits::{DEFAULT_BOX, LEAST_POSITIVE, MAX_BOX};
use crate::job::raw::RawInterval;
use crate::parameter::{Constraint, Interval, Prior};

/// Least width of a parameter's box, relative to its greatest magnitude.
const LEAST_WIDTH: f64 = 1e-9;

/// The facts about the parameters, one entry each.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub names: &'a [String],
    pub constraints: &'a [Constraint],
    pub priors: &'a [Prior],
    pub support: &'a [Interval],
}

/// Reads one prior per parameter: the one under its name, else `default` for real parameters, else the model's weak prior of this
/// parameter.
pub(super) fn priors(
    raw: &BTreeMap<String, String>,
    (names, constraints): (&[String], &[Constraint]),
    weak: impl Fn(usize) -> Prior,
    concentration: f64,
) -> Result<Vec<Prior>, JobError> {
    let groups: Vec<&str> = simplexes(constraints).map(|(first, _)| group(&names[first])).collect();
    let also: Vec<&str> = groups.iter().copied().chain(["default"]).collect();
    known_parameters("prior", raw.keys(), names, &also)?;
    let read = |key: &str, text: &str| Prior::parse(text).map_err(|e| JobError::new(format!("prior.{key}"), e.to_string()));
    let default = raw.get("default").map(|text| read("default", text)).transpose()?;
    let mut priors = Vec::with_capacity(names.len());
    while let (Some(name), Some(constraint)) = (names.get(priors.len()), constraints.get(priors.len())) {
        if let Constraint::Simplex { size } = *constraint {
            priors.extend(simplex(raw, &names[priors.len()..priors.len() + size], concentration)?);
            continue;
        }
        let prior = match raw.get(name) {
            Some(text) => read(name, text)?,
            None => {
                let weak = || weak(priors.len());
                default.filter(|_| *constraint == Constraint::Real).unwrap_or_else(weak)
            }
        };
        fits(name, &prior, *constraint)?;
        priors.push(prior);
    }
    Ok(priors)
}

/// Returns the priors to the power of the likelihood.
///
/// # Errors
/// A heavy-tailed prior whose density to the power has no finite integral.
pub(super) fn to_the_power(priors: &[Prior], names: &[String], power: f64) -> Result<Vec<Prior>, JobError> {
    Prior::to_the_power(priors, power).map_err(|at| {
        let message = format!(
            "the density of {} to the power {power} of `model.power_prior` has no finite integral: choose a normal prior or one with a \
             lighter tail, or raise model.power",
            priors[at]
        );
        JobError::new(format!("prior.{}", names[at]), message)
    })
}

/// Reads the prior of a simplex, from the common name of its parameters or the first one's name. `concentration` is the default.
fn simplex(raw: &BTreeMap<String, String>, names: &[String], concentration: f64) -> Result<Vec<Prior>, JobError> {
    let first = names[0].as_str();
    if let Some(other) = names[1..].iter().find(|n| raw.contains_key(*n)) {
        let all = names.join(", ");
        return Err(JobError::new(
            format!("prior.{other}"),
            format!("{all} have one prior, a dirichlet: give it under `{first}`"),
        ));
    }
    let Some((key, text)) = [group(first), first].into_iter().find_map(|key| raw.get(key).map(|text| (key, text))) else {
        return Ok(Prior::dirichlet(&vec![concentration; names.len()]));
    };
    Prior::parse_simplex(text, names.len()).map_err(|e| JobError::new(format!("prior.{key}"), e.to_string()))
}

/// Yields the first parameter and the size of each simplex.
pub(super) fn simplexes(constraints: &[Constraint]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(constraint) = constraints.get(at) {
            let first = at;
            let Constraint::Simplex { size } = *constraint else {
                at += 1;
                continue;
            };
            at += size;
            return Some((first, size));
        }
        None
    })
}

/// Returns `p` for `p[red]` or `p.red`.
fn group(name: &str) -> &str {
    name.split(['[', '.']).next().filter(|g| !g.is_empty()).unwrap_or(name)
}

/// Checks that a prior does not extend beyond the parameter's possible values. Truncation would make it another prior than the
/// one in the file.
fn fits(name: &str, prior: &Prior, constraint: Constraint) -> Result<(), JobError> {
    let (least, greatest) = prior.support();
    let (kind, remedy, fits) = match constraint {
        Constraint::Real => return Ok(()),
        Constraint::Positive => (
            "is positive",
            "half_normal, half_student_t, half_cauchy, gamma, inverse_gamma, exponential, lognormal or a uniform above 0",
            least >= 0.0,
        ),
        _ => ("lies between 0 and 1", "beta or a uniform within (0, 1)", least >= 0.0 && greatest <= 1.0),
    };
    if fits {
        return Ok(());
    }
    Err(JobError::new(format!("prior.{name}"), format!("`{name}` {kind}, but {prior} reaches beyond: use {remedy}")))
}

/// Returns the box of each parameter: the one in the file, else the default, within the parameter's constraint and its prior's
/// support.
///
/// The default is [`DEFAULT_BOX`] units wide either way, or as wide as the prior's reach, and at most [`MAX_BOX`] units. A
/// default box that would cut the core of a prior is refused.
pub(super) fn support(
    raw: &BTreeMap<String, RawInterval>,
    names: &[String],
    constraints: &[Constraint],
    units: &[f64],
    priors: &[Prior],
) -> Result<Vec<Interval>, JobError> {
    known_parameters("parameters", raw.keys(), names, &[])?;
    let one = |(((name, constraint), unit), prior): (((&String, &Constraint), &f64), &Prior)| {
        let unit = unit.max(1.0);
        let fault = |message: String| Err(JobError::new(format!("parameters.{name}"), message));
        // The possible values of the parameter, and the least distance of its box from their limits.
        let (least, greatest, margin) = match constraint {
            Constraint::Real => (-MAX_BOX * unit, MAX_BOX * unit, 0.0),
            Constraint::Positive => (0.0, MAX_BOX * unit, LEAST_POSITIVE),
            Constraint::UnitInterval | Constraint::Simplex { .. } => (0.0, 1.0, LEAST_POSITIVE),
        };
        let written = raw.get(name).map_or((None, None), |i| (i.min, i.max));
        let reach = prior.reach().max(DEFAULT_BOX * unit);
        let (min, max) = (written.0.unwrap_or(least.max(-reach)), written.1.unwrap_or(greatest.min(reach)));
        let wide = |min: f64, max: f64| max - min >= LEAST_WIDTH * min.abs().max(max.abs()).max(LEAST_WIDTH);
        if !(wide(min, max) && min >= least && max <= greatest) {
            let limits =
                if *constraint == Constraint::Real { format!("±{greatest:e}") } else { format!("{least} and {greatest:e}") };
            return fault(format!("needs min < max within {limits}, not min = {min}, max = {max}"));
        }
        let edge = if greatest == 1.0 { 1.0 - margin } else { greatest };
        let (low, high) = prior.support();
        let inside = Interval { min: min.max(least + margin).max(low), max: max.min(edge).min(high) };
        if !wide(inside.min, inside.max) {
            return fault(format!("the support of the prior {prior} lies outside the box from {min} to {max}"));
        }
        match cut(prior, inside, written) {
            None => Ok(inside),
            Some(end) => fault(format!(
                "the prior {prior} reaches beyond {end:e}, the default end of the box of `{name}` unless you set `min` and `max` here \
                 (within {least:e} and {greatest:e}): declare the box, or choose a prior within it"
            )),
        }
    };
    names.iter().zip(constraints).zip(units).zip(priors).map(one).collect()
}

/// Returns the default end of the box that cuts the prior's core, if any. Probabilities that sum to 1 fill their box by
/// themselves.
fn cut(prior: &Prior, inside: Interval, written: (Option<f64>, Option<f64>)) -> Option<f64> {
    if matches!(prior, Prior::Dirichlet { .. }) {
        return None;
    }
    let (low, high) = prior.core();
    let below = written.0.is_none() && low < inside.min && prior.support().0 < inside.min;
    let above = written.1.is_none() && high > inside.max;
    if below { Some(inside.min) } else { above.then_some(inside.max) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use Constraint::{Positive, Real, Simplex, UnitInterval};

    const ALL: [Constraint; 6] = [Real, Positive, UnitInterval, Simplex { size: 3 }, Simplex { size: 3 }, Simplex { size: 3 }];

    fn names() -> Vec<String> {
        ["slope", "sd", "share", "p[a]", "p[b]", "p[c]"].map(str::to_owned).to_vec()
    }

    fn read(table: &[(&str, &str)]) -> Result<Vec<String>, JobError> {
        let raw = table.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Ok(priors(&raw, (&names(), &ALL), |at| Prior::weak(ALL[at], 1.0), 1.0)?.iter().map(Prior::to_string).collect())
    }

    #[test]
    fn each_kind_has_its_default() {
        let simplex = ["dirichlet(1)"; 3];
        let expected = |first: &'static str| [&[first, "half_normal(2.5)", "beta(1, 1)"], &simplex[..]].concat();
        assert_eq!(read(&[]).unwrap(), expected("normal(0, 2.5)"));
        assert_eq!(read(&[("default", "cauchy(0, 1)")]).unwrap(), expected("cauchy(0, 1)"));
    }

    #[test]
    fn a_simplex_has_one_prior() {
        for key in ["p", "p[a]"] {
            let got = read(&[(key, "dirichlet(2, 3, 4)")]).unwrap();
            assert_eq!(got[3..], ["dirichlet(2)", "dirichlet(3)", "dirichlet(4)"]);
        }
        for (key, text, word) in [
            ("p[b]", "dirichlet(1)", "under `p[a]`"),
            ("p", "dirichlet(1, 2)", "one argument or 3"),
            ("p", "beta(1, 1)", "dirichlet(1)"),
            ("q", "dirichlet(1)", "no parameter `q`"),
        ] {
            let error = read(&[(key, text)]).unwrap_err();
            assert!(error.key == format!("prior.{key}") && error.message.contains(word), "{error}");
        }
    }

    #[test]
    fn a_prior_beyond_the_parameter_names_the_remedy() {
        for (key, text, word) in [
            ("sd", "normal(0, 1)", "half_normal"),
            ("sd", "uniform(-1, 1)", "uniform above 0"),
            ("share", "gamma(1, 1)", "use beta"),
            ("share", "uniform(0, 1.5)", "use beta"),
            ("share", "dirichlet(1)", "beta(1, 1)"),
        ] {
            let error = read(&[(key, text)]).unwrap_err();
            assert!(error.key == format!("prior.{key}") && error.message.contains(word), "{error}");
        }
        assert!(read(&[("sd", "inverse_gamma(3, 1)"), ("share", "uniform(0.1, 0.9)"), ("slope", "half_cauchy(1)")]).is_ok());
    }

    #[test]
    fn boxes_keep_off_the_edge_of_what_a_parameter_can_be() {
        let priors = priors(&BTreeMap::new(), (&names(), &ALL), |at| Prior::weak(ALL[at], 1.0), 1.0).unwrap();
        let with = |name: &str, min, max| {
            let raw = BTreeMap::from([(name.to_owned(), RawInterval { min, max, by: None })]);
            support(&raw, &names(), &ALL, &[1.0; 6], &priors).map(|s| s.iter().map(|i| (i.min, i.max)).collect::<Vec<_>>())
        };
        let unit = (LEAST_POSITIVE, 1.0 - LEAST_POSITIVE);
        let default = with("slope", None, None).unwrap();
        assert_eq!(default, [(-1e3, 1e3), (LEAST_POSITIVE, 1e3), unit, unit, unit, unit]);
        assert_eq!(with("sd", Some(0.0), Some(2.0)).unwrap()[1], (LEAST_POSITIVE, 2.0));
        assert_eq!(with("share", Some(0.25), None).unwrap()[2], (0.25, 1.0 - LEAST_POSITIVE));
        assert!(with("sd", Some(-1.0), None).unwrap_err().message.contains("within 0 and"));
        assert!(with("share", None, Some(1.5)).unwrap_err().message.contains("within 0 and 1"));
    }
}
