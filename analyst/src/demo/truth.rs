//! The model that the demo's records come from, and everything about the demo's design that one may wish to tune.

use conclave_common::schema::ColumnSpec;

/// The outcome's column: 0 or 1.
pub(super) const OUTCOME: &str = "readmitted";

/// A predictor's column, its public bounds, its true coefficient on the scale of the priors (the column coded to
/// [-1, 1] by its bounds), and what values it takes.
pub(super) struct Predictor {
    pub(super) name: &'static str,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) coefficient: f64,
    pub(super) values: Values,
}

/// How a predictor's values are drawn.
pub(super) enum Values {
    /// Each whole number from the predictor's `min` to its `max` is equally likely.
    Whole,
    /// Uniform between `min` and `max`, to two decimals.
    Uniform,
}

/// The true intercept, on the scale of the priors.
pub(super) const INTERCEPT: f64 = -0.3;

/// The predictors, in the order of the columns and of the parameters.
pub(super) const PREDICTORS: [Predictor; 3] = [
    Predictor { name: "treated", min: 0.0, max: 1.0, coefficient: -0.5, values: Values::Whole },
    Predictor { name: "dose", min: 0.0, max: 2.0, coefficient: 0.4, values: Values::Whole },
    Predictor { name: "age", min: 20.0, max: 80.0, coefficient: 0.6, values: Values::Uniform },
];

/// Effective draws and R-hat with which the demo's chains end: its budget is one of a first look, not of a study.
pub(super) const ENOUGH_ESS: u32 = 50;
pub(super) const ENOUGH_RHAT: f64 = 1.1;
/// Draws of a chain, at most, unless they are given.
pub(super) const MOST_DRAWS: u64 = 5000;
/// Draws of the demo by `ops`, each of them charged by itself.
pub(super) const OPS_DRAWS: u64 = 20;

/// Warm-up of the demo's job, in sweeps.
pub(super) const WARMUP_SWEEPS: u64 = 25;
/// Noise of all parties together in the demo's job. Below the 1.75 at which a budget buys most: each round costs and tells
/// more, and so many rounds as half a minute has room for make the most of the budget.
pub(super) const TOTAL_NOISE_SD: f64 = 1.5;
/// The data's budget is this many times the job's epsilon: about three such jobs.
pub(super) const DATA_BUDGET_FACTOR: f64 = 2.0;
/// The analyst.
pub(super) const ANALYST: &str = "alice";
/// The coordinator's name.
pub(super) const COORDINATOR: &str = "main";

impl Predictor {
    /// Its public bounds, as a job declares them.
    pub(super) fn column(&self) -> ColumnSpec {
        ColumnSpec::Numeric { min: self.min, max: self.max }
    }
}

/// The true value of every parameter, by name, in the model's order.
pub(super) fn coefficients() -> Vec<(&'static str, f64)> {
    std::iter::once(("intercept", INTERCEPT)).chain(PREDICTORS.iter().map(|p| (p.name, p.coefficient))).collect()
}

/// The name of the party of this number: hospital-a, …, hospital-z, hospital-aa, …
pub(super) fn party_name(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    letters.iter().rev().fold("hospital-".to_owned(), |mut name, letter| {
        name.push(*letter);
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn party_names_are_distinct_and_valid() {
        assert_eq!(party_name(0), "hospital-a");
        assert_eq!(party_name(25), "hospital-z");
        assert_eq!(party_name(26), "hospital-aa");
        let names: std::collections::BTreeSet<String> = (0..1000).map(party_name).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| conclave_proto::identity::valid_name(name)));
    }
}
