//! The command line: defines every command and runs it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conclave_ops::terminal;

use super::common::Common;
use super::decide::{ApproveArgs, RefuseArgs};
use super::run::RunArgs;
use super::statement::StatementArgs;
use super::{
    answer, audit, backup, budget, decide, doctor, dossier, init, jobs, ledger, pin, renew, run, statement, status, verify,
};
use crate::error::StartError;

/// A data owner's daemon: answers a coordinator's queries about its local records, within a privacy budget.
#[derive(Debug, Parser)]
#[command(name = "conclave-party", bin_name = "conclave-party", version, no_binary_name = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the ledger and, if there is no key yet, a key and a signing request; with --name and related options, the
    /// configuration too. Fails if a ledger exists.
    Init(init::InitArgs),
    /// Check a certificate from the consortium's CA and install it. The party may keep running.
    Install(renew::InstallArgs),
    /// Make a request for a new certificate, with the same key or a new one. The party may keep running.
    Renew(renew::RenewArgs),
    /// Print this party's name and the fingerprint of its identity key: its line in a list of members that other owners pin.
    Fingerprint(Common),
    /// Check a list of members and print the configuration lines that pin them, and one SHA-256 for all owners to compare in a
    /// call. Changes nothing.
    Pin(pin::PinArgs),
    /// Attach to the coordinator and answer queries until stopped.
    Run(RunArgs),
    /// Check everything that the party depends on, from the coordinator's name to the disk's speed, with remedies. Attaches to
    /// nothing and spends nothing; works while the party is stopped or running.
    Doctor(Common),
    /// Show the spent budget of the data, or raise the promised delta for subsampled releases. Works while the party runs.
    Budget(budget::BudgetArgs),
    /// List every release: time, recipient, charge, and the released number. Works while the party runs.
    Ledger(ledger::LedgerArgs),
    /// Write the ledger as signed JSON lines for `conclave verify-ledger`. Works while the party runs.
    Export(ledger::ExportArgs),
    /// Copy the current ledger, with each entry checked, and the decisions beside it. Works while the party runs.
    Backup(backup::BackupArgs),
    /// Resume with a ledger older than a checkpoint it has already published; the act is recorded with its reason. Stop the party
    /// first.
    Unlock(ledger::ActArgs),
    /// Declare that the data have been refreshed; the act is recorded with its reason. Stop the party first.
    Refresh(ledger::ActArgs),
    /// Confirm that this machine's clock is right, after one that ran ahead has left later times in the ledger and has ended permits
    /// early; the act is recorded with its reason. Stop the party first, and start it afterwards: a running party keeps the latest time
    /// that it has seen.
    ConfirmClock(ledger::ActArgs),
    /// Test the claimed privacy on simulated records: prints a lower bound on the actual privacy loss beside the claim.
    Audit(audit::AuditArgs),
    /// Show whether the party runs and is attached, its jobs, its budget, and warnings. Exit code 0 if it runs, 4 if it
    /// doesn't, 1 if its ledger answers nothing.
    Status(status::StatusArgs),
    /// List the jobs submitted to this party, with their states.
    Jobs(Common),
    /// Show a job's queries and its worst case, and approve it.
    Approve(ApproveArgs),
    /// Reject a job that waits for your decision.
    Reject(RefuseArgs),
    /// Withdraw the consent to a job, also while it runs.
    Revoke(RefuseArgs),
    /// Check the coordinator: replay a job's published log and compare it with this party's ledger, the draws and the result.
    Verify(verify::VerifyArgs),
    /// Compute this owner's own answer to a job, from its records without noise and the other owners' releases. Charges nothing and
    /// sends nothing; passing the answer on is a release of these records without protection.
    ///
    /// WARNING: the answer is a function of these records without any protection. It is for use inside this organisation.
    ///
    /// The command fetches the job's public log from the coordinator and checks it, as `verify` does. It reads the records from `data.path`,
    /// computes the posterior on this machine, writes it to a new file that this user alone may read, and prints a table of it. Beside
    /// each parameter stand the sd of the job's answer and that of these records alone. Works while the party runs.
    ///
    /// It takes finished jobs of algorithm = "noisy-statistics" that released plain scores: logistic, poisson, negative_binomial, student_t
    /// and weibull. Other releases are refused with the reason and the job to ask for. Exit codes are those of `verify`: 3 if the log
    /// fails a check, 2 if there is no own answer, 4 if the coordinator can't be reached.
    Answer(answer::AnswerArgs),
    /// Print a statement on a job: its queries and releases, its guarantees and their limits.
    Statement(StatementArgs),
    /// Print a dossier on this party for security and ethics reviewers: the topics of NIST SP 800-226, each with the command that
    /// checks it again. Works while the party runs.
    Dossier(dossier::DossierArgs),
}

/// Runs the command line. `args` are the arguments without the program's name.
///
/// Exit codes: 0 success, 2 invalid input by the owner, 3 a failed verification, 4 the coordinator can't be reached or (for
/// `status`) the party does not run, 1 anything else.
pub fn cli_main<I: IntoIterator<Item = OsString>>(args: I) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version end here too; a closed terminal is not a failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let done = match cli.command {
        Command::Init(args) => init::init(&args),
        Command::Install(args) => renew::install(&args),
        Command::Renew(args) => renew::renew(&args),
        Command::Fingerprint(common) => pin::fingerprint(&common),
        Command::Pin(args) => pin::pin(&args),
        Command::Run(args) => run::run(args),
        Command::Doctor(common) => doctor::doctor(&common),
        Command::Budget(args) => budget::budget(&args),
        Command::Ledger(args) => ledger::ledger(&args),
        Command::Export(args) => ledger::export(&args),
        Command::Backup(args) => backup::backup(&args),
        Command::Unlock(args) => ledger::unlock(&args),
        Command::Refresh(args) => ledger::refresh(&args),
        Command::ConfirmClock(args) => ledger::confirm_clock(&args),
        Command::Audit(args) => audit::audit(&args),
        Command::Status(args) => status::status(&args),
        Command::Jobs(common) => jobs::jobs(&common),
        Command::Approve(args) => decide::approve(&args),
        Command::Reject(args) => decide::reject(&args),
        Command::Revoke(args) => decide::revoke(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Answer(args) => answer::answer(&args),
        Command::Statement(args) => statement::statement(&args),
        Command::Dossier(args) => dossier::dossier(&args),
    };
    match done {
        Ok(()) | Err(StartError::HungUp) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format_args!("conclave-party: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_the_program() {
        let refused = Cli::try_parse_from(["approve"]).expect_err("a job is missing").to_string();
        assert!(refused.contains("Usage: conclave-party approve"), "{refused}");
    }
}
