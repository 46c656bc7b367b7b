//! `conclave describe`: says what a job file declares.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_proto::error::Fault;
use serde_json::{Map, Value, json};

use crate::faults::input;
use crate::files;
use crate::output::{say, say_json};
use crate::submit::read_job;

/// Describe a job file: parties, model, columns, parameters, budget
///
/// The file is checked as `submit` does. With --json the object also has the text of the file, and the text as it would be
/// signed: with the algorithm and every default that is chosen for the job.
#[derive(Args)]
#[command(after_help = "Example:\n  conclave describe job.toml --json")]
pub(crate) struct DescribeArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DescribeArgs) -> Result<ExitCode, Fault> {
    let (text, signed) = (files::read(&args.job)?, read_job(&args.job)?);
    let spec = JobSpec::parse(&signed).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    if args.json {
        let mut object = object(&spec);
        (object["toml"], object["signed"]) = (text.into(), signed.into());
        say_json(&object);
        return Ok(ExitCode::SUCCESS);
    }
    say!("{}: {} on {}", spec.name, spec.model.kind(), spec.parties.join(", "));
    say!("algorithm {}, epsilon {}, delta {}", spec.algorithm.as_str(), spec.privacy.budget.epsilon, spec.privacy.budget.delta);
    used(&spec).for_each(|(name, column)| say!("column {name}: {}", declared(column)));
    say!("parameters: {}", spec.draw_names().join(", "));
    Ok(ExitCode::SUCCESS)
}

/// Returns a job's name, model, algorithm, parties, columns of the model, parameters, settings and warnings as an object.
pub(crate) fn object(spec: &JobSpec) -> Value {
    let columns: Map<String, Value> = used(spec).map(|(name, column)| (name.to_owned(), declared(column))).collect();
    json!({
        "name": spec.name,
        "algorithm": spec.algorithm.as_str(),
        "parties": spec.parties,
        "model": spec.model.kind(),
        "columns": columns,
        "parameters": spec.draw_names(),
        "chains": spec.sampler.chains,
        "draws_asked": spec.draws_asked(),
        "epsilon": spec.privacy.budget.epsilon,
        "delta": spec.privacy.budget.delta,
        "incomplete_rows": spec.incomplete_rows,
        "warnings": spec.privacy.warnings([]),
    })
}

/// Returns the columns that a party must have, in the model's order.
fn used(spec: &JobSpec) -> impl Iterator<Item = (&str, &ColumnSpec)> {
    spec.model.columns().into_iter().filter_map(|name| Some((name, spec.columns.get(name)?)))
}

fn declared(column: &ColumnSpec) -> Value {
    match column {
        ColumnSpec::Numeric { min, max } => json!({ "min": min, "max": max }),
        ColumnSpec::Binary => json!({ "binary": true }),
        ColumnSpec::Levels(levels) => json!({ "levels": levels.to_vec() }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_job_is_described_by_what_it_declares() {
        let text = "name = \"m\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"ward\"]\n[columns]\n\
            y = { min = -1, max = 9 }\nward = { levels = [\"e\", \"w\"] }\nmore = { binary = true }\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n";
        let object = object(&JobSpec::parse(text).unwrap());
        assert_eq!(object["columns"], json!({ "y": { "min": -1.0, "max": 9.0 }, "ward": { "levels": ["e", "w"] } }));
        assert_eq!((&object["parties"], &object["epsilon"]), (&json!(["a", "b"]), &json!(3.0)));
        assert_eq!(object["parameters"], json!(["intercept", "ward[w]", "sigma"]));
    }
}
