//! A finished run, as stated by the coordinator, formatted for people.

use std::collections::HashMap;

use conclave_common::text::one_line;
use conclave_pages::{aggregation, barker, gradients};
use conclave_proto::error::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::table::{number, table, thousands};

/// The parts of a run's JSON object that are shown to people. Programs receive the object unchanged.
#[derive(Debug, Deserialize)]
pub(crate) struct RunResult {
    pub(crate) iterations: u64,
    pub(crate) chains: u32,
    pub(crate) seconds: f64,
    pub(crate) acceptance_rate: Option<f64>,
    pub(crate) stopped_by: Option<String>,
    pub(crate) posterior: Vec<Row>,
    pub(crate) parties: Vec<PartyRow>,
    pub(crate) draws: Option<String>,
    #[serde(default)]
    pub(crate) extends: Option<String>,
    #[serde(default)]
    pub(crate) refit_of: Option<String>,
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    #[serde(default)]
    pub(crate) budget_error: Option<String>,
    #[serde(default)]
    pub(crate) adequacy: Option<Adequacy>,
    #[serde(default)]
    pub(crate) surrogate: Option<Surrogate>,
    /// Diagnostics of gradient-driven chains; null if gradients drove none.
    #[serde(default)]
    pub(crate) gradients: Value,
    /// Diagnostics of stochastic-gradient chains without an acceptance test.
    #[serde(default)]
    pub(crate) stochastic_gradients: Value,
    /// Choices made among candidates; null for other algorithms.
    #[serde(default)]
    pub(crate) ops: Value,
    /// Accuracy of Barker's test; null for other algorithms.
    #[serde(default)]
    pub(crate) barker: Value,
    /// Unmasking of secure sums; null if each answer was opened separately.
    #[serde(default)]
    pub(crate) aggregation: Value,
    #[serde(default)]
    pub(crate) ratios: Vec<Ratio>,
}

/// The factor by which one unit of a predictor multiplies the odds or the rate.
#[derive(Debug, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) q5: Option<f64>,
    pub(crate) median: Option<f64>,
    pub(crate) q95: Option<f64>,
}

/// Adequacy of a posterior inferred from releases made once.
#[derive(Debug, Deserialize)]
pub(crate) struct Adequacy {
    pub(crate) adequate: bool,
    #[serde(default)]
    pub(crate) reasons: Vec<String>,
}

/// The same posterior by a quadratic fitted to all released log ratios.
#[derive(Debug, Deserialize)]
pub(crate) struct Surrogate {
    pub(crate) parameters: HashMap<String, Fitted>,
    pub(crate) answers: u64,
    pub(crate) p_value: Option<f64>,
    pub(crate) suppressed: Option<String>,
}

/// One parameter of the fitted quadratic.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Fitted {
    pub(crate) mean: Option<f64>,
    pub(crate) sd: Option<f64>,
    pub(crate) noise_sd: Option<f64>,
}

/// One parameter; undefined figures (no draws, one chain) are null.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) mean: Option<f64>,
    pub(crate) sd: Option<f64>,
    pub(crate) q5: Option<f64>,
    pub(crate) median: Option<f64>,
    pub(crate) q95: Option<f64>,
    pub(crate) ess_bulk: Option<f64>,
    pub(crate) ess_tail: Option<f64>,
    pub(crate) rhat: Option<f64>,
    #[serde(default)]
    pub(crate) noise_share: Option<f64>,
    #[serde(default)]
    pub(crate) sd_data: Option<f64>,
}

/// One party's share of the run.
#[derive(Debug, Deserialize)]
pub(crate) struct PartyRow {
    pub(crate) name: String,
    pub(crate) records: Option<u64>,
    pub(crate) queries: u64,
    pub(crate) epsilon_spent: f64,
    pub(crate) delta: f64,
    pub(crate) epsilon_budget: f64,
    pub(crate) mu_squared_spent: f64,
    pub(crate) epsilon_zcdp: f64,
}

/// Puts every text of an object, names included, on one line.
fn flatten_lines(value: &mut Value) {
    match value {
        Value::String(text) => *text = one_line(text),
        Value::Array(values) => values.iter_mut().for_each(flatten_lines),
        Value::Object(object) => {
            object.values_mut().for_each(flatten_lines);
            *object = std::mem::take(object).into_iter().map(|(name, value)| (one_line(&name), value)).collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl RunResult {
    /// Reads a run's object. Its texts come from the coordinator: each is put on one line and can't control a terminal.
    pub(crate) fn parse(json: &str) -> Result<Self, Fault> {
        let read = || {
            let mut object: Value = serde_json::from_str(json)?;
            flatten_lines(&mut object);
            serde_json::from_value(object)
        };
        read().map_err(|e| {
            Fault::new(ErrorCode::Internal, format!("the coordinator's result cannot be read ({e}): it may run another version"))
        })
    }

    /// Formats the posterior; with `truth`, adds the true value and the error of the mean in posterior sds.
    pub(crate) fn posterior_table(&self, truth: Option<&[(&str, f64)]>) -> String {
        let mut header = vec!["parameter"];
        if truth.is_some() {
            header.extend(["true", "off by"]);
        }
        header.extend(["mean", "sd", "5%", "median", "95%", "ESS bulk", "ESS tail", "R-hat"]);
        if self.adequacy.is_some() {
            header.extend(["sd without noise", "noise"]);
        }
        let still = |row: &Row| row.sd == Some(0.0);
        let whole = |x: Option<f64>, undefined: &str| x.map_or_else(|| undefined.to_owned(), |x| format!("{x:.0}"));
        let rows: Vec<Vec<String>> = self
            .posterior
            .iter()
            .map(|row| {
                let mut cells = vec![row.name.clone()];
                cells.extend(truth.iter().flat_map(|truth| beside(truth, &row.name, row.mean, row.sd)));
                cells.extend([row.mean, row.sd, row.q5, row.median, row.q95].map(show));
                let undefined = if still(row) { "not defined" } else { "-" };
                cells.extend([row.ess_bulk, row.ess_tail].map(|ess| whole(ess, undefined)));
                cells.push(row.rhat.map_or_else(|| undefined.to_owned(), |x| format!("{x:.3}")));
                if self.adequacy.is_some() {
                    cells.push(show(row.sd_data));
                    cells.push(row.noise_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", 100.0 * share)));
                }
                cells
            })
            .collect();
        table(&header, &rows)
    }

    /// Returns the noun for the released numbers that the quadratic is fitted to.
    fn fitted_quantity(&self) -> &'static str {
        if self.gradients.is_null() && self.stochastic_gradients.is_null() { "log ratios" } else { "components of gradients" }
    }

    /// Formats the fitted quadratic's posterior beside that of the chains, or the reason for its absence.
    fn surrogate(&self, surrogate: &Surrogate, truth: Option<&[(&str, f64)]>) -> String {
        if let Some(reason) = &surrogate.suppressed {
            return format!("No quadratic fitted to the released {} is shown: {reason}.\n", self.fitted_quantity());
        }
        let mut header = vec!["parameter"];
        if truth.is_some() {
            header.extend(["true", "off by"]);
        }
        header.extend(["mean", "sd", "noise sd", "chains' mean", "chains' sd"]);
        let row = |row: &Row| {
            let fitted = surrogate.parameters.get(&row.name)?;
            let mut cells = vec![row.name.clone()];
            cells.extend(truth.iter().flat_map(|truth| beside(truth, &row.name, fitted.mean, fitted.sd)));
            cells.extend([fitted.mean, fitted.sd, fitted.noise_sd, row.mean, row.sd].map(show));
            Some(cells)
        };
        let rows: Vec<Vec<String>> = self.posterior.iter().filter_map(row).collect();
        format!(
            "Surrogate: the same posterior by a quadratic fitted to {} released {}, at no further charge. Its sd includes the \
             noise's share, \
             noise sd. Both posteriors rest on the same releases: compare them, don't average them (cubic terms: p = {}).\n{}",
            thousands(surrogate.answers),
            self.fitted_quantity(),
            show(surrogate.p_value),
            table(&header, &rows)
        )
    }

    /// Formats the budget that each party has spent on this job.
    pub(crate) fn spending_table(&self) -> String {
        let header = ["party", "records", "releases", "epsilon spent", "of", "delta", "mu^2", "epsilon (zCDP)"];
        let rows: Vec<Vec<String>> = self
            .parties
            .iter()
            .map(|party| {
                vec![
                    party.name.clone(),
                    party.records.map_or_else(|| "-".to_owned(), thousands),
                    thousands(party.queries),
                    number(party.epsilon_spent),
                    party.epsilon_budget.to_string(),
                    format!("{:?}", party.delta),
                    number(party.mu_squared_spent),
                    number(party.epsilon_zcdp),
                ]
            })
            .collect();
        table(&header, &rows)
    }

    /// Summarises the run in one line.
    pub(crate) fn headline(&self) -> String {
        if let Some(job) = &self.refit_of {
            let chains = self.chains;
            return format!("A refit of job {job}: {chains} chains in {:.1} s, from the releases of its parties.", self.seconds);
        }
        let ended = match self.stopped_by.as_deref() {
            Some("budget") => "ended by the budget",
            Some("draws") => "all draws made",
            Some("until") => "enough draws made, the rest of the budget unspent",
            Some("futility" | "hopeless") => "stopped for futility, the rest of the budget not spent",
            Some("released") if !self.ops.is_null() => "all draws made, each chosen by an owner",
            Some("released") => "the whole budget released, and all draws made from the releases",
            Some("policy") => "ended by a data owner",
            Some("clip") => "stopped because the clip truncates too much: the draws target another posterior",
            Some(other) => other,
            None => "ended early",
        };
        // Chains without a test accept every step, except in a final polish; a choice is no proposal.
        let tested = self.stochastic_gradients.is_null() || !self.stochastic_gradients["polish"].is_null();
        let proposes = self.adequacy.is_none() && tested && self.ops.is_null();
        let accepted = self
            .acceptance_rate
            .filter(|_| proposes)
            .map(|rate| format!(", {:.0}% of proposals accepted", 100.0 * rate))
            .unwrap_or_default();
        format!("{} rounds of {} chains in {:.1} s{accepted}; {ended}.", thousands(self.iterations), self.chains, self.seconds)
    }

    /// Formats the posterior, or the reasons why the releases do not suffice for one.
    fn posterior_text(&self, truth: Option<&[(&str, f64)]>) -> String {
        if let Some(adequacy) = self.adequacy.as_ref().filter(|adequacy| !adequacy.adequate) {
            let reasons: String = adequacy.reasons.iter().map(|reason| format!("  - {reason}\n")).collect();
            return format!(
                "Not an adequate answer: no interval is shown, since none would be reliable.\n{reasons}\
                 {}Request a larger epsilon, more records, narrower bounds or fewer predictors; algorithm = \"penalty\" does not \
                 need the checks, but needs even more budget. The figures are in the result's JSON object, under \"posterior\".\n",
                if self.refit_of.is_some() { "Choose a wider prior. " } else { "" }
            );
        }
        let given = if self.adequacy.is_some() { ", given the parties' releases" } else { "" };
        format!(
            "Posterior{given}, on the scale of the priors (numeric columns coded to [-1, 1] by their bounds):\n{}{}",
            self.posterior_table(truth),
            self.ratios_table()
        )
    }

    /// Formats odds or rate ratios below the posterior; empty if there are none.
    fn ratios_table(&self) -> String {
        let Some(first) = self.ratios.first() else { return String::new() };
        let kind = first.kind.replace('_', " ");
        let rows = self
            .ratios
            .iter()
            .map(|ratio| std::iter::once(ratio.name.clone()).chain([ratio.q5, ratio.median, ratio.q95].map(show)).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        format!(
            "\nThe {kind} of one unit of each predictor, in the units of the data:\n{}",
            table(&["predictor", "5%", "median", "95%"], &rows)
        )
    }

    /// Formats the full report for a terminal.
    pub(crate) fn report(&self, truth: Option<&[(&str, f64)]>) -> String {
        let mut text = format!("{}\n\n{}\n", self.headline(), self.posterior_text(truth));
        if let Some(surrogate) = &self.surrogate {
            text += &format!("{}\n", self.surrogate(surrogate, truth));
        }
        let rows =
            gradients::diagnostics(&json!({ "gradients": self.gradients, "stochastic_gradients": self.stochastic_gradients }));
        if !rows.is_empty() {
            let lines: String = rows.iter().map(|(what, words)| format!("  {what}: {words}\n")).collect();
            text += &format!("Gradient-driven chains:\n{lines}\n");
        }
        if let Some(words) = barker::summary(&json!({ "barker": self.barker })) {
            text += &format!("{words}\n");
        }
        text += &match &self.refit_of {
            Some(job) => format!("No party was queried and nothing was charged: the only spending is that of job {job}.\n"),
            None => format!("Privacy spent on this job:\n{}", self.spending_table()),
        };
        if let Some(words) = aggregation::summary(&json!({ "aggregation": self.aggregation })) {
            text += &format!("\n{words}\n");
        }
        if let Some(job) = &self.extends {
            text += &format!("\nThis job continues job {job}; figures cover only its own draws and spending.\n");
        }
        for warning in &self.warnings {
            text += &format!("\nWarning: {warning}\n");
        }
        if let Some(sentence) = &self.budget_error {
            text += &format!("\n{sentence}\n");
        }
        text
    }
}

fn show(x: Option<f64>) -> String {
    x.map_or_else(|| "-".to_owned(), number)
}

/// Returns a parameter's true value and the error of the mean in posterior sds.
fn beside(truth: &[(&str, f64)], name: &str, mean: Option<f64>, sd: Option<f64>) -> [String; 2] {
    let value = truth.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
    let off = match (mean, sd, value) {
        (Some(mean), Some(sd), Some(value)) => format!("{:+.1} sd", (mean - value) / sd),
        _ => "-".to_owned(),
    };
    [show(value), off]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const RESULT: &str = r#"{"job":"j","algorithm":"penalty","iterations":1200,"chains":4,"seconds":3.5,
        "acceptance_rate":0.37,"stopped_by":"budget",
        "posterior":[{"name":"dose","mean":0.41,"sd":0.02,"q5":0.38,"median":0.41,"q95":0.44,"ess_bulk":812.3,
        "ess_tail":700.0,"rhat":1.2,"mcse_mean":0.001},
        {"name":"age","mean":null,"sd":null,"q5":null,"median":null,"q95":null,"ess_bulk":null,"ess_tail":null,
        "rhat":null,"mcse_mean":null}],
        "parties":[{"name":"hospital-a","records":100000,"queries":4800,"epsilon_spent":2.99,"delta":1e-6,
        "epsilon_budget":3.0,"mu_squared_spent":0.41,"epsilon_zcdp":3.2}],"draws":"/x","extends":"4f-1","later_key":1,
        "warnings":["the chains disagree: split R-hat of dose is 1.200, above 1.01: ask for more."],"budget_error":"The noise share is 20%."}"#;

    #[test]
    fn a_result_is_shown_with_its_warnings() {
        let result = RunResult::parse(RESULT).unwrap();
        let text = result.report(Some(&[("dose", 0.4)]));
        for part in [
            "ended by the budget",
            "1,200 rounds",
            "+0.5 sd",
            "hospital-a",
            "100,000",
            "Warning: the chains disagree",
            "The noise share is 20%.",
            "continues job 4f-1",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!result.report(None).contains("true"));
    }

    /// Older runs wrote `hopeless`, the alias of `futility`.
    #[test]
    fn a_stored_result_with_the_older_word_is_read_as_futility() {
        let alias = r#""stopped_by":"hopeless""#;
        for stored in [alias, r#""stopped_by":"futility""#] {
            let text = RESULT.replace(r#""stopped_by":"budget""#, stored);
            let text = RunResult::parse(&text).unwrap().report(None);
            assert!(text.contains("stopped for futility, the rest of the budget not spent"), "{stored}: {text}");
        }
    }

    #[test]
    fn a_refit_says_that_nothing_was_charged() {
        let refit = RESULT.replace("\"extends\":\"4f-1\"", "\"refit_of\":\"4f-1\"");
        let text = RunResult::parse(&refit).unwrap().report(None);
        assert!(text.starts_with("A refit of job 4f-1: 4 chains"), "{text}");
        assert!(text.contains("No party was queried and nothing was charged") && !text.contains("Privacy spent"), "{text}");
    }

    #[test]
    fn the_fitted_quadratic_stands_beside_the_chains_or_says_why_not() {
        let with = |surrogate: &str| RESULT.replacen('{', &format!("{{\"surrogate\":{surrogate},"), 1);
        let fitted = with(
            r#"{"parameters":{"dose":{"mean":0.4321,"sd":0.0222,"noise_sd":0.0111}},"parameters_original":{},"answers":4800,
            "answers_left_out":12,"chi2":1.5,"degrees_of_freedom":2,"p_value":0.47}"#,
        );
        let text = RunResult::parse(&fitted).unwrap().report(Some(&[("dose", 0.4)]));
        for part in ["fitted to 4,800 released", "+1.4 sd  0.4321  0.0222    0.0111        0.4100", "p = 0.4700"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let withheld = with(
            r#"{"parameters":{},"parameters_original":{},"answers":10,"answers_left_out":0,"chi2":null,"degrees_of_freedom":2,
            "p_value":null,"suppressed":"ten are too few"}"#,
        );
        assert!(RunResult::parse(&withheld).unwrap().report(None).contains("is shown: ten are too few."));
    }

    #[test]
    fn another_shape_is_an_error() {
        assert_eq!(RunResult::parse("{}").unwrap_err().code, ErrorCode::Internal);
    }
}
