//! Functions of formulas elsewhere, and what Conclave has for each.

use crate::spelling::nearest;

/// The functions that formulas have.
const KNOWN: [&str; 7] = ["log", "exp", "sqrt", "I", "offset", "ls", "ns"];

/// Names of functions elsewhere, and the remedy here.
const ELSEWHERE: [(&[&str], &str); 8] = [
    (
        &["scale", "center", "standardize", "standardise", "rescale", "zscore"],
        "needs the data's mean and sd, which no job reads: columns are scaled by their declared bounds already, so name the column",
    ),
    (
        &["poly", "hermite", "legendre"],
        "is made orthogonal on the data: write I(age^2) for a power, or ns(age, knots = [40, 60]) for a curve",
    ),
    (
        &["bs", "cr", "cc", "cs", "s", "te", "ti", "t2", "smooth", "pspline", "rcs", "lspline", "mkspline", "gp"],
        "places knots by the data: write public knots, ns(age, knots = [40, 60]) for a smooth curve or ls(age, knots = [40, 60]) for straight lines",
    ),
    (
        &["factor", "as.factor", "ordered", "C", "cat", "Treatment", "Sum", "contr.treatment", "contr.sum", "relevel"],
        "finds its levels in the data: declare them, { levels = [\"a\", \"b\"] } under [columns], the reference first, and name the column",
    ),
    (
        &["cut", "quantile", "ntile", "bin", "ifelse", "where", "case_when", "hashed"],
        "makes categories: store them as a column of the data and declare its levels, or use ls(age, knots = [40, 60])",
    ),
    (
        &["log2", "log10", "log1p", "ln", "logit", "expm1", "abs", "pow", "square", "sin", "cos"],
        "is not available: log, exp, sqrt and I(…) with + - * / ^ are, such as log(cost + 1) or I(age^2)",
    ),
    (
        &["Surv", "cbind", "cox", "strata", "frailty", "cluster", "tt"],
        "is not available: survival times are kind = \"piecewise_exponential\" with `predictors`, without a formula; a rate per time at risk is family = \"poisson\" with offset(log(time))",
    ),
    (
        &["mo", "me", "mi", "mm", "lag", "diff", "exposure", "weights", "trials"],
        "is not available: an exposure is offset(log(days)); store any other transformed value as a column of the data",
    ),
];

/// Returns the message for a function that formulas do not have.
pub(super) fn unknown(name: &str) -> String {
    if let Some((_, remedy)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&name)) {
        return format!("`{name}` {remedy}");
    }
    let hint = nearest(name, KNOWN.into_iter()).map(|known| format!("; the nearest is `{known}`")).unwrap_or_default();
    format!("`{name}` is no function of formulas{hint}; known are {}", KNOWN.join(", "))
}
