//! `conclave plan`: what a job will buy, before anything is spent.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::{Algorithm, JobSpec};
use conclave_draws::result::AggregationRow;
use conclave_inference::planner;
use conclave_inference::planner::{AlgorithmPlan, ChainRange, Plan};
use conclave_inference::sampler::Expected;
use conclave_proto::error::{ErrorCode, Fault};
use serde_json::{Map, Value};

use super::known::{Known, input};
use super::text;
use crate::output::{say, say_json};
use crate::submit::read_job;

/// Say what a job will buy, before anything is spent
///
/// First every algorithm that could answer the job, beside each other: what error and width of interval to expect, from bounds, priors
/// and record counts alone, in the best case and in a worse one. Then more of the job's own: of one that releases once, what it would
/// take; of a chain, how many rounds each party can afford by each accounting, how many proposals will be accepted, how many effective
/// draws each parameter gets, and what to change to get more.
///
/// Record counts come from a [plan] table in the job or from a rehearsal. So does a guess of the posterior, on the scale of the
/// priors; without one, rounds and effective draws of a chain are told as a range, from bounds and priors alone. No data owner is asked.
#[derive(Args)]
#[command(after_help = "Examples:\n  conclave plan job.toml\n  conclave plan job.toml --rehearsal rehearsal.json --json\n\n\
    In the job file:\n  [plan]\n  records = 100_000                     # of each party, or { hospital-a = 80_000, … }\n  \
    posterior.intercept = { mean = -1.0, sd = 0.01 }\n  posterior.age = { mean = 0.4, sd = 0.02 }\n  \
    correlations = [[\"intercept\", \"age\", -0.6]]       # of those that go together")]
pub(crate) struct PlanArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// What `conclave rehearse JOB.toml --json` printed; record counts of [plan] take the place of its own
    #[arg(long, value_name = "FILE")]
    rehearsal: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is found out of a job.
struct Found {
    algorithms: Vec<AlgorithmPlan>,
    /// Of a job by a chain, where there is a guess of the posterior.
    chain: Option<Plan>,
    /// Of a job by a chain of ratios or of gradients, where there is none.
    range: Option<ChainRange>,
    /// Of a job that releases once.
    expected: Option<Expected>,
}

pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode, Fault> {
    let text = read_job(&args.job)?;
    let spec = JobSpec::parse(&text).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    let known = Known::of(&spec, &args.job, args.rehearsal.as_deref())?;
    let found = Found::of(&spec, &known).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    if args.json {
        let json = found.object(&spec).map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
        say_json(&json);
    } else {
        say!("{}", found.text(&spec, &known).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

impl Found {
    fn of(spec: &JobSpec, known: &Known) -> Result<Self, planner::PlanError> {
        let mut plans = Vec::new();
        if let Some(guess) = &known.guess {
            if spec.algorithm.proposes() {
                plans.push((spec.algorithm, planner::plan(spec, guess)?));
            }
            // Beside the job's own; of a guess that does not fit it, nothing is told.
            for algorithm in [Algorithm::Hmc, Algorithm::Penalty].into_iter().filter(|algorithm| *algorithm != spec.algorithm) {
                let beside = spec.by(algorithm).ok();
                plans.extend(beside.and_then(|beside| Some((algorithm, planner::plan(&beside, guess).ok()?))));
            }
        }
        let algorithms = planner::compare(spec, &known.records, &plans)?;
        let expected = if spec.algorithm.proposes() { None } else { planner::expect(spec, &known.records)? };
        let chain = plans.into_iter().find(|(of, _)| *of == spec.algorithm).map(|(_, plan)| plan);
        let unguessed = (spec.algorithm.walks_on_ratios() || spec.algorithm.follows_gradients()) && chain.is_none();
        let range = if unguessed { planner::range(spec, &known.records).ok() } else { None };
        Ok(Self { algorithms, chain, range, expected })
    }

    /// One JSON object: a chain's plan at its top, where there is one.
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
        if let Some(range) = &self.range {
            object.insert("range".to_owned(), serde_json::to_value(range)?);
        }
        if let Some(row) = AggregationRow::from_spec(spec) {
            object.insert("aggregation".to_owned(), serde_json::to_value(row)?);
        }
        object.insert("algorithms".to_owned(), serde_json::to_value(&self.algorithms)?);
        Ok(object.into())
    }

    fn text(&self, spec: &JobSpec, known: &Known) -> String {
        let own = match &self.chain {
            Some(plan) => text::chain(spec, plan),
            None if spec.algorithm.proposes() => text::without_a_guess(spec, self.range.as_ref()),
            None => text::released_once(spec, &known.records, self.expected.as_ref()),
        };
        let masked = text::masked(spec).map(|words| words + "\n").unwrap_or_default();
        format!("{}\n{masked}{own}", text::algorithms(spec, &self.algorithms))
    }
}
