//! `conclave refit`: its options and output.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use conclave_common::job::{JobSpec, Refit};
use conclave_draws::attributes;
use conclave_draws::result::{self, Outcome, PartyOutcome};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::DrawStore;
use conclave_inference::sampler::{Refitted, RunReport};
use conclave_proto::error::Fault;

use super::releases::{EndedJob, fetch};
use crate::faults::input;
use crate::files;
use crate::inadequate::AdequacyArgs;
use crate::interval::{self, IntervalArgs};
use crate::jobs::JobArgs;
use crate::output::{say, say_json};
use crate::result::{RunResult as ShownResult, read};

/// Id of a refit, unknown to any coordinator.
const JOB: &str = "refit";

const AFTER_HELP: &str = "\
A job of algorithm = \"noisy-statistics\" spends its budget in a few releases. The releases do not change, and this machine can \
infer from them any number of times: no party is queried or need be attached, and nothing is charged. With the job's own priors \
and seed the draws are identical to the job's.

Another prior: --prior takes the syntax of [prior] in the job file and replaces the job's entry of that name. A `default` \
applies to parameters without their own entry. Boxes under [parameters] stay; others follow from the new prior. The adequacy \
checks are repeated: if the prior dominates the release (prior_share) or contradicts it (cubic), no interval is shown.

Fewer predictors: --drop works for a linear regression, whose parties release second moments, and for a logistic one with \
categorical predictors only, whose parties release a table: the moments or table of fewer columns are a part of them. A \
predictor has its name from the job; a categorical one is dropped with all of its coefficients, and an interaction is a separate \
predictor. If a score of residuals was released after the moments, it is ignored and the interval is wider: a score at a point \
of the larger model is not a score of the smaller one. For the same reason no other regression can drop a predictor. Rows with a \
missing or unlisted level in a dropped column stay excluded.

Fewer parties: --without works for a job with parameters by party, which keeps each party's releases apart. Hyperpriors are \
replaced by --prior \"intercept.sd=half_normal(0.5)\".

Choosing a prior or a model by its fit is a use of the data like any other: report which ones were tried.

Examples:
  conclave refit JOB --prior \"default=normal(0, 1)\"
  conclave refit JOB --prior \"age=normal(0, 0.5)\" --out refit.zarr
  conclave refit JOB --drop smoker --drop age:ward --draws 10000 --json";

/// Infer another posterior from a finished job's releases: another prior or fewer predictors, at no charge
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RefitArgs {
    #[command(flatten)]
    from: JobArgs,
    /// Prior of a parameter, or of all others as `default`; may be given several times
    #[arg(long, value_name = "NAME=DENSITY")]
    prior: Vec<String>,
    /// Predictor to leave out of the moments or the table; may be given several times
    #[arg(long, value_name = "PREDICTOR")]
    drop: Vec<String>,
    /// Party to leave out of a job with parameters by party; may be given several times
    #[arg(long, value_name = "PARTY")]
    without: Vec<String>,
    /// Draws per chain [default: the number that the job requested]
    #[arg(long, value_name = "N")]
    draws: Option<u64>,
    /// Number of chains [default: the job's]
    #[arg(long, value_name = "N")]
    chains: Option<u64>,
    /// Seed of the draws [default: the job's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the draws to this folder, a Zarr v3 store; must not exist
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    interval: IntervalArgs,
    #[command(flatten)]
    adequacy: AdequacyArgs,
}

pub(crate) async fn run(args: RefitArgs) -> Result<ExitCode, Fault> {
    let args = RefitArgs { from: args.from.with_whole_id().await?, ..args };
    let priors = args.prior.iter().map(|text| prior(text)).collect::<Result<Vec<_>, Fault>>()?;
    let more_draws = args.draws.is_some() || args.chains.is_some() || args.seed.is_some();
    if priors.is_empty() && args.drop.is_empty() && args.without.is_empty() && !more_draws {
        let message = "nothing is changed: pass another prior, --prior \"default=normal(0, 1)\", a predictor to leave out, --drop NAME, a party, --without NAME, or more draws, --draws N";
        return Err(input(message.to_owned()));
    }
    if let Some(out) = &args.out
        && !files::is_vacant(out)?
    {
        return Err(input(format!("{} is not empty", out.display())).with_remedy("choose a new folder"));
    }
    let job = fetch(&args.from.connection, &args.from.job).await?;
    let refit = Refit {
        priors: &priors,
        drop: &args.drop,
        without: &args.without,
        draws: args.draws,
        chains: args.chains,
        seed: args.seed,
    };
    let unfit = |why: &dyn std::fmt::Display| input(format!("job {} can't be refitted: {why}", args.from.job));
    let spec = refit.of(&job.text).map_err(|e| unfit(&e))?;
    let began = Instant::now();
    let refitted = job.releases.refit(&spec).map_err(|e| unfit(&e))?;
    let json = keep(&args, &spec, &job, refitted, began)?;
    let shown = ShownResult::parse(&json)?;
    if args.from.json {
        say_json(&json);
    } else {
        say!("{}", shown.report(None).trim_end());
        if let Some(out) = &args.out {
            say!("\nDraws: {}", out.display());
        }
    }
    Ok(args.adequacy.exit_code(shown.grade()))
}

/// Summarises the draws as a JSON object, and writes them to a folder if one is given.
fn keep(args: &RefitArgs, spec: &JobSpec, job: &EndedJob, refitted: Refitted, began: Instant) -> Result<String, Fault> {
    let (names, chains) = (spec.draw_names(), spec.sampler.chains as usize);
    let out = args.out.as_deref();
    let written = |e: std::io::Error| Fault::of_file(out.unwrap_or(Path::new("")), "be written", &e);
    let mut draws = match out {
        Some(out) => DrawStore::create(out, chains, &names, &attributes::at_start(spec, JOB)).map_err(written)?,
        None => DrawStore::in_memory(Path::new(""), chains, &names),
    };
    refitted.draws.into_iter().for_each(|draw| draws.push(&draw.into()));
    let parties = job.parties.iter().filter(|(name, _)| spec.parties.contains(name));
    let outcome = Outcome {
        stopped_by: job.stopped_by,
        budget_party: None,
        iterations: 0,
        seconds: began.elapsed().as_secs_f64(),
        refit_of: Some(args.from.job.clone()),
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
    let Some(level) = args.interval.other() else { return Ok(result.to_json()) };
    let mut object = read(&result.to_json())?;
    let samples: Vec<Vec<&[f64]>> = (0..names.len()).map(|value| draws.samples(value)).collect();
    interval::add(&mut object, spec, &samples, level);
    Ok(object.to_string())
}

/// Parses `NAME=DENSITY`; a level's name may contain `=`, a density does not.
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
