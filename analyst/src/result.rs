//! A finished run, as the coordinator states it, for people.

use std::collections::HashMap;

use conclave_common::text::one_line;
use conclave_pages::{aggregation, barker, gradients};
use conclave_proto::error::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::table::{number, table, thousands};

/// The parts of a run's JSON object that are shown to a person. Programs get the object as it came.
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
    /// How gradients drove the chains; null where none did.
    #[serde(default)]
    pub(crate) gradients: Value,
    /// The same of chains without a test.
    #[serde(default)]
    pub(crate) stochastic_gradients: Value,
    /// What choices among candidates were made; null of another algorithm.
    #[serde(default)]
    pub(crate) ops: Value,
    /// How exactly Barker's test decided; null of another algorithm.
    #[serde(default)]
    pub(crate) barker: Value,
    /// How masked answers were opened; null where each was opened by itself.
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

/// Whether a run that infers from what was released once has an answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Adequacy {
    pub(crate) adequate: bool,
    #[serde(default)]
    pub(crate) reasons: Vec<String>,
}

/// The same question answered by a quadratic fitted to all released log ratios.
#[derive(Debug, Deserialize)]
pub(crate) struct Surrogate {
    pub(crate) parameters: HashMap<String, Fitted>,
    pub(crate) answers: u64,
    pub(crate) p_value: Option<f64>,
    pub(crate) suppressed: Option<String>,
}

/// One parameter of it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Fitted {
    pub(crate) mean: Option<f64>,
    pub(crate) sd: Option<f64>,
    pub(crate) noise_sd: Option<f64>,
}

/// One parameter; figures that do not exist (no draws, one chain) are null.
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

/// One party's part in the run.
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

/// Every text of an object, names included, on one line.
fn keep_on_lines(value: &mut Value) {
    match value {
        Value::String(text) => *text = one_line(text),
        Value::Array(values) => values.iter_mut().for_each(keep_on_lines),
        Value::Object(object) => {
            object.values_mut().for_each(keep_on_lines);
            *object = std::mem::take(object).into_iter().map(|(name, value)| (one_line(&name), value)).collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl RunResult {
    /// Reads a run's object. Its texts are the coordinator's: each stays on its line, and none acts on a terminal.
    pub(crate) fn parse(json: &str) -> Result<Self, Fault> {
        let read = || {
            let mut object: Value = serde_json::from_str(json)?;
            keep_on_lines(&mut object);
            serde_json::from_value(object)
        };
        read().map_err(|e| {
            Fault::new(ErrorCode::Internal, format!("the coordinator's result cannot be read ({e}): it may run another version"))
        })
    }

    /// The posterior table; with `truth`, the true value beside each mean and how many posterior sds lie between.
    pub(crate) fn posterior_table(&self, truth: Option<&[(&str, f64)]>) -> String {
        let mut header = vec!["parameter"];
        if truth.is_some() {
            header.extend(["true", "off by"]);
        }
        header.extend(["mean", "sd", "5%", "median", "95%", "ESS bulk", "ESS tail", "R-hat"]);
        if self.adequacy.is_some() {
            header.extend(["sd without noise", "noise"]);
        }
        let whole = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.0}"));
        let rows: Vec<Vec<String>> = self
            .posterior
            .iter()
            .map(|row| {
                let mut cells = vec![row.name.clone()];
                cells.extend(truth.iter().flat_map(|truth| beside(truth, &row.name, row.mean, row.sd)));
                cells.extend([row.mean, row.sd, row.q5, row.median, row.q95].map(show));
                cells.extend([row.ess_bulk, row.ess_tail].map(whole));
                cells.push(row.rhat.map_or_else(|| "-".to_owned(), |x| format!("{x:.3}")));
                if self.adequacy.is_some() {
                    cells.push(show(row.sd_data));
                    cells.push(row.noise_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", 100.0 * share)));
                }
                cells
            })
            .collect();
        table(&header, &rows)
    }

    /// What a quadratic is fitted to.
    fn fitted(&self) -> &'static str {
        if self.gradients.is_null() && self.stochastic_gradients.is_null() { "log ratios" } else { "components of gradients" }
    }

    /// The fitted quadratic's answer, beside the chains'; or why there is none.
    fn surrogate(&self, surrogate: &Surrogate, truth: Option<&[(&str, f64)]>) -> String {
        if let Some(reason) = &surrogate.suppressed {
            return format!("No quadratic fitted to the released {} is shown: {reason}.\n", self.fitted());
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
            "Surrogate: the same posterior by a quadratic fitted to {} released {}, at no further charge. Its sd has the noise's \
             part, noise sd, in it. Both answers rest on the same releases: compare them, don't average them (cubic terms: p = {}).\n{}",
            thousands(surrogate.answers),
            self.fitted(),
            show(surrogate.p_value),
            table(&header, &rows)
        )
    }

    /// What each party has spent on this job.
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

    /// One line on how the run went.
    pub(crate) fn headline(&self) -> String {
        if let Some(job) = &self.refit_of {
            let chains = self.chains;
            return format!("A refit of job {job}: {chains} chains in {:.1} s, from what its parties released.", self.seconds);
        }
        let ended = match self.stopped_by.as_deref() {
            Some("budget") => "ended by the budget",
            Some("draws") => "all draws made",
            Some("until") => "enough draws made, the rest of the budget not spent",
            Some("hopeless") => "stopped as hopeless, the rest of the budget not spent",
            Some("released") if !self.ops.is_null() => "all draws made, each an owner's own choice",
            Some("released") => "all of the budget released, and all draws made of that",
            Some("policy") => "ended by a data owner",
            Some("clip") => "stopped, since the clip cuts too much: the draws are of another posterior",
            Some(other) => other,
            None => "ended early",
        };
        // Chains without a test take every step, but for the sweeps that may end them; a choice is no proposal.
        let tested = self.stochastic_gradients.is_null() || !self.stochastic_gradients["polish"].is_null();
        let proposes = self.adequacy.is_none() && tested && self.ops.is_null();
        let accepted = self
            .acceptance_rate
            .filter(|_| proposes)
            .map(|rate| format!(", {:.0}% of proposals accepted", 100.0 * rate))
            .unwrap_or_default();
        format!("{} rounds of {} chains in {:.1} s{accepted}; {ended}.", thousands(self.iterations), self.chains, self.seconds)
    }

    /// The posterior, where what was released suffices for one; else why it does not.
    fn answer(&self, truth: Option<&[(&str, f64)]>) -> String {
        if let Some(adequacy) = self.adequacy.as_ref().filter(|adequacy| !adequacy.adequate) {
            let reasons: String = adequacy.reasons.iter().map(|reason| format!("  - {reason}\n")).collect();
            return format!(
                "Not an adequate answer: no interval is shown, since none could be relied on.\n{reasons}\
                 {}Ask for a larger epsilon, more records, narrower bounds or fewer predictors; algorithm = \"penalty\" does not need the checks, and \
                 takes more budget still. The figures are in the result's JSON object, under \"posterior\".\n",
                if self.refit_of.is_some() { "Give a wider prior. " } else { "" }
            );
        }
        let what = if self.adequacy.is_some() { ", given what the parties released" } else { "" };
        format!(
            "Posterior{what}, on the scale of the priors (numeric columns coded to [-1, 1] by their bounds):\n{}{}",
            self.posterior_table(truth),
            self.ratios_table()
        )
    }

    /// Odds or rate ratios, below the posterior; nothing where there are none.
    fn ratios_table(&self) -> String {
        let Some(first) = self.ratios.first() else { return String::new() };
        let what = first.kind.replace('_', " ");
        let rows = self
            .ratios
            .iter()
            .map(|ratio| std::iter::once(ratio.name.clone()).chain([ratio.q5, ratio.median, ratio.q95].map(show)).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        format!(
            "\nThe {what} of one unit of each predictor, as the data have it:\n{}",
            table(&["predictor", "5%", "median", "95%"], &rows)
        )
    }

    /// The whole report for a terminal.
    pub(crate) fn report(&self, truth: Option<&[(&str, f64)]>) -> String {
        let mut text = format!("{}\n\n{}\n", self.headline(), self.answer(truth));
        if let Some(surrogate) = &self.surrogate {
            text += &format!("{}\n", self.surrogate(surrogate, truth));
        }
        let told =
            gradients::diagnostics(&json!({ "gradients": self.gradients, "stochastic_gradients": self.stochastic_gradients }));
        if !told.is_empty() {
            let lines: String = told.iter().map(|(what, words)| format!("  {what}: {words}\n")).collect();
            text += &format!("How gradients drove the chains:\n{lines}\n");
        }
        if let Some(words) = barker::summary(&json!({ "barker": self.barker })) {
            text += &format!("{words}\n");
        }
        text += &match &self.refit_of {
            Some(job) => format!("No party was asked and nothing was charged: all that was spent is what job {job} has spent.\n"),
            None => format!("Privacy spent on this job:\n{}", self.spending_table()),
        };
        if let Some(words) = aggregation::summary(&json!({ "aggregation": self.aggregation })) {
            text += &format!("\n{words}\n");
        }
        if let Some(job) = &self.extends {
            text += &format!("\nThis job continues job {job}; figures are of its own draws and its own spending.\n");
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

/// A parameter's true value, and how many posterior sds the mean is off it.
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
        "warnings":["the chains disagree: split R-hat of dose is 1.200, above 1.01: ask for more."],"budget_error":"Of the spread."}"#;

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
            "Of the spread.",
            "continues job 4f-1",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!result.report(None).contains("true"));
    }

    #[test]
    fn a_refit_says_that_nothing_was_charged() {
        let refit = RESULT.replace("\"extends\":\"4f-1\"", "\"refit_of\":\"4f-1\"");
        let text = RunResult::parse(&refit).unwrap().report(None);
        assert!(text.starts_with("A refit of job 4f-1: 4 chains"), "{text}");
        assert!(text.contains("No party was asked and nothing was charged") && !text.contains("Privacy spent"), "{text}");
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
