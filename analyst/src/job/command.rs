//! The options of `conclave job`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conclave_proto::error::Fault;
use serde_json::json;

use super::text::{Outline, job_file};
use crate::faults::input;
use crate::files;
use crate::output::{note, say, say_json};

/// Write a job file from a regression formula
///
/// The columns and their public bounds come from a TOML file, never from data: bounds that are taken from records reveal the
/// records. The job is checked before it is written, and an error shows its place in the formula.
#[derive(Args)]
#[command(after_help = "\
Example:
  cat > columns.toml <<'END'
  [columns]
  died = { binary = true }
  age = { min = 18, max = 100 }
  ward = { levels = [\"medicine\", \"surgery\"] }    # the first level is the reference
  END
  conclave job --formula \"died ~ ns(age, knots = [40, 60]) * ward + (1 | party)\" --family logistic \\
      --columns columns.toml --party hospital-a --party hospital-b --records 5000 -o job.toml
  conclave plan job.toml

Formulas, as in R:
  a + b, a:b, a*b, (a + b)^2     columns, interactions, both, all pairs
  0 + a, a - 1                   no intercept
  log(a), sqrt(a), exp(a)        functions, and I(…) for arithmetic: I(age^2), I(dose / weight)
  ls(age, knots = [40, 60])      straight lines between public knots
  ns(age, knots = [40, 60])      natural cubic spline; the declared bounds are the boundary knots
  offset(a), offset(log(days))   a term with coefficient 1; the latter makes counts rates per day
  (1 | party)                    an intercept for each party
  (1 + age || party)             and a slope for each party, independent of it
  `blood pressure`               a column whose name is not a word")]
pub(crate) struct FormulaArgs {
    /// The formula: outcome ~ terms
    #[arg(long, value_name = "FORMULA")]
    formula: String,
    /// Distribution of the outcome: logistic (or binomial), linear (or gaussian), poisson, negative_binomial, student_t
    #[arg(long, value_name = "FAMILY")]
    family: String,
    /// TOML file with a [columns] table that declares every column of the formula; other tables are not read
    #[arg(long, value_name = "COLUMNS.toml")]
    columns: PathBuf,
    /// A data owner that takes part; once for each
    #[arg(long = "party", value_name = "PARTY")]
    parties: Vec<String>,
    /// Name of the job
    #[arg(long, value_name = "NAME", default_value = "study")]
    name: String,
    /// Degrees of freedom of student_t
    #[arg(long, value_name = "DF")]
    df: Option<f64>,
    /// Privacy budget of the job at each owner
    #[arg(long, value_name = "EPSILON", default_value_t = 3.0)]
    epsilon: f64,
    /// Delta of that budget
    #[arg(long, value_name = "DELTA", default_value_t = 1e-6)]
    delta: f64,
    /// Your estimate of each party's number of records, for `conclave plan`
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Write a new file instead of printing the job
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object: the job's text and the names of its parameters
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &FormulaArgs) -> Result<ExitCode, Fault> {
    let file = files::read(&args.columns)?;
    let FormulaArgs { formula, family, parties, name, df, epsilon, delta, records, .. } = args;
    let outline = Outline { name, parties, formula, family, df: *df, epsilon: *epsilon, delta: *delta, records: *records };
    let (text, parameters) = job_file(&outline, &file).map_err(|fault| input(fault.in_file(&args.columns)))?;
    if args.json {
        args.output.as_deref().map_or(Ok(()), |path| files::write_new(path, &text))?;
        say_json(&json!({ "job": text, "parameters": parameters }));
        return Ok(ExitCode::SUCCESS);
    }
    let first = if records.is_none() { ", after an estimate of the records under [plan]" } else { "" };
    let next = match &args.output {
        Some(path) => {
            files::write_new(path, &text)?;
            format!("Written to {path}. Next{first}:\n  conclave plan {path}", path = path.display())
        }
        None => {
            say!("{}", text.trim_end());
            format!("Save it as job.toml. Next{first}:\n  conclave plan job.toml")
        }
    };
    note!("Parameters: {}.\n{next}", parameters.join(", "));
    if parties.is_empty() {
        note!("No --party was given: replace the names under `parties` by those of the data owners.");
    }
    Ok(ExitCode::SUCCESS)
}
