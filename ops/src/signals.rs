//! Requests to stop a daemon: SIGTERM, SIGINT, or the end of standard input. SIGHUP reloads the configuration. Other signals
//! that a person may send are ignored.

use std::io;

use tokio::sync::oneshot;

/// Requests to reload the configuration.
#[derive(Debug)]
pub struct Reloads {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Reloads {
    /// Completes with the next SIGHUP.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.hangup.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

/// The signal handlers of a daemon. They are installed before it reports that it is ready, so that no signal is missed.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    reloads: Reloads,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Signals {
    /// Installs the signal handlers, and with `with_stdin` watches for the end of standard input. Needs a Tokio runtime.
    ///
    /// # Errors
    /// An error if the operating system provides no handler or no thread.
    pub fn listen(with_stdin: bool) -> io::Result<Self> {
        let stdin = with_stdin.then(end_of_stdin).transpose()?;
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            ignore_others()?;
            let reloads = Reloads { hangup: signal(SignalKind::hangup())? };
            Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())?, reloads, stdin })
        }
        #[cfg(not(unix))]
        Ok(Self { reloads: Reloads {}, stdin })
    }

    /// Separates requests to stop from requests to reload the configuration.
    pub fn split(self) -> (impl Future<Output = ()>, Reloads) {
        #[cfg(unix)]
        let Self { terminate, interrupt, reloads, stdin } = self;
        #[cfg(unix)]
        let stop = Stop { terminate, interrupt, stdin };
        #[cfg(not(unix))]
        let Self { reloads, stdin } = self;
        #[cfg(not(unix))]
        let stop = Stop { stdin };
        (stop.wait(), reloads)
    }
}

/// Ignores signals that would end the process by default but have no meaning for a daemon. A core dump on SIGQUIT would hold
/// keys.
#[cfg(unix)]
fn ignore_others() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let named =
        [SignalKind::quit(), SignalKind::alarm(), SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::pipe()];
    // Limits of processor time and file size (a write beyond the latter fails), timers, and power failure.
    #[cfg(target_os = "linux")]
    let others = [24, 25, 26, 27, 30].map(SignalKind::from_raw);
    #[cfg(not(target_os = "linux"))]
    let others: [SignalKind; 0] = [];
    for kind in named.into_iter().chain(others) {
        let mut ignored = signal(kind)?;
        tokio::spawn(async move {
            while ignored.recv().await.is_some() {
                tracing::info!(
                    signal = kind.as_raw_value(),
                    "signal ignored: SIGTERM and SIGINT stop the daemon, SIGHUP reloads the configuration"
                );
            }
        });
    }
    Ok(())
}

/// The sources of requests to stop.
#[derive(Debug)]
struct Stop {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Stop {
    /// Completes with the first request to stop. A second signal ends the process immediately, with exit code 128 plus the
    /// signal's number. The end of standard input does not count as a signal: an interrupted parent causes both, in any order.
    async fn wait(mut self) {
        let signals = match self.stdin.take() {
            None => {
                self.signal().await;
                1
            }
            Some(stdin) => tokio::select! {
                _ = self.signal() => 1,
                // A dropped sender also means the end of standard input.
                _ = stdin => 0,
            },
        };
        tokio::spawn(self.exit_at_second_signal(signals));
    }

    /// Ends the process at the second signal, after `before` earlier ones.
    async fn exit_at_second_signal(mut self, before: u32) {
        if before == 0 {
            self.signal().await;
        }
        let number = self.signal().await;
        tracing::warn!(signal = number, "second request to stop: exiting immediately");
        std::process::exit(128 + number);
    }

    /// Waits for the next signal and returns its number.
    #[cfg(unix)]
    async fn signal(&mut self) -> i32 {
        use tokio::signal::unix::SignalKind;
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }

    #[cfg(not(unix))]
    async fn signal(&mut self) -> i32 {
        const INTERRUPT: i32 = 2;
        match tokio::signal::ctrl_c().await {
            Ok(()) => INTERRUPT,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Watches for the end of standard input on its own thread, because a blocking read can't be cancelled. The input is discarded.
fn end_of_stdin() -> io::Result<oneshot::Receiver<()>> {
    let (ended, stdin) = oneshot::channel();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = ended.send(());
    })?;
    Ok(stdin)
}
