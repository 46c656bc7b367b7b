//! The keys of a model with a formula, and its families.

use crate::job::error::JobError;
use crate::job::raw::RawModel;
use crate::spelling::nearest;

/// The families: the regressions' kinds, and the names that they have elsewhere.
const FAMILIES: [(&str, &str); 7] = [
    ("logistic", "logistic"),
    ("linear", "linear"),
    ("poisson", "poisson"),
    ("negative_binomial", "negative_binomial"),
    ("student_t", "student_t"),
    ("gaussian", "linear"),
    ("binomial", "logistic"),
];
const KNOWN: &str = "logistic (or binomial), linear (or gaussian), poisson, negative_binomial and student_t";

/// Returns the kind of a family.
pub(super) fn kind(family: Option<&str>) -> Result<&'static str, JobError> {
    let Some(family) = family else {
        return Err(JobError::new("model.family", format!("is missing: a formula needs one of {KNOWN}")));
    };
    FAMILIES.iter().find(|(name, _)| *name == family).map(|(_, kind)| *kind).ok_or_else(|| {
        let near = nearest(family, FAMILIES.iter().map(|(name, _)| *name));
        let hint = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        JobError::new("model.family", format!("unknown family `{family}`{hint}; known are {KNOWN}"))
    })
}

/// Checks the keys of a model without a formula.
pub(super) fn check_without_formula(raw: &RawModel) -> Result<(), JobError> {
    if raw.kind.is_empty() {
        let message = "is missing: give `kind` with `outcome` and its other keys, or `formula` with `family`";
        return Err(JobError::new("model.kind", message));
    }
    if raw.family.is_some() {
        return Err(JobError::new("model.family", "belongs to a `formula`: without one, `kind` names the model"));
    }
    if raw.outcome.is_empty() {
        return Err(JobError::new("model.outcome", "is missing"));
    }
    Ok(())
}

/// Checks that nothing beside the formula states what it states.
pub(super) fn check_with_formula(raw: &RawModel) -> Result<(), JobError> {
    let stated = [
        ("kind", !raw.kind.is_empty(), "give either `kind` or `formula`; a formula has a `family`"),
        ("outcome", !raw.outcome.is_empty(), "the formula states it, before `~`"),
        ("predictors", raw.predictors.is_some(), "the formula states them, after `~`"),
        ("intercept", !raw.intercept, "the formula states it: `0 +` after `~` leaves the intercept out"),
        ("offset", raw.offset.is_some(), "the formula states it: `+ offset(x)`"),
        ("exposure", raw.exposure.is_some(), "the formula states it: `+ offset(log(x))`"),
    ];
    match stated.into_iter().find(|(_, is_stated, _)| *is_stated) {
        None => Ok(()),
        Some((key, _, message)) => Err(JobError::new(format!("model.{key}"), message)),
    }
}
