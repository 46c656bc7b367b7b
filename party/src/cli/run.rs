//! `conclave-party run`.

use std::path::PathBuf;

use clap::Args;
use conclave_ops::{Daemon, LogFormat, Logs, Signals, core_files};

use super::check;
use super::common::{Common, load};
use crate::daemon::run_reloading;
use crate::error::StartError;
use crate::reload::Reload;

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// Check the configuration and all that it names without changing anything, one line per thing, then exit: with 0, or 2 on a
    /// fault.
    #[arg(long)]
    pub(super) check: bool,
    /// Write this file when the party is attached for the first time.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) ready_file: Option<PathBuf>,
    /// Stop when standard input ends, as when the process that started this one is gone.
    #[arg(long, hide = true)]
    pub(super) exit_with_stdin: bool,
}

pub(super) fn run(args: RunArgs) -> Result<(), StartError> {
    if args.check {
        return check::check(&args.common);
    }
    let config = load(&args.common)?;
    core_files::forbid().map_err(|e| StartError::System(format!("core files can't be forbidden: {e}")))?;
    // The stream, the session on it and what waits for the owner share one thread: a query and its answer pass through it without waking
    // another. Records are read on the answering thread, which keeps nothing here waiting.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| StartError::System(format!("no runtime: {e}")))?;
    let mut settings = config.ops.clone();
    if args.common.json {
        settings.log = LogFormat::Json;
    }
    let logs = {
        let _inside = runtime.enter();
        Logs::start(&settings, &Daemon { service: "conclave-party", name: &config.name }).map_err(StartError::Input)?
    };
    let done = runtime.block_on(async {
        let signals = Signals::listen(args.exit_with_stdin)
            .map_err(|e| StartError::System(format!("cannot listen for the word to stop: {e}")))?;
        let (stop, asked) = signals.split();
        let reload = Reload { file: args.common.config, asked, level: logs.level() };
        let done = run_reloading(config, args.ready_file, Some(reload), stop).await;
        // The last traces leave by this runtime, which runs as long as it is waited for.
        let _ = tokio::task::spawn_blocking(move || logs.end()).await;
        done
    });
    runtime.shutdown_background();
    done
}
