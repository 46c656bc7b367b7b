//! `conclave refit`: its options and output.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conclave_proto::error::Fault;

use super::infer::{Changes, refit};
use crate::faults::input;
use crate::files;
use crate::inadequate::AdequacyArgs;
use crate::interval::IntervalArgs;
use crate::jobs::JobArgs;
use crate::output::{say, say_json};
use crate::result::RunResult as ShownResult;

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
    /// Write the job with these changes to this file; must not exist
    #[arg(long, value_name = "FILE.toml")]
    job_out: Option<PathBuf>,
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
    if let Some(file) = args.job_out.as_ref().filter(|file| file.exists()) {
        return Err(input(format!("{} already exists", file.display())).with_remedy("choose another path"));
    }
    let client = args.from.connection.open().await?;
    let changes = Changes {
        priors,
        drop: args.drop.clone(),
        without: args.without.clone(),
        draws: args.draws,
        chains: args.chains,
        seed: args.seed,
    };
    let options = args.from.connection.options();
    let (out, level) = (args.out.as_deref(), args.interval.other());
    let refitted = refit(client, &args.from.job, &options, &changes, out, level).await?;
    if let Some(file) = &args.job_out {
        files::write_new(file, &refitted.job)?;
    }
    let json = refitted.json;
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
