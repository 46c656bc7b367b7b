//! `conclave plan`: what a job will buy, before anything is spent.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_common::planner::{self, Guess, Plan};
use conclave_proto::error::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::json;

use crate::files;
use crate::output::say;
use crate::submit::read_job;
use crate::table::{number, table, thousands};

/// Say what a job will buy, before anything is spent
///
/// How many rounds each party can afford by each accounting, how many proposals will be accepted, how many effective
/// draws each parameter gets, and what to change to get more; of a job that releases once, what error and width to expect. What can't be known comes from a [plan] table in the job
/// (records, and a guess of the posterior on the scale of the priors) or from a rehearsal. No data owner is asked.
#[derive(Args)]
#[command(after_help = "Examples:\n  conclave plan job.toml\n  conclave plan job.toml --rehearsal rehearsal.json --json\n\n\
    In the job file:\n  [plan]\n  records = 100_000                     # of each party, or { hospital-a = 80_000, … }\n  \
    posterior.intercept = { mean = -1.0, sd = 0.01 }\n  posterior.age = { mean = 0.4, sd = 0.02 }")]
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

pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode, Fault> {
    let text = read_job(&args.job)?;
    let spec = JobSpec::parse(&text).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    if !spec.algorithm.proposes() {
        return once(&spec, args);
    }
    let guess = guess(&spec, &args.job, args.rehearsal.as_deref())?;
    let plan = planner::plan(&spec, &guess).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    if args.json {
        let json = serde_json::to_string(&plan).map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
        say!("{json}");
    } else {
        say!("{}", report(&spec, &plan).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// What to expect of a job that releases once: no guess of the posterior is needed.
fn once(spec: &JobSpec, args: &PlanArgs) -> Result<ExitCode, Fault> {
    let job = args.job.display();
    let records = spec.plan.as_ref().and_then(|plan| plan.records.clone()).ok_or_else(|| {
        input(format!("{job}: plan.records: missing; write records = 100_000, a guess for each party, under [plan]"))
    })?;
    let expected = planner::expect(spec, &records).map_err(|e| input(format!("{job}: {e}")))?;
    if args.json {
        let object = json!({ "algorithm": spec.algorithm.as_str(), "chosen": spec.chosen, "expected": expected });
        say!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("algorithm = \"{}\"", spec.algorithm.as_str());
    if let Some(why) = spec.chosen {
        text += &format!(", chosen since {why}");
    }
    text += ".\n\n";
    text += &match expected {
        None => "The whole budget is released in one or two rounds; how wide the posterior is follows from the records: `conclave rehearse` tells.".to_owned(),
        Some(e) => format!(
            "At (epsilon, delta) = ({}, {}) and {} records in all, the noise will move each mean by {:.2} posterior sds and make intervals {:.2} times as\n\
             wide as without privacy, in the best case: predictors without correlation, even over their bounds. Half a posterior sd would take epsilon\n\
             {:.1}, or {} records in all.{}",
            spec.privacy.budget.epsilon,
            spec.privacy.budget.delta,
            thousands(records.iter().sum::<u64>()),
            e.expected_error,
            e.interval_factor,
            e.epsilon_for_half,
            thousands(e.records_for_half as u64),
            if e.refused { "\n\nThe job will be refused before anything is asked: no answer would be left." } else { "" }
        ),
    };
    say!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// The part of a rehearsal's object that a plan is made from.
#[derive(Deserialize)]
struct Rehearsed {
    plan: Guess,
}

fn guess(spec: &JobSpec, job: &Path, rehearsal: Option<&Path>) -> Result<Guess, Fault> {
    let given = spec.plan.clone().unwrap_or_default();
    if let Some(path) = rehearsal {
        let text = files::read(path)?;
        let Rehearsed { plan } = serde_json::from_str(&text)
            .map_err(|e| input(format!("{} is not what `conclave rehearse --json` prints: {e}", path.display())))?;
        return Ok(match given.records {
            Some(records) if plan.records.len() == records.len() => plan.with_records(records),
            _ => plan,
        });
    }
    let missing = |key: &str, example: &str| {
        let job = job.display();
        input(format!(
            "{job}: plan.{key}: missing; write {example} under [plan], or give --rehearsal FILE from `conclave rehearse`"
        ))
    };
    let records = given.records.ok_or_else(|| missing("records", "records = 100_000, a guess for each party,"))?;
    let moments = given.posterior.ok_or_else(|| {
        let name = spec.model.parameter_names().into_iter().next().unwrap_or_default();
        missing("posterior", &format!("posterior.{name:?} = {{ mean = …, sd = … }} and so on for every parameter"))
    })?;
    let sd: Vec<f64> = moments.iter().map(|m| m.sd).collect();
    Ok(Guess::independent(records, moments.iter().map(|m| m.mean).collect(), &sd))
}

fn report(spec: &JobSpec, plan: &Plan) -> String {
    let budget = &spec.privacy.budget;
    let header = ["party", "Gaussian DP", "zCDP", "penalty paper", "its Theorem 1"];
    let rows: Vec<Vec<String>> = plan
        .parties
        .iter()
        .map(|p| {
            let counts = [p.iterations_gdp, p.iterations_zcdp, p.iterations_advanced, p.iterations_theorem_1];
            std::iter::once(p.name.clone()).chain(counts.map(thousands)).collect()
        })
        .collect();
    let mut text = format!(
        "Rounds of {} chains that (epsilon, delta) = ({}, {}) holds at each party, by each accounting (ledgers count the first):\n{}\n",
        spec.sampler.chains,
        budget.epsilon,
        budget.delta,
        table(&header, &rows)
    );
    text += &format!(
        "The run: {} rounds, {} kept draws per chain, ended by {}; {:.0}% of the budget spent, {:.0}% before the first kept draw.\n\
         {}\n\n",
        thousands(plan.iterations),
        thousands(plan.draws),
        if plan.stopped_by == "budget" { "the budget" } else { "its last draw" },
        100.0 * plan.budget_share,
        100.0 * plan.warmup_share,
        accepted(plan)
    );
    let known = |x: f64, text: String| if x.is_finite() { text } else { "–".to_owned() };
    let row = |row: &planner::ParameterPlan| {
        vec![row.name.clone(), known(row.ess, format!("{:.0}", row.ess)), known(row.kappa, number(row.kappa))]
    };
    let rows: Vec<Vec<String>> = plan.ess.iter().map(row).collect();
    text += &table(&["parameter", "effective draws", "kappa"], &rows);
    for sentence in &plan.advice {
        text += &format!("\n- {sentence}");
    }
    text
}

fn accepted(plan: &Plan) -> String {
    if plan.acceptance_rate.is_nan() {
        return "Acceptance and effective draws follow from the records' statistics: `conclave rehearse` tells them.".to_owned();
    }
    let (rate, small) = (100.0 * plan.acceptance_rate, 100.0 * plan.acceptance_small_steps);
    format!("Proposals accepted: {rate:.0}% ({small:.0}% in the limit of small steps).")
}

fn input(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const JOB: &str = "name = \"m\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
        [columns]\ny = { min = -3, max = 5 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";

    #[test]
    fn what_a_plan_cannot_tell_of_algorithm_3_is_left_out() {
        let text = JOB.replace("name = \"m\"", "name = \"m\"\nalgorithm = \"penalty-exp-family\"");
        let spec = JobSpec::parse(&format!("{text}[sampler]\ndraws = 500\nwarmup = 5\n")).unwrap();
        let plan = planner::plan(&spec, &Guess::independent(vec![800, 800], vec![0.1], &[0.1])).unwrap();
        assert_eq!((plan.stopped_by, plan.draws), ("draws", 500));
        let text = report(&spec, &plan);
        assert!(!text.contains("NaN") && text.contains("conclave rehearse") && text.contains('–'), "{text}");
        let json: serde_json::Value = serde_json::to_value(&plan).unwrap();
        assert!(json["acceptance_rate"].is_null() && json["ess"][0]["ess"].is_null(), "{json}");
    }

    #[test]
    fn a_guess_comes_from_the_job_or_a_rehearsal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rehearsal.json");
        std::fs::write(&path, r#"{"job":"rehearsal","plan":{"records":[100,300],"mean":[0.1],"covariance":[[0.04]]}}"#).unwrap();
        let spec = |extra: &str| JobSpec::parse(&format!("{JOB}{extra}")).unwrap();
        let job = Path::new("job.toml");
        let plain = guess(&spec(""), job, Some(&path)).unwrap();
        assert_eq!((plain.records, plain.covariance), (vec![100, 300], vec![vec![0.04]]));
        let more = guess(&spec("[plan]\nrecords = 800\n"), job, Some(&path)).unwrap();
        assert_eq!((more.records, more.covariance), (vec![800, 800], vec![vec![0.01]]));
        let own = spec("[plan]\nrecords = 800\nposterior.mean = { mean = 0.5, sd = 0.1 }\n");
        let own = guess(&own, job, None).unwrap();
        assert_eq!((own.mean, own.covariance), (vec![0.5], vec![vec![0.1 * 0.1]]));
        for (extra, word) in [("", "plan.records"), ("[plan]\nrecords = 5\n", "posterior.\"mean\"")] {
            let fault = guess(&spec(extra), job, None).unwrap_err();
            assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains(word), "{fault}");
        }
        std::fs::write(&path, "{}").unwrap();
        assert!(guess(&spec(""), job, Some(&path)).unwrap_err().message.contains("conclave rehearse"));
    }
}
