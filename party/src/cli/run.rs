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
    /// Check the configuration and everything it names without changes, one line per item, then exit with 0, or 2 on a
    /// fault.
    #[arg(long)]
    pub(super) check: bool,
    /// Write this file when the party is attached for the first time.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) ready_file: Option<PathBuf>,
    /// Stop when standard input ends, as when the parent process has ended.
    #[arg(long, hide = true)]
    pub(super) exit_with_stdin: bool,
}

pub(super) fn run(args: RunArgs) -> Result<(), StartError> {
    if args.check {
        return check::check(&args.common);
    }
    let config = load(&args.common)?;
    core_files::forbid().map_err(|e| StartError::System(format!("core files can't be forbidden: {e}")))?;
    // The stream, its session and the owner's pending decisions share one thread: a query and its answer pass through without
    // waking another. Records are read on the answering thread, which blocks nothing here.
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
            .map_err(|e| StartError::System(format!("cannot listen for stop signals: {e}")))?;
        let (stop, signals) = signals.split();
        let reload = Reload { file: args.common.config, signals, level: logs.level() };
        let done = run_reloading(config, args.ready_file, Some(reload), stop).await;
        // The last traces are sent by this runtime, which runs while it is awaited.
        let _ = tokio::task::spawn_blocking(move || logs.end()).await;
        done
    });
    runtime.shutdown_background();
    done
}
