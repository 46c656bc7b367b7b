//! The command line of `conclave-coordinator`.

mod keep;
mod output;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use conclave_ops::{Daemon, LogFormat, Logs, Signals, terminal};

use self::output::{print, print_json};
use crate::config::Config;
use crate::daemon::Coordinator;
use crate::error::RunError;
use crate::operations::{Unwell, health_of};
use crate::reload;

/// Runs jobs across data owners who keep their data: asks them, runs the chains, keeps the draws.
#[derive(Parser)]
#[command(name = "conclave-coordinator", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the coordinator until it is told to stop (SIGTERM or Ctrl-C). Unfinished jobs go on at the next start.
    Run(Run),
    /// Say whether the coordinator that this configuration names does its work: exit code 0 if so, 1 if it runs and does not
    /// serve, 4 if none runs. Meant for a container's health check; asks nobody over the network
    Health(Health),
    /// Check all that the coordinator depends on (files and who may read them, certificates, every page of the store, every ended job's draws, room
    /// on the disk) and say how to mend it. Changes nothing; may be used before the coordinator runs and while it runs
    Doctor(keep::Common),
    /// Copy the store as it stands, read back to its last row, and the draws of ended jobs, into a new folder. May be used while the
    /// coordinator runs
    Backup(keep::Backup),
    /// Remove the draws of jobs that ended long ago; their files, logs, summaries and spending stay in the store. May be used while the
    /// coordinator runs
    Prune(keep::Prune),
}

#[derive(Parser)]
struct Health {
    /// The configuration file, coordinator.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Parser)]
struct Run {
    /// The configuration file, coordinator.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration and all that it names without changing anything, one line per thing, then exit: with 0, or 2 on a
    /// fault
    #[arg(long)]
    check: bool,
    /// Write the log as JSON lines, as `log = "json"` in the configuration does; with --check, print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the address to this file once the coordinator listens
    #[arg(long, value_name = "PATH", hide = true)]
    ready_file: Option<PathBuf>,
    /// Stop when standard input ends: a child that must not outlive its parent
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

/// Runs the command line. `args` starts with the program's name. Logs go to standard error, filtered by `RUST_LOG`.
///
/// Exit codes: 0 done, 2 the configuration or the command line is wrong, 1 anything else.
pub fn cli_main<I: IntoIterator<Item = OsString>>(args: I) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be done about a terminal that is gone.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let done = match cli.command {
        Command::Run(options) if options.check => return check(&options),
        Command::Run(options) => execute(&options),
        Command::Health(options) => return health(&options),
        Command::Doctor(common) => keep::doctor(&common),
        Command::Backup(args) => keep::backup(&args),
        Command::Prune(args) => keep::prune(&args),
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
        .map_err(|e| RunError::System(format!("no threads: {e}")))?;
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
        let (stop, asked) = signals.split();
        let reloading = tokio::spawn(reload::watch(options.config.clone(), config.clone(), asked, logs.level()));
        let served = coordinator.serve(stop).await;
        reloading.abort();
        served
    });
    logs.end();
    // A read of standard input that never ends must not hold the process.
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

fn health(options: &Health) -> ExitCode {
    let config = match Config::load(&options.config) {
        Ok(config) => config,
        Err(error) => {
            terminal::print_error(&format_args!("conclave-coordinator: {error}"));
            return error.exit_code();
        }
    };
    let (code, says) = match health_of(&config.store) {
        Ok(state) => (0, format!("serving on {}", state.address)),
        Err(Unwell::NotServing(why)) => (1, why),
        Err(Unwell::NotRunning(why)) => (4, why),
    };
    if options.json {
        print_json(&serde_json::json!({ "serving": code == 0, "says": says }));
    } else {
        print(&says);
    }
    ExitCode::from(code)
}

/// Replaced in one step: whoever waits for the file finds it whole.
fn write_ready(path: &Path, address: SocketAddr) -> Result<(), RunError> {
    let failed = |e: std::io::Error| RunError::System(format!("--ready-file {}: {e}", path.display()));
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    std::fs::write(&temporary, format!("{address}\n")).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
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
