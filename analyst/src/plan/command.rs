//! `conclave plan`: forecasts a job's result before any budget is spent.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::{Algorithm, JobSpec};
use conclave_draws::result::AggregationRow;
use conclave_inference::planner;
use conclave_inference::planner::{AlgorithmPlan, ChainRange, Plan};
use conclave_inference::sampler::Expected;
use conclave_proto::error::Fault;
use serde_json::{Map, Value};

use super::plan_input::{PlanInput, Rehearsal};
use super::text;
use super::weights::ErrorByWeights;
use crate::faults::{input, internal};
use crate::files;
use crate::output::{say, say_json};
use crate::submit::read_job;

/// Forecast what a job will achieve, before any budget is spent
///
/// First compares the algorithms that can fit the job: the expected error and interval width, from bounds, priors and record
/// counts only, in the best case and in a worse one. Then details the job's own algorithm. For a release made once: the
/// requirements of a usable posterior. For a chain: the rounds that each party can afford under each accounting, the acceptance
/// rate, the effective draws of each parameter, and changes that would yield more.
///
/// Record counts come from a [plan] table in the job or from a rehearsal, and so does a guess of the posterior, on the scale of
/// the priors. Without a guess, a chain's rounds and effective draws are given as a range, from bounds and priors only. No data
/// owner is queried.
#[derive(Args)]
#[command(after_help = "Examples:\n  conclave plan job.toml\n  conclave plan job.toml --rehearsal rehearsal.json --json\n\n\
    In the job file:\n  [plan]\n  records = 100_000                     # of each party, or { hospital-a = 80_000, … }\n  \
    posterior.intercept = { mean = -1.0, sd = 0.01 }\n  posterior.age = { mean = 0.4, sd = 0.02 }\n  \
    correlations = [[\"intercept\", \"age\", -0.6]]       # between correlated parameters")]
pub(crate) struct PlanArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Output of `conclave rehearse JOB.toml --json`; record counts in [plan] replace its own. Draws of a rehearsal without an
    /// adequate answer are no guess of the posterior: the plan states its reasons, and uses its record counts only
    #[arg(long, value_name = "FILE")]
    rehearsal: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

struct JobPlan {
    algorithms: Vec<AlgorithmPlan>,
    /// For a chain with a guess of the posterior.
    chain: Option<Plan>,
    /// For a chain of ratios or of gradients without a guess.
    range: Option<ChainRange>,
    /// For a job that releases once.
    expected: Option<Expected>,
    /// For a job that may weight records.
    weights: Option<ErrorByWeights>,
}

pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode, Fault> {
    let text = read_job(&args.job)?;
    let rehearsed = args.rehearsal.as_deref().map(|path| Ok((files::read(path)?, path.display().to_string()))).transpose()?;
    let rehearsal = rehearsed.as_ref().map(|(text, name)| Rehearsal { text, name });
    let (json, text) = planned(&text, &args.job.display().to_string(), rehearsal)?;
    if args.json {
        say_json(&json);
    } else {
        say!("{}", text.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Plans a job: the JSON object, and its text. `rehearsal` is the object of a rehearsal of this job.
///
/// # Errors
/// A job without a number of records, or that the planner refuses.
pub(crate) fn plan(job: &str, rehearsal: Option<&str>) -> Result<(Value, String), Fault> {
    planned(job, "the job", rehearsal.map(|text| Rehearsal { text, name: "the rehearsal" }))
}

/// Plans a job of this name in messages.
fn planned(job: &str, name: &str, rehearsal: Option<Rehearsal<'_>>) -> Result<(Value, String), Fault> {
    let unfit = |e: &dyn std::fmt::Display| input(format!("{name}: {e}"));
    let spec = JobSpec::parse(job).map_err(|e| unfit(&e))?;
    let given = PlanInput::of(&spec, name, rehearsal)?;
    let plan = JobPlan::of(&spec, &given).map_err(|e| unfit(&e))?;
    let mut json = plan.object(&spec).map_err(|e| internal(e.to_string()))?;
    if let Some(withheld) = &given.withheld {
        json["withheld"] = serde_json::to_value(withheld).map_err(|e| internal(e.to_string()))?;
    }
    Ok((json, plan.text(&spec, &given)))
}

impl JobPlan {
    fn of(spec: &JobSpec, given: &PlanInput) -> Result<Self, planner::PlanError> {
        let mut plans = Vec::new();
        if let Some(guess) = &given.guess {
            if spec.algorithm.proposes() {
                plans.push((spec.algorithm, planner::plan(spec, guess)?));
            }
            // For comparison with the job's own algorithm; omitted if the guess does not fit.
            for algorithm in [Algorithm::Hmc, Algorithm::Penalty].into_iter().filter(|algorithm| *algorithm != spec.algorithm) {
                let beside = spec.by(algorithm).ok();
                plans.extend(beside.and_then(|beside| Some((algorithm, planner::plan(&beside, guess).ok()?))));
            }
        }
        let algorithms = planner::compare(spec, &given.records, &plans)?;
        let weights = ErrorByWeights::of(spec, &given.records);
        let expected = if spec.algorithm.proposes() { None } else { planner::expect(spec, &given.records)? };
        let chain = plans.into_iter().find(|(of, _)| *of == spec.algorithm).map(|(_, plan)| plan);
        let unguessed = (spec.algorithm.walks_on_ratios() || spec.algorithm.follows_gradients()) && chain.is_none();
        let range = if unguessed { planner::range(spec, &given.records).ok() } else { None };
        Ok(Self { algorithms, chain, range, expected, weights })
    }

    /// Returns one JSON object, with a chain's plan at its top level.
    fn object(&self, spec: &JobSpec) -> Result<Value, serde_json::Error> {
        let mut object = match &self.chain {
            Some(plan) => serde_json::to_value(plan)?.as_object().cloned().unwrap_or_default(),
            None => Map::new(),
        };
        object.insert("algorithm".to_owned(), spec.algorithm.as_str().into());
        object.insert("chosen".to_owned(), spec.chosen.into());
        if !spec.algorithm.proposes() {
            object.insert("expected".to_owned(), serde_json::to_value(self.expected)?);
        }
        if let Some(weights) = &self.weights {
            object.insert("weights".to_owned(), serde_json::to_value(weights)?);
        }
        if let Some(range) = &self.range {
            object.insert("range".to_owned(), serde_json::to_value(range)?);
        }
        if let Some(row) = AggregationRow::from_spec(spec) {
            object.insert("aggregation".to_owned(), serde_json::to_value(row)?);
        }
        object.insert("algorithms".to_owned(), serde_json::to_value(&self.algorithms)?);
        Ok(object.into())
    }

    fn text(&self, spec: &JobSpec, given: &PlanInput) -> String {
        let own = match &self.chain {
            Some(plan) => text::chain(spec, plan),
            None if spec.algorithm.proposes() => text::without_a_guess(spec, self.range.as_ref()),
            None => text::released_once(spec, &given.records, self.expected.as_ref()),
        };
        let masked = text::masked(spec).map(|words| words + "\n").unwrap_or_default();
        let own = own + &self.weights.as_ref().map(|weights| weights.text(spec)).unwrap_or_default();
        let withheld = given.withheld.as_ref().map(text::withheld).unwrap_or_default();
        format!("{withheld}{}\n{masked}{own}", text::algorithms(spec, &self.algorithms))
    }
}
