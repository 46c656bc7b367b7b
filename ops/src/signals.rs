//! The word to stop: SIGTERM, SIGINT, or the end of standard input.

use std::io;

use tokio::sync::oneshot;

/// What tells a daemon to stop. Taken hold of before it says that it is ready, so that no signal finds it unprepared.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
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
            Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())?, stdin })
        }
        #[cfg(not(unix))]
        Ok(Self { stdin })
    }

    /// Completes with the first word to stop. A second signal ends the process at once, with 128 and the signal's number as its
    /// exit code: whoever asks twice does not want to wait. The end of standard input is no signal: a parent that is interrupted
    /// passes on both, in any order.
    pub async fn wait(mut self) {
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
