//! The word to stop: SIGTERM, SIGINT, or the end of standard input. SIGHUP asks to read the configuration again, and nothing else that a
//! person sends ends a daemon.

use std::io;

use tokio::sync::oneshot;

/// The word to read the configuration again.
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

/// What tells a daemon to stop. Taken hold of before it says that it is ready, so that no signal finds it unprepared.
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
    /// Takes hold of the signals, and of standard input where its end is to stop the daemon. Needs a Tokio runtime.
    ///
    /// # Errors
    /// Where the operating system gives no handler or no thread.
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

    /// Parts the words to stop from those to read the configuration again.
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

/// Signals that would end a process that has made no arrangements, and that mean nothing to a daemon; a core dump on SIGQUIT would hold keys.
#[cfg(unix)]
fn ignore_others() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let named =
        [SignalKind::quit(), SignalKind::alarm(), SignalKind::user_defined1(), SignalKind::user_defined2(), SignalKind::pipe()];
    // Limits on the processor's time and on a file's length, which then fails to grow; timers, and the power's.
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
                    "means nothing here: SIGTERM and SIGINT stop, SIGHUP reads the configuration again"
                );
            }
        });
    }
    Ok(())
}

/// What stops a daemon.
#[derive(Debug)]
struct Stop {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Stop {
    /// Completes with the first word to stop. A second signal ends the process at once, with 128 and the signal's number as its
    /// exit code: whoever asks twice does not want to wait. The end of standard input is no signal: a parent that is interrupted
    /// passes on both, in any order.
    async fn wait(mut self) {
        let signals = match self.stdin.take() {
            None => {
                self.signal().await;
                1
            }
            Some(stdin) => tokio::select! {
                _ = self.signal() => 1,
                // A sender that is gone without a word has ended too.
                _ = stdin => 0,
            },
        };
        tokio::spawn(self.insist(signals));
    }

    /// Ends the process with the second signal, of which `before` have come.
    async fn insist(mut self, before: u32) {
        if before == 0 {
            self.signal().await;
        }
        let number = self.signal().await;
        tracing::warn!(signal = number, "told to stop once more: ending at once");
        std::process::exit(128 + number);
    }

    /// The next signal's number.
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

/// A thread of its own reads, because a blocking read can't be given up; what is read means nothing.
fn end_of_stdin() -> io::Result<oneshot::Receiver<()>> {
    let (ended, stdin) = oneshot::channel();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = ended.send(());
    })?;
    Ok(stdin)
}
