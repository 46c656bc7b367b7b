//! Streams of replies: limits on a reader's open streams, and on the time to read what is sent.
//!
//! A reader that does not read occupies its place and a thread of its own for a limited time. It never occupies a thread of the
//! shared pool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conclave_proto::error::{ErrorCode, Fault};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::stopping::stopped;

/// Time after which a reader that has taken nothing is dropped.
pub(super) const UNREAD: Duration = Duration::from_secs(60);
/// Maximum number of pieces that wait for a reader.
const WAITING: usize = 2;

/// Open streams by the name of their reader.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    /// Kind of content, for the message of a refusal.
    what: &'static str,
    most: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl Readers {
    /// Creates a limit of `most` open streams for each reader.
    pub(super) fn new(what: &'static str, most: usize) -> Self {
        Self { what, most, open: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Counts change in one step, so a poisoned lock is harmless.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a place for one more stream.
    ///
    /// # Errors
    /// [`ErrorCode::Unreachable`] if the reader has reached the limit.
    pub(super) fn admit(&self, reader: &str) -> Result<Place, Fault> {
        let mut open = self.lock();
        let count = open.entry(reader.to_owned()).or_default();
        if *count >= self.most {
            let (what, most) = (self.what, self.most);
            let message = format!("{what} are already being sent to {reader}, {most} at a time: try again when that is done");
            return Err(Fault::new(ErrorCode::Unreachable, message));
        }
        *count += 1;
        Ok(Place { reader: reader.to_owned(), readers: self.clone() })
    }
}

/// One reader's place; freed when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    reader: String,
    readers: Readers,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.readers.lock();
        if let Some(count) = open.get_mut(&self.reader) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.reader);
            }
        }
    }
}

/// Streams what `make` sends. `make` may block: it runs on a thread of its own until all is sent, nobody reads any more, or the
/// coordinator stops.
///
/// # Errors
/// [`ErrorCode::Internal`] if the system can't start a thread.
pub(super) fn stream<T: Send + 'static>(
    place: Place,
    stopping: watch::Receiver<bool>,
    make: impl FnOnce(&mpsc::Sender<Result<T, Status>>) + Send + 'static,
) -> Result<ReceiverStream<Result<T, Status>>, Fault> {
    stream_within(UNREAD, place, stopping, make)
}

fn stream_within<T: Send + 'static>(
    patience: Duration,
    place: Place,
    stopping: watch::Receiver<bool>,
    make: impl FnOnce(&mpsc::Sender<Result<T, Status>>) + Send + 'static,
) -> Result<ReceiverStream<Result<T, Status>>, Fault> {
    let (pieces, made) = mpsc::channel(WAITING);
    let thread = std::thread::Builder::new().name("reading".to_owned()).spawn(move || {
        make(&pieces);
        drop(place);
    });
    thread.map_err(|e| Fault::new(ErrorCode::Internal, format!("can't start a thread for reading: {e}")))?;
    let (sender, stream) = mpsc::channel(1);
    tokio::spawn(forward(patience, made, sender, stopping));
    Ok(ReceiverStream::new(stream))
}

/// Passes pieces on until they end, the coordinator stops, or nobody reads any more.
async fn forward<T>(
    patience: Duration,
    mut pieces: mpsc::Receiver<Result<T, Status>>,
    sender: mpsc::Sender<Result<T, Status>>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut stopped = std::pin::pin!(stopped(&mut stopping));
    loop {
        tokio::select! {
            piece = pieces.recv() => {
                let Some(piece) = piece else { return };
                tokio::select! {
                    sent = tokio::time::timeout(patience, sender.send(piece)) => if !matches!(sent, Ok(Ok(()))) { return },
                    // A client that does not read needs no notice.
                    () = &mut stopped => return,
                }
            }
            () = &mut stopped => {
                let fault = Fault::new(ErrorCode::Unreachable, "the coordinator is stopping: ask again when it is back");
                let _ = sender.try_send(Err(fault.into()));
                return;
            }
            () = sender.closed() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use super::*;

    #[test]
    fn each_reader_has_a_limit_of_its_own() {
        let readers = Readers::new("logs", 2);
        let first = readers.admit("a").unwrap();
        let _second = readers.admit("a").unwrap();
        let fault = readers.admit("a").unwrap_err();
        assert!(
            fault.code == ErrorCode::Unreachable && fault.message.contains("already being sent to a, 2 at a time"),
            "{fault}"
        );
        assert!(readers.admit("b").is_ok());
        drop(first);
        assert!(readers.admit("a").is_ok());
    }

    /// A reader that reads nothing holds no pool thread, and no place forever; and shutdown waits for no reader.
    #[tokio::test]
    async fn who_does_not_read_is_given_up() {
        let readers = Readers::new("logs", 1);
        let (_stop, stopping) = watch::channel(false);
        let endless = |pieces: &mpsc::Sender<Result<u8, Status>>| while pieces.blocking_send(Ok(7)).is_ok() {};
        let unread = stream_within(Duration::from_millis(50), readers.admit("a").unwrap(), stopping, endless).unwrap();
        assert!(readers.admit("a").is_err());
        let began = Instant::now();
        while readers.admit("a").is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "its place is not free");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(unread);
    }

    #[tokio::test]
    async fn what_stops_waits_for_no_reader() {
        let readers = Readers::new("logs", 1);
        let (stop, stopping) = watch::channel(false);
        let endless = |pieces: &mpsc::Sender<Result<u8, Status>>| while pieces.blocking_send(Ok(7)).is_ok() {};
        let _unread = stream(readers.admit("a").unwrap(), stopping, endless).unwrap();
        stop.send_replace(true);
        let began = Instant::now();
        while readers.admit("a").is_err() {
            assert!(began.elapsed() < Duration::from_secs(10), "its thread is still running");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
