//! The command line of `conclave-coordinator`.

mod forget;
mod health;
mod keep;
mod output;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conclave_ops::private_files::replace;
use conclave_ops::{Daemon, LogFormat, Logs, Signals, terminal};

use self::output::{print, print_json};
use crate::config::Config;
use crate::daemon::Coordinator;
use crate::error::RunError;
use crate::reload;

/// Runs jobs across data owners who keep their data: queries the parties, runs the chains, stores the draws.
#[derive(Parser)]
#[command(name = "conclave-coordinator", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the coordinator until it receives SIGTERM or Ctrl-C. Unfinished jobs resume at the next start.
    Run(Run),
    /// Report whether the coordinator of this configuration serves. Exit code 0: it serves; 1: it runs but does not serve; 4: it
    /// does not run. Meant for a container's health check; makes no network request
    Health(health::Health),
    /// Check everything that the coordinator depends on (file permissions, certificates, every page of the store, every ended
    /// job's draws, disk space) and print remedies. Changes nothing; may be used before the coordinator runs and while it runs
    Doctor(keep::Common),
    /// Copy the store, read back to its last row, and the draws of ended jobs into a new folder. May be used while the
    /// coordinator runs
    Backup(keep::Backup),
    /// Remove the draws of jobs that ended long ago; their files, logs, summaries and spending stay in the store. May be used
    /// while the coordinator runs
    Prune(keep::Prune),
    /// Retire a party or an analyst: its unfinished jobs end with the draws made so far, new ones are refused, and no alert names it.
    /// May be used while the coordinator runs
    Forget(forget::Forget),
}

#[derive(Parser)]
struct Run {
    /// The configuration file, coordinator.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration and everything that it names without changing anything, print one line per item, and exit: with 0,
    /// or with 2 on a fault
    #[arg(long)]
    check: bool,
    /// Write the log as JSON lines, as `log = "json"` in the configuration does; with --check, print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the address to this file once the coordinator listens
    #[arg(long, value_name = "PATH", hide = true)]
    ready_file: Option<PathBuf>,
    /// Stop when standard input ends: for a child process that must not outlive its parent
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

/// Runs the command line. `args` starts with the program's name. Logs go to standard error, filtered by `RUST_LOG`.
///
/// Exit codes: 0 success, 2 invalid configuration or command line, 1 any other failure.
pub fn cli_main<I: IntoIterator<Item = OsString>>(args: I) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Printing fails only if the terminal is gone; nothing can be done then.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let done = match cli.command {
        Command::Run(options) if options.check => return check(&options),
        Command::Run(options) => execute(&options),
        Command::Health(options) => return health::health(&options),
        Command::Doctor(common) => keep::doctor(&common),
        Command::Backup(args) => keep::backup(&args),
        Command::Prune(args) => keep::prune(&args),
        Command::Forget(args) => forget::forget(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&format_args!("conclave-coordinator: {error}"));
            error.exit_code()
        }
    }
}

fn execute(options: &Run) -> Result<(), RunError> {
    let config = Config::load(&options.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("coordinator")
        .build()
        .map_err(|e| RunError::System(format!("can't start threads: {e}")))?;
    let mut settings = config.ops.clone();
    if options.json {
        settings.log = LogFormat::Json;
    }
    let logs = {
        let _inside = runtime.enter();
        Logs::start(&settings, &Daemon { service: "conclave-coordinator", name: "coordinator" }).map_err(RunError::Input)?
    };
    let outcome = runtime.block_on(async {
        let signals =
            Signals::listen(options.exit_with_stdin).map_err(|e| RunError::System(format!("signals can't be handled: {e}")))?;
        let coordinator = Coordinator::open(&config).await?;
        let address = coordinator.address();
        terminal::print_error(&format_args!("listening on {address}"));
        if let Some(path) = &options.ready_file {
            write_ready(path, address)?;
        }
        let (stop, reloads) = signals.split();
        let reloading = tokio::spawn(reload::watch(options.config.clone(), config.clone(), reloads, logs.level()));
        let served = coordinator.serve(stop).await;
        reloading.abort();
        served
    });
    logs.end();
    // A pending read of standard input must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

fn check(options: &Run) -> ExitCode {
    let checks = crate::check::check(&options.config);
    let faults = checks.faults();
    if options.json {
        print_json(&serde_json::json!({ "config": options.config, "faults": faults, "checks": checks }));
    } else {
        print(&checks);
    }
    ExitCode::from(if faults > 0 { 2 } else { 0 })
}

/// Writes the address and renames the file in one step, so that a waiting process never reads a partial file.
fn write_ready(path: &Path, address: SocketAddr) -> Result<(), RunError> {
    let failed = |e: std::io::Error| RunError::System(format!("--ready-file {}: {e}", path.display()));
    replace(path, &format!("{address}\n")).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn hidden_options_stay_hidden() {
        let help = Cli::command().find_subcommand_mut("run").map(|c| c.render_long_help().to_string());
        let help = help.unwrap_or_default();
        assert!(help.contains("--config") && !help.contains("ready-file"), "{help}");
    }
}
