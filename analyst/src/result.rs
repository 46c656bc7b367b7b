//! A finished run, as stated by the coordinator, as a document.

use conclave_common::epsilon;
use conclave_pages::document::{self, Block};
use conclave_pages::object::{rows, text};
use conclave_pages::run::{self, Truth};
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::{as_written, plain_name, thousands, whole};
use conclave_pages::verdict::{Grade, Verdict, other_warnings};
use conclave_pages::{aggregation, released};
use conclave_proto::error::{ErrorCode, Fault};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::output;

/// Keys of every run's object.
const KEYS: [&str; 5] = ["iterations", "chains", "seconds", "posterior", "parties"];

/// Reads a run's object, or a part of it.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|e| unreadable(&e.to_string()))
}

fn unreadable(why: &str) -> Fault {
    Fault::new(ErrorCode::Internal, format!("the coordinator's result cannot be read ({why}): it may run another version"))
}

/// Largest number of rows of a table on one screen.
const FEW: usize = 6;
/// Largest number of parties whose spending is named on one screen.
const MOST_SPENT: usize = 4;

/// A run's JSON object. Programs receive it unchanged.
#[derive(Debug)]
pub(crate) struct RunResult(Value);

impl RunResult {
    /// Reads a run's object.
    pub(crate) fn parse(json: &str) -> Result<Self, Fault> {
        let object: Value = read(json)?;
        match KEYS.iter().find(|key| object[**key].is_null()) {
            Some(key) => Err(unreadable(&format!("missing field `{key}`"))),
            None => Ok(Self(object)),
        }
    }

    /// Returns the path of the draws on the coordinator's machine.
    pub(crate) fn draws(&self) -> Option<&str> {
        self.0["draws"].as_str()
    }

    /// Returns the grade of the answer.
    pub(crate) fn grade(&self) -> Grade {
        self.verdict().grade
    }

    fn verdict(&self) -> Verdict {
        Verdict::of(&self.0)
    }

    /// Formats the full report for a terminal; with `truth`, adds the true values and the errors of the means in posterior sds.
    pub(crate) fn report(&self, truth: Option<Truth<'_>>) -> String {
        document::text_within(&self.document(truth), output::width())
    }

    /// Formats what fits one screen: the verdict, at most [`FEW`] rows of the posterior and of the ratios, and the spending in a sentence.
    /// `more` is the command that prints the rest.
    pub(crate) fn short_report(&self, more: &str) -> String {
        let object = &self.0;
        let mut blocks = self.head();
        blocks.extend(match self.verdict().is_usable() {
            true => self.posterior(None, FEW),
            false => vec![Block::Text(self.withheld(more))],
        });
        blocks.extend(self.refit().or_else(|| self.spent()).map(Block::Text));
        blocks.extend(self.context());
        blocks.extend(other_warnings(object).into_iter().map(Block::Warning));
        if self.verdict().is_usable() {
            blocks.push(Block::Text(format!("Every parameter and all diagnostics: {more}")));
        }
        document::text_within(&blocks, output::width())
    }

    fn document(&self, truth: Option<Truth<'_>>) -> Vec<Block> {
        let object = &self.0;
        let mut blocks = self.head();
        blocks.extend(self.posterior(truth, usize::MAX));
        if released::is_adequate(object) {
            blocks.extend(run::surrogate(object).map(Block::Text));
            blocks.extend(run::surrogate_table(object, truth, usize::MAX).map(|table| self.marked(table)));
        }
        blocks.extend(run::chains(object));
        blocks.push(self.refit().map_or_else(|| Block::Table(self.spending()), Block::Text));
        blocks.extend(self.context());
        blocks.extend(other_warnings(object).into_iter().map(Block::Warning));
        blocks.extend(object["budget_error"].as_str().map(|sentence| Block::Text(sentence.to_owned())));
        blocks
    }

    /// Returns the verdict, the next step, and how the run went.
    fn head(&self) -> Vec<Block> {
        let verdict = self.verdict();
        [verdict.line(), verdict.next(), self.headline()].into_iter().filter(|text| !text.is_empty()).map(Block::Text).collect()
    }

    /// Returns who is protected from whom, and the job that this one continues.
    fn context(&self) -> Vec<Block> {
        let extends = self.0["extends"].as_str();
        let extends = extends.map(|job| format!("This job continues job {job}; figures cover only its own draws and spending."));
        aggregation::summary(&self.0).into_iter().chain(extends).map(Block::Text).collect()
    }

    /// States that a refit costs nothing; `None` for a run.
    fn refit(&self) -> Option<String> {
        let job = self.0["refit_of"].as_str()?;
        Some(format!("No party was queried and nothing was charged: the only spending is that of job {job}."))
    }

    /// States the spending in one sentence, by the parties that spent most.
    fn spent(&self) -> Option<String> {
        let mut parties: Vec<&Value> = rows(&self.0, "parties").iter().collect();
        parties.sort_by(|a, b| b["epsilon_spent"].as_f64().unwrap_or(0.0).total_cmp(&a["epsilon_spent"].as_f64().unwrap_or(0.0)));
        let one = |party: &&Value| {
            let shown = |key: &str, show: fn(f64) -> String| party[key].as_f64().map_or_else(|| "-".to_owned(), show);
            format!(
                "{} of {} at {}",
                shown("epsilon_spent", epsilon::spent),
                shown("epsilon_budget", as_written),
                plain_name(text(party, "name"))
            )
        };
        let named: Vec<String> = parties.iter().take(MOST_SPENT).map(one).collect();
        let others = parties.len().saturating_sub(MOST_SPENT);
        let others = if others > 0 { format!("; less at {others} others") } else { String::new() };
        (!named.is_empty()).then(|| format!("Epsilon spent: {}{others}.", named.join(", ")))
    }

    /// States why no figure is shown. `more` is the command that shows the figures of an answer that is not usable.
    fn withheld(&self, more: &str) -> String {
        let object = &self.0;
        if released::is_adequate(object) {
            return format!("No figure is shown, since none can be relied on. To look anyway: {more}");
        }
        let prior = if object["refit_of"].is_string() { "Choose a wider prior. " } else { "" };
        format!(
            "{prior}No interval is shown, since none would be reliable; the figures are in the JSON object, under \"inadequate\"."
        )
    }

    /// Marks the caption of a table whose figures cannot be relied on.
    fn marked(&self, table: Table) -> Block {
        if self.verdict().is_usable() {
            return Block::Table(table);
        }
        let caption = format!("! Not usable, not to be reported: {}", table.caption());
        Block::Table(table.with_caption(caption))
    }

    /// Returns at most `limit` rows of each table of the posterior, or the reasons why the releases do not suffice for one.
    fn posterior(&self, truth: Option<Truth<'_>>, limit: usize) -> Vec<Block> {
        let object = &self.0;
        if !released::is_adequate(object) {
            return vec![Block::Text(self.withheld(""))];
        }
        let given = if released::is_from_releases(object) { ", given the parties' releases" } else { "" };
        let all = rows(object, "posterior").len();
        let part = if all > limit { format!(", the first {limit} of {all} parameters") } else { String::new() };
        let caption =
            format!("Posterior{given}, on the scale of the priors (numeric columns coded to [-1, 1] by their bounds){part}");
        let posterior = run::posterior(object, &caption, truth, limit);
        let ratios = run::ratios(object).filter(|_| all <= limit);
        std::iter::once(posterior).chain(ratios).chain(run::restricted_means(object)).map(|table| self.marked(table)).collect()
    }

    /// Returns the budget that each party has spent on this job.
    fn spending(&self) -> Table {
        let columns: [Column<'_, Value>; 2] =
            [("party", &|party| Cell::name(text(party, "name"))), ("records", &|party| Cell::figure(&party["records"], whole))];
        let parties = rows(&self.0, "parties");
        Table::new("Privacy spent on this job", parties, &columns).beside(parties, &run::SPENDING)
    }

    /// Summarises the run in one line.
    fn headline(&self) -> String {
        let object = &self.0;
        let (chains, seconds) = (object["chains"].as_u64().unwrap_or(0), object["seconds"].as_f64().unwrap_or(0.0));
        if let Some(job) = object["refit_of"].as_str() {
            return format!("A refit of job {job}: {chains} chains in {seconds:.1} s, from the releases of its parties.");
        }
        let ended = run::ended(object);
        // Chains without a test accept every step, except in a final polish; a choice is no proposal.
        let untested = &object["stochastic_gradients"];
        let tested = untested.is_null() || !untested["polish"].is_null();
        let proposes = !released::is_from_releases(object) && tested && object["ops"].is_null();
        let rate = object["acceptance_rate"].as_f64().filter(|_| proposes);
        let accepted = rate.map(|rate| format!(", {:.0}% of proposals accepted", 100.0 * rate)).unwrap_or_default();
        let rounds = thousands(object["iterations"].as_u64().unwrap_or(0));
        format!("{rounds} rounds of {chains} chains in {seconds:.1} s{accepted}; {ended}.")
    }
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
            "0.410  0.020",
            "hospital-a",
            "100,000",
            "! Not usable: R-hat is not defined",
            "The noise share is 20%.",
            "continues job 4f-1",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!result.report(None).contains("true"));
    }

    /// The warning of a budget that protects little is on either form, once.
    #[test]
    fn a_weak_budget_is_warned_of_once() {
        let mut object: Value = serde_json::from_str(RESULT).unwrap();
        object["privacy_warnings"] = serde_json::json!(["privacy.epsilon = 25 is above 20"]);
        let result = RunResult::parse(&object.to_string()).unwrap();
        for text in [result.report(None), result.short_report("conclave summary 4f --all")] {
            assert_eq!(text.matches("is above 20").count(), 1, "{text}");
        }
    }

    /// The short form has few rows, the spending in a sentence, and the command that prints the rest.
    #[test]
    fn one_screen_has_the_verdict_first_and_few_rows() {
        let mut object: Value = serde_json::from_str(RESULT).unwrap();
        let row = object["posterior"][0].clone();
        object["posterior"] = vec![row; 40].into();
        object["posterior"].as_array_mut().unwrap().iter_mut().for_each(|row| row["rhat"] = 1.03.into());
        let text = RunResult::parse(&object.to_string()).unwrap().short_report("conclave summary 4f --all");
        assert!(text.starts_with("◐ Preliminary: the largest R-hat is 1.030"), "{text}");
        for part in ["the first 6 of 40 parameters", "Epsilon spent: 2.99 of 3 at hospital-a.", "conclave summary 4f --all"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.lines().count() <= 24 && !text.contains("Privacy spent on this job"), "{text}");
    }

    /// The figures of an answer that is not usable stand behind another command, and are marked there.
    #[test]
    fn an_answer_that_is_not_usable_looks_like_none() {
        let mut object: Value = serde_json::from_str(RESULT).unwrap();
        object["posterior"].as_array_mut().unwrap().truncate(1);
        let result = RunResult::parse(&object.to_string()).unwrap();
        let text = result.short_report("conclave summary 4f --all");
        assert!(text.starts_with("! Not usable: the largest R-hat is 1.200"), "{text}");
        assert!(text.contains("To look anyway: conclave summary 4f --all"), "{text}");
        for figure in ["median", "0.41", "Every parameter"] {
            assert!(!text.contains(figure), "{figure} in {text}");
        }
        let all = result.report(None);
        assert!(all.contains("! Not usable, not to be reported: Posterior") && all.contains("0.410"), "{all}");
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
    fn the_columns_follow_the_level_of_the_intervals() {
        let plain = RunResult::parse(RESULT).unwrap().report(None);
        assert!(plain.contains("5%  median") && plain.contains("95%") && !plain.contains("2.5%"), "{plain}");
        let asked =
            RESULT.replacen("\"q95\":0.44", "\"q95\":0.44,\"interval\":{\"level\":0.95,\"low\":0.3611,\"high\":0.4622}", 1);
        let text = RunResult::parse(&asked).unwrap().report(None);
        for part in ["2.5%", "97.5%", "0.361", "0.462"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("0.440"), "{text}");
    }

    #[test]
    fn a_refit_says_that_nothing_was_charged() {
        let refit = RESULT.replace("\"extends\":\"4f-1\"", "\"refit_of\":\"4f-1\"");
        let text = RunResult::parse(&refit).unwrap().report(None);
        assert!(text.contains("A refit of job 4f-1: 4 chains"), "{text}");
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
        for part in ["fitted to 4,800 released", "+1.4 sd  0.432  0.022     0.011         0.410", "p = 0.47"] {
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
