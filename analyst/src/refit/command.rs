//! `conclave refit`: what it asks for, and what it prints.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use conclave_common::job::{JobSpec, Refit};
use conclave_draws::attributes;
use conclave_draws::result::{self, Outcome, PartyOutcome, RunResult};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::DrawStore;
use conclave_inference::sampler::{Refitted, RunReport};
use conclave_proto::error::Fault;

use super::releases::{EndedJob, fetch, input};
use crate::client::Connection;
use crate::files;
use crate::output::{say, say_json};
use crate::result::RunResult as ShownResult;

/// The id of a refit, which no coordinator knows.
const JOB: &str = "refit";

const AFTER_HELP: &str = "\
A job of algorithm = \"noisy-statistics\" spends its budget in a few releases. They stay what they are, and this machine infers from them as often \
as you like: no party is asked, none need be attached, and nothing is charged. With the job's own priors and seed the draws are the job's own, bit for bit.

Another prior: --prior takes what [prior] of the job file takes, and stands in the place of the job's entry under that name. A `default` is for \
parameters without an entry of their own. Boxes under [parameters] stay; others follow from the new prior. The adequacy \
checks are made anew: under a prior that leaves the release little to say (prior_share), or that contradicts it (cubic), no interval is shown.

Fewer predictors: --drop, for a linear regression, whose parties release second moments, and for a logistic one of categories alone, whose parties \
release a table: those of fewer columns are a part of them. A predictor is \
named as the job names it; one with levels goes with all of its coefficients, and an interaction is a predictor of its own. Where a score of residuals \
was released after the moments, it is left out and the interval is wider: a score at a point of the larger model is none of the smaller one. For that \
reason nothing can be dropped from other regressions. Rows that held none of a dropped column's levels stay out.

Choosing a prior or a model by what fits is a use of the data like any other: say in a report which were tried.

Examples:
  conclave refit JOB --prior \"default=normal(0, 1)\"
  conclave refit JOB --prior \"age=normal(0, 0.5)\" --out refit.zarr
  conclave refit JOB --drop smoker --drop age:ward --draws 10000 --json";

/// Another posterior from what a finished job's parties released: another prior, fewer predictors, nothing charged
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RefitArgs {
    /// The finished job's id, as `conclave jobs` shows it
    #[arg(value_name = "JOB")]
    job: String,
    /// A parameter's prior, or that of all others as `default`; may be given several times
    #[arg(long, value_name = "NAME=DENSITY")]
    prior: Vec<String>,
    /// A predictor to leave out, of moments or a table; may be given several times
    #[arg(long, value_name = "PREDICTOR")]
    drop: Vec<String>,
    /// Draws per chain; as many as the job asked for unless given
    #[arg(long, value_name = "N")]
    draws: Option<u64>,
    /// Chains; as many as the job's unless given
    #[arg(long, value_name = "N")]
    chains: Option<u64>,
    /// Seed of the draws; the job's unless given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Put the draws there, a Zarr v3 store; must not be there yet
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: RefitArgs) -> Result<ExitCode, Fault> {
    let priors = args.prior.iter().map(|text| prior(text)).collect::<Result<Vec<_>, Fault>>()?;
    if priors.is_empty() && args.drop.is_empty() {
        let message =
            "nothing is changed: give another prior, --prior \"default=normal(0, 1)\", or a predictor to leave out, --drop NAME";
        return Err(input(message.to_owned()));
    }
    if let Some(out) = &args.out
        && !files::is_vacant(out)?
    {
        return Err(input(format!("{} is not empty: name a folder that is not there yet", out.display())));
    }
    let job = fetch(&args.connection, &args.job).await?;
    let refit = Refit { priors: &priors, drop: &args.drop, draws: args.draws, chains: args.chains, seed: args.seed };
    let unfit = |why: &dyn std::fmt::Display| input(format!("job {} can't be refitted: {why}", args.job));
    let spec = refit.of(&job.text).map_err(|e| unfit(&e))?;
    let began = Instant::now();
    let refitted = job.releases.refit(&spec).map_err(|e| unfit(&e))?;
    let result = keep(&args, &spec, &job, refitted, began)?;
    if args.json {
        say_json(&result.to_json());
    } else {
        say!("{}", ShownResult::parse(&result.to_json())?.report(None).trim_end());
        if let Some(out) = &args.out {
            say!("\nDraws: {}", out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Summarises the draws, and writes them where they are wanted.
fn keep(args: &RefitArgs, spec: &JobSpec, job: &EndedJob, refitted: Refitted, began: Instant) -> Result<RunResult, Fault> {
    let (names, chains) = (spec.model.parameter_names(), spec.sampler.chains as usize);
    let out = args.out.as_deref();
    let written = |e: std::io::Error| Fault::of_file(out.unwrap_or(Path::new("")), "be written", &e);
    let mut draws = match out {
        Some(out) => DrawStore::create(out, chains, &names, &attributes::at_start(spec, JOB)).map_err(written)?,
        None => DrawStore::in_memory(Path::new(""), chains, &names),
    };
    refitted.draws.into_iter().for_each(|draw| draws.push(&draw.into()));
    let parties = spec.parties.iter().zip(&job.parties);
    let outcome = Outcome {
        stopped_by: job.stopped_by,
        budget_party: None,
        iterations: 0,
        seconds: began.elapsed().as_secs_f64(),
        refit_of: Some(args.job.clone()),
        warnings: Vec::new(),
        report: RunReport { inference: Some(refitted.inference), ..RunReport::default() },
        parties: parties
            .map(|(name, held)| PartyOutcome { name: name.clone(), metadata: Some(*held), spent: Spent::default() })
            .collect(),
    };
    let result = result::build(spec, JOB, out, &draws, &outcome);
    if out.is_some() {
        draws.finish(spec, &attributes::at_end(spec, JOB, &result)).map_err(written)?;
    }
    Ok(result)
}

/// `NAME=DENSITY`; a level's name may hold `=`, a density does not.
fn prior(text: &str) -> Result<(String, String), Fault> {
    let parts = text.rsplit_once('=').map(|(name, density)| (name.trim(), density.trim()));
    match parts.filter(|(name, density)| !name.is_empty() && !density.is_empty()) {
        Some((name, density)) => Ok((name.to_owned(), density.to_owned())),
        None => {
            Err(input(format!("--prior {text:?}: write it as NAME=DENSITY, \"age=normal(0, 0.5)\" or \"default=normal(0, 1)\"")))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::error::ErrorCode;

    #[test]
    fn a_prior_is_a_name_and_a_density() {
        let owned = |name: &str, density: &str| (name.to_owned(), density.to_owned());
        assert_eq!(prior("age = normal(0, 0.5)").unwrap(), owned("age", "normal(0, 0.5)"));
        assert_eq!(prior("ward[a=b]=normal(0, 1)").unwrap(), owned("ward[a=b]", "normal(0, 1)"));
        for text in ["age", "=normal(0, 1)", "age="] {
            let fault = prior(text).unwrap_err();
            assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("NAME=DENSITY"), "{fault}");
        }
    }
}
