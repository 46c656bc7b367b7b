//! The text of a job file.

use std::fmt::Write as _;
use std::path::Path;

use conclave_common::job::{JobError, JobSpec};
use toml::{Table, Value};

/// The parts of a job that the options state.
pub(crate) struct Outline<'a> {
    pub(crate) name: &'a str,
    pub(crate) parties: &'a [String],
    pub(crate) formula: &'a str,
    pub(crate) family: &'a str,
    pub(crate) df: Option<f64>,
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    /// The estimated number of records of each party.
    pub(crate) records: Option<u64>,
}

/// A fault of the columns' file, or of the job.
#[derive(Debug)]
pub(crate) enum TextFault {
    Columns(String),
    Job(JobError),
}

impl TextFault {
    /// Returns the message; a fault of the columns names their file.
    pub(crate) fn in_file(&self, path: &Path) -> String {
        match self {
            Self::Columns(message) => format!("{}: {message}", path.display()),
            Self::Job(error) if error.key.starts_with("columns") => format!("{}: {error}", path.display()),
            Self::Job(error) => error.to_string(),
        }
    }
}

/// Returns the text of a job with the declared columns that its formula needs, and the names of its parameters.
pub(crate) fn job_file(outline: &Outline<'_>, columns: &str) -> Result<(String, Vec<String>), TextFault> {
    let file: Table =
        columns.parse().map_err(|error: toml::de::Error| TextFault::Columns(error.to_string().trim_end().to_owned()))?;
    let Some(Value::Table(columns)) = file.get("columns") else {
        let message = "has no [columns] table: declare each column under one, such as age = { min = 0, max = 100 }";
        return Err(TextFault::Columns(message.to_owned()));
    };
    let spec = JobSpec::parse(&written(outline, columns.iter().collect())).map_err(TextFault::Job)?;
    let used = spec.model.columns();
    let mut needed: Vec<(&String, &Value)> = columns.iter().filter(|(name, _)| used.contains(&name.as_str())).collect();
    needed.sort_by_key(|(name, _)| used.iter().position(|known| known == name));
    Ok((written(outline, needed), spec.draw_names()))
}

fn written(outline: &Outline<'_>, columns: Vec<(&String, &Value)>) -> String {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    let parties = match outline.parties {
        [] => "[\"party-a\", \"party-b\"] # replace by the names of the data owners".to_owned(),
        parties => Value::Array(parties.iter().map(|party| Value::String(party.clone())).collect()).to_string(),
    };
    let df = outline.df.map(|df| format!("df = {}\n", Value::Float(df))).unwrap_or_default();
    let mut text = format!(
        "name = {}\nalgorithm = \"auto\"\nparties = {parties}\n\n[model]\nformula = {}\nfamily = {}\n{df}\n# Public knowledge, never read off the data: \
         values outside are clamped.\n[columns]\n",
        quoted(outline.name),
        quoted(outline.formula),
        quoted(outline.family),
    );
    for (name, declaration) in columns {
        let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        let key = if bare { name.clone() } else { quoted(name) };
        // Writing to a text does not fail.
        let _ = writeln!(text, "{key} = {}", inline(declaration));
    }
    let _ = write!(text, "\n[privacy]\nepsilon = {:?}\ndelta = {:?}\n", outline.epsilon, outline.delta);
    let _ = match outline.records {
        Some(records) => write!(text, "\n[plan]\nrecords = {records} # of each party, an estimate\n"),
        None => write!(text, "\n# [plan]\n# records = 5_000 # of each party, an estimate that `conclave plan` needs\n"),
    };
    text
}

/// Writes a declaration on one line, `min` before `max`.
fn inline(declaration: &Value) -> String {
    let Value::Table(table) = declaration else { return declaration.to_string() };
    let mut entries: Vec<(&String, &Value)> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str() == "max");
    let entries = entries.into_iter().map(|(key, value)| format!("{key} = {value}"));
    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const COLUMNS: &str = "# of the registry\nother = 1\n[columns]\nunused = { binary = true }\nage = { min = 18, max = 100 }\n\
        [columns.died]\nbinary = true\n[columns.\"the ward\"]\nlevels = [\"a \\\"b\\\"\", \"c\"]\n";

    fn outline<'a>(formula: &'a str, parties: &'a [String]) -> Outline<'a> {
        Outline { name: "a \"study\"", parties, formula, family: "binomial", df: None, epsilon: 3.0, delta: 1e-6, records: None }
    }

    #[test]
    fn a_job_declares_the_columns_of_its_formula_alone() {
        let parties = ["a", "b"].map(str::to_owned);
        let formula = "died ~ ns(age, knots = [40]) + `the ward` + (1 | party)";
        let (text, parameters) = job_file(&outline(formula, &parties), COLUMNS).unwrap();
        let spec = JobSpec::parse(&text).unwrap();
        assert_eq!((spec.name.as_str(), spec.parties.len(), spec.privacy.budget.epsilon), ("a \"study\"", 2, 3.0));
        assert!(!text.contains("unused") && text.contains("\nage = { min = 18, max = 100 }\n"), "{text}");
        assert_eq!(parameters[..4], ["intercept", "ns(age)[1]", "ns(age)[2]", "the ward[c]"]);
        assert!(parameters.iter().any(|name| name == "intercept[a]"), "{parameters:?}");
        let (text, _) = job_file(&outline("died ~ age", &[]), COLUMNS).unwrap();
        assert_eq!(JobSpec::parse(&text).unwrap().parties, ["party-a", "party-b"]);
    }

    #[test]
    fn faults_name_the_formula_or_the_file() {
        let fault =
            |formula: &str, columns: &str| job_file(&outline(formula, &[]), columns).unwrap_err().in_file(Path::new("c.toml"));
        let shown = fault("died ~ agee", COLUMNS);
        assert!(shown.contains("the nearest is `age`") && shown.ends_with("\n  died ~ agee\n         ^^^^"), "{shown}");
        assert!(fault("died ~ age", "age = 1").starts_with("c.toml: has no [columns] table"));
        assert!(fault("died ~ age", "[columns").starts_with("c.toml: "));
        assert!(fault("died ~ age", "[columns]\nage = { mni = 1 }\n").starts_with("c.toml: columns.age.mni"));
    }
}
