//! `conclave-party run`.

use std::future::Future;

use tokio::sync::oneshot;

use super::{Common, RunArgs, load, print, print_json};
use crate::daemon::{StartError, prepare, run_with};

pub(super) fn run(args: RunArgs) -> Result<(), StartError> {
    start_log(&args.common);
    let config = load(&args.common)?;
    if args.check {
        let answerer = prepare(&config)?;
        if let Some(behind) = answerer.ledger().behind() {
            return Err(behind.into());
        }
        let (spent, limit) = answerer.ledger().units();
        return if args.common.json {
            print_json(&serde_json::json!({
                "party": config.name, "records": answerer.records(), "share_spent": spent as f64 / limit as f64,
            }))
        } else {
            print(&format!(
                "{}: configuration, identity, data ({} records) and ledger are in order",
                config.name,
                answerer.records()
            ))
        };
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| StartError::System(format!("no runtime: {e}")))?;
    let done = runtime.block_on(async { run_with(config, args.ready_file, told_to_stop(args.exit_with_stdin)?).await });
    runtime.shutdown_background();
    done
}

fn start_log(common: &Common) {
    let filter =
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second start in one process keeps the first one's log.
    let _ = if common.json { builder.json().try_init() } else { builder.try_init() };
}

/// Completes on SIGINT, on SIGTERM, and, where asked for, when standard input ends.
fn told_to_stop(with_stdin: bool) -> Result<impl Future<Output = ()>, StartError> {
    let system = |e: std::io::Error| StartError::System(format!("cannot listen for the word to stop: {e}"));
    let stdin = if with_stdin { Some(end_of_stdin().map_err(system)?) } else { None };
    #[cfg(unix)]
    let mut terminate = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).map_err(system)?
    };
    Ok(async move {
        #[cfg(unix)]
        let terminated = terminate.recv();
        #[cfg(not(unix))]
        let terminated = std::future::pending::<()>();
        let ended = async {
            match stdin {
                Some(stdin) => drop(stdin.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminated => {}
            _ = tokio::signal::ctrl_c() => {}
            () = ended => {}
        }
    })
}

/// A thread of its own reads, because a blocking read can't be given up.
fn end_of_stdin() -> std::io::Result<oneshot::Receiver<()>> {
    let (ended, stdin) = oneshot::channel();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    })?;
    Ok(stdin)
}
