//! The model of the demo's records, and the adjustable constants of the demo's design.

use conclave_common::schema::ColumnSpec;

/// The outcome's column: 0 or 1.
pub(super) const OUTCOME: &str = "readmitted";

/// A predictor's column, its public bounds, its true coefficient on the scale of the priors (the column coded to
/// [-1, 1] by its bounds), and its distribution.
pub(super) struct Predictor {
    pub(super) name: &'static str,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) coefficient: f64,
    pub(super) values: Values,
}

/// Distribution of a predictor's values.
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

/// Effective draws at which the demo's chains end: its budget is for a demonstration, not for a study.
pub(super) const ENOUGH_ESS: u32 = 50;
/// R-hat at which the demo's chains end.
pub(super) const ENOUGH_RHAT: f64 = 1.1;
/// Maximum draws per chain, by default.
pub(super) const MAX_DRAWS: u64 = 5000;
/// Draws of the demo with `ops`, each charged separately.
pub(super) const OPS_DRAWS: u64 = 20;

/// Warm-up of the demo's job, in sweeps.
pub(super) const WARMUP_SWEEPS: u64 = 25;
/// Total noise of all parties in the demo's job. Below the efficient 1.75: each round costs more and is more informative, and the
/// rounds that fit into half a minute use the budget fully.
pub(super) const TOTAL_NOISE_SD: f64 = 1.5;
/// Ratio of the data's budget to the job's epsilon: enough for about three such jobs.
pub(super) const DATA_BUDGET_FACTOR: f64 = 2.0;
pub(super) const ANALYST: &str = "alice";
pub(super) const COORDINATOR: &str = "main";

impl Predictor {
    /// Returns the public bounds as a job declares them.
    pub(super) fn column(&self) -> ColumnSpec {
        ColumnSpec::Numeric { min: self.min, max: self.max }
    }
}

/// Returns the true value of every parameter, by name, in the model's order.
pub(super) fn coefficients() -> Vec<(&'static str, f64)> {
    std::iter::once(("intercept", INTERCEPT)).chain(PREDICTORS.iter().map(|p| (p.name, p.coefficient))).collect()
}

/// Returns the name of a party by its number: hospital-a, …, hospital-z, hospital-aa, …
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
