//! The command line names every command and runs it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conclave_ops::terminal;

use super::common::Common;
use super::decide::{ApproveArgs, RefuseArgs};
use super::run::RunArgs;
use super::statement::StatementArgs;
use super::{audit, backup, budget, decide, doctor, init, jobs, ledger, pin, renew, run, statement, status, verify};
use crate::error::StartError;

/// A data owner's daemon: answers a coordinator's queries about the records beside it, within a privacy budget.
#[derive(Debug, Parser)]
#[command(name = "conclave-party", version, no_binary_name = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the ledger, and where there is no key yet, a key and a signing request; with --name and its kin, the configuration too.
    /// Refuses where a ledger is.
    Init(init::InitArgs),
    /// Check a certificate that came back from the consortium's CA and put it in place. The party may go on running.
    Install(renew::InstallArgs),
    /// Make a request for a new certificate, with the same key or a new one. The party may go on running.
    Renew(renew::RenewArgs),
    /// Print this party's name and the fingerprint of its identity key: its line in a list of members, for other owners to pin.
    Fingerprint(Common),
    /// Check a list of members and print what pins them in the configuration, and one SHA-256 for all owners to compare in a call. Changes
    /// nothing.
    Pin(pin::PinArgs),
    /// Attach to the coordinator and answer until told to stop.
    Run(RunArgs),
    /// Check all that the party depends on, from the name of the coordinator to the speed of the disk, and say how to mend it. Attaches
    /// nothing and spends nothing; may be used before the party runs and while it runs.
    Doctor(Common),
    /// Show what the data has spent of its budget, or promise a larger delta for releases over samples. May be used while the party runs.
    Budget(budget::BudgetArgs),
    /// List every release: when, for whom, under which charge, and the number that left. May be used while the party runs.
    Ledger(ledger::LedgerArgs),
    /// Write the ledger as signed JSON lines, which `conclave verify-ledger` checks. May be used while the party runs.
    Export(ledger::ExportArgs),
    /// Copy the ledger as it stands, each entry checked, and the decisions beside it. May be used while the party runs.
    Backup(backup::BackupArgs),
    /// Go on with a ledger that is behind a head that it gave away: an act that is entered with its reason. Stop the party first.
    Unlock(ledger::ActArgs),
    /// Say that the data have been refreshed: an act that is entered with its reason. Stop the party first.
    Refresh(ledger::ActArgs),
    /// Try the claimed privacy on made-up records: a lower bound on what is given, beside what is claimed.
    Audit(audit::AuditArgs),
    /// Show whether the party runs and is attached, its jobs, its budget, and what to beware of. Exit code 0 if it runs, 4 if it
    /// doesn't, 1 if its ledger answers nothing.
    Status(status::StatusArgs),
    /// List the jobs that were asked of this party, and where they stand.
    Jobs(Common),
    /// Show what a job asks and its worst case, and let it run.
    Approve(ApproveArgs),
    /// Refuse a job that awaits a decision.
    Reject(RefuseArgs),
    /// Withdraw the consent to a job, also while it runs.
    Revoke(RefuseArgs),
    /// Check the coordinator: replay a job's published log and compare it with this party's ledger, the draws and the result.
    Verify(verify::VerifyArgs),
    /// Print a statement on a job: what was asked, what left, what is guaranteed and what is not.
    Statement(StatementArgs),
}

/// Runs the command line. `args` are the arguments without the program's name.
///
/// Exit codes: 0 done, 2 the owner's input is wrong, 3 what was to be verified does not hold, 4 the coordinator can't be reached or (of
/// `status`) the party does not run, 1 anything else.
pub fn cli_main<I: IntoIterator<Item = OsString>>(args: I) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version end here too; a closed terminal is no reason to fail.
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
        Command::Audit(args) => audit::audit(&args),
        Command::Status(args) => status::status(&args),
        Command::Jobs(common) => jobs::jobs(&common),
        Command::Approve(args) => decide::approve(&args),
        Command::Reject(args) => decide::reject(&args),
        Command::Revoke(args) => decide::revoke(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Statement(args) => statement::statement(&args),
    };
    match done {
        Ok(()) | Err(StartError::HungUp) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format_args!("conclave-party: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
