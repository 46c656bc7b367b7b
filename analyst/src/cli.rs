//! The commands and their options.

use std::ffi::OsString;
use std::future::Future;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conclave_proto::error::Fault;

use crate::faults::{internal, wrong_options};
use crate::{
    account, budget, ca, check, demo, describe, draws, errors, extend, job, jobs, plan, predict, refit, rehearse, report, submit,
    verify_ledger,
};

const ABOUT: &str = "One Bayesian posterior from several data owners who never reveal their records";

const LONG_ABOUT: &str = "\
Conclave draws from one Bayesian posterior over the records of several data owners. Each owner's daemon answers \
every step of a Markov chain with one noised integer, charged beforehand to a durable privacy budget; records never \
leave their owners. This is the analyst's command line.";

const AFTER_HELP: &str = "\
Try it:
  conclave demo                                   three data owners on this machine, under a minute
  conclave account --epsilon 3 --delta 1e-6       the mu that a privacy budget buys

Your own job, before any budget is spent:
  conclave job --formula \"died ~ age * ward\" --family logistic --columns columns.toml -o job.toml
  conclave plan job.toml
  conclave rehearse job.toml --data a.csv --data b.csv

Against running daemons:
  export CONCLAVE_COORDINATOR=https://coordinator.example CONCLAVE_IDENTITY=identity/
  conclave submit job.toml --wait
  conclave budget                                 your remaining budget at each owner
  conclave jobs
  conclave draws JOB --format zarr --out draws/
  conclave report JOB -o report.html              the full result on one page
  conclave extend JOB --wait                      more draws, from the end of a finished job
  conclave refit JOB --prior \"age=normal(0, 1)\"  another prior on the same releases, at no charge
  conclave predict JOB --at \"age=60, treated=1\"   an expected outcome, with its interval

Exit codes: 0 success, 2 invalid input, 3 refused by policy or budget, 4 a party or the coordinator is \
unreachable, 1 anything else.";

#[derive(Parser)]
#[command(name = "conclave", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Job(job::FormulaArgs),
    Describe(describe::DescribeArgs),
    Plan(plan::PlanArgs),
    Rehearse(rehearse::RehearseArgs),
    Check(check::CheckArgs),
    Account(account::AccountArgs),
    Submit(submit::SubmitArgs),
    Budget(budget::BudgetArgs),
    Jobs(jobs::JobsArgs),
    /// Follow a job until it has ended, then print its result
    Watch(jobs::WatchArgs),
    /// End a job; the draws made so far are kept and summarised
    Cancel(jobs::JobArgs),
    /// Print the result of an ended job: posterior, diagnostics, privacy spent
    Summary(jobs::ResultArgs),
    Extend(extend::ExtendArgs),
    Refit(refit::RefitArgs),
    Predict(predict::PredictArgs),
    Draws(draws::DrawsArgs),
    Report(report::ReportArgs),
    VerifyLedger(verify_ledger::VerifyLedgerArgs),
    Errors(errors::ErrorsArgs),
    Ca(ca::CaArgs),
}

/// Parses `args` and runs the command; `json` makes a fault of a wrong command line.
pub(crate) fn run(args: Vec<OsString>, json: bool) -> Result<ExitCode, Fault> {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) if json && error.use_stderr() => return Err(wrong_options(&error)),
        Err(error) => {
            // Help and version are "errors" with code 0; a closed pipe while printing them is harmless.
            let _ = error.print();
            return Ok(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS });
        }
    };
    match cli.command {
        Command::Demo(args) => block_on(demo::run(args)),
        Command::Job(args) => job::run(&args),
        Command::Describe(args) => describe::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Rehearse(args) => rehearse::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Account(args) => account::run(&args),
        Command::Submit(args) => block_on(submit::run(args)),
        Command::Budget(args) => block_on(budget::run(args)),
        Command::Jobs(args) => block_on(jobs::list(args)),
        Command::Watch(args) => block_on(jobs::watch(args)),
        Command::Cancel(args) => block_on(jobs::cancel(args)),
        Command::Summary(args) => block_on(jobs::summary(args)),
        Command::Extend(args) => block_on(extend::run(args)),
        Command::Refit(args) => block_on(refit::run(args)),
        Command::Predict(args) => block_on(predict::run(args)),
        Command::Draws(args) => block_on(draws::run(args)),
        Command::Report(args) => block_on(report::run(args)),
        Command::Errors(args) => errors::run(&args),
        Command::VerifyLedger(args) => verify_ledger::run(&args),
        Command::Ca(args) => ca::run(args),
    }
}

fn block_on(future: impl Future<Output = Result<ExitCode, Fault>>) -> Result<ExitCode, Fault> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| internal(format!("could not start the runtime: {e}")))?
        .block_on(future)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn daemons_stay_hidden() {
        let help = Cli::command().render_long_help().to_string();
        assert!(!help.contains("__"), "{help}");
    }
}
