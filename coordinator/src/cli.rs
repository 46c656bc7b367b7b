//! The command line of `conclave-coordinator`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::{Config, Coordinator, RunError};

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
}

#[derive(Parser)]
struct Run {
    /// The configuration file, coordinator.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration and the identity, then exit
    #[arg(long)]
    check: bool,
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
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A caller that has set up its own logging keeps it.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    let Command::Run(options) = cli.command;
    match execute(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conclave-coordinator: {error}");
            error.exit_code()
        }
    }
}

fn execute(options: &Run) -> Result<(), RunError> {
    let config = Config::load(&options.config)?;
    if options.check {
        crate::load_identity(&config)?;
        eprintln!("{}: good", options.config.display());
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("coordinator")
        .build()
        .map_err(|e| RunError::System(format!("no threads: {e}")))?;
    let outcome = runtime.block_on(async {
        let signals = Signals::listen()?;
        let coordinator = Coordinator::open(&config).await?;
        let address = coordinator.address();
        eprintln!("listening on {address}");
        if let Some(path) = &options.ready_file {
            write_ready(path, address)?;
        }
        coordinator.serve(signals.wait(options.exit_with_stdin)).await
    });
    // A read of standard input that never ends must not hold the process.
    runtime.shutdown_background();
    outcome
}

/// Replaced in one step: whoever waits for the file finds it whole.
fn write_ready(path: &Path, address: SocketAddr) -> Result<(), RunError> {
    let failed = |e: std::io::Error| RunError::System(format!("--ready-file {}: {e}", path.display()));
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    std::fs::write(&temporary, format!("{address}\n")).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}

/// What tells the daemon to stop; taken hold of before it says that it is ready.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, RunError> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let failed = |e: std::io::Error| RunError::System(format!("signals can't be handled: {e}"));
            Ok(Self {
                terminate: signal(SignalKind::terminate()).map_err(failed)?,
                interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    async fn wait(self, exit_with_stdin: bool) {
        #[cfg(unix)]
        {
            let Self { mut terminate, mut interrupt } = self;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = end_of_stdin(exit_with_stdin) => {}
            }
        }
        #[cfg(not(unix))]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = end_of_stdin(exit_with_stdin) => {}
        }
    }
}

async fn end_of_stdin(watched: bool) {
    if !watched {
        return std::future::pending().await;
    }
    // Read to its end on a thread of its own; what is read means nothing.
    let end = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
    if let Ok(Err(error)) = end.await {
        tracing::debug!(%error, "standard input ended with an error");
    }
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
