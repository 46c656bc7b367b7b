//! Writes draws to disk, off the chain's path.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conclave_common::query::Draw;
use conclave_draws::zarr::DrawStore;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::live::Live;
use crate::store::Store;

/// Time for which draws are gathered before they are written.
const FLUSH: Duration = Duration::from_millis(1500);

/// The driver's end: passes draws on without waiting for the disk.
#[derive(Debug)]
pub(super) struct DrawWriter {
    shared: Arc<Shared>,
    task: JoinHandle<io::Result<DrawStore>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Queue>,
    wake: Notify,
    closing: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    draws: Vec<Draw>,
    closed: bool,
}

impl DrawWriter {
    /// Starts writing into `draws`; shows in `live` what is written.
    pub(super) fn start(draws: DrawStore, store: Store, live: Option<Arc<Live>>) -> Self {
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(write(Arc::clone(&shared), draws, store, live));
        Self { shared, task }
    }

    /// Queues draws for writing.
    pub(super) fn push(&self, draws: Vec<Draw>) {
        if draws.is_empty() {
            return;
        }
        let mut queue = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = queue.draws.is_empty();
        queue.draws.extend(draws);
        drop(queue);
        // One wake-up per flush, not one per round.
        if was_empty {
            self.shared.wake.notify_one();
        }
    }

    /// Returns true if writing has failed; [`Self::close`] returns the error.
    pub(super) fn failed(&self) -> bool {
        self.task.is_finished()
    }

    /// Writes the remaining draws and returns the store.
    pub(super) async fn close(self) -> io::Result<DrawStore> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.wake.notify_one();
        self.shared.closing.notify_one();
        self.task.await.map_err(io::Error::other)?
    }
}

async fn write(shared: Arc<Shared>, mut draws: DrawStore, store: Store, live: Option<Arc<Live>>) -> io::Result<DrawStore> {
    loop {
        shared.wake.notified().await;
        tokio::select! {
            () = tokio::time::sleep(FLUSH) => {}
            () = shared.closing.notified() => {}
        }
        let (gathered, closed) = {
            let mut queue = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut queue.draws), queue.closed)
        };
        // A draw on disk always has its round in the log, so a reader never sees a draw that a restart could revoke.
        store.barrier().await.map_err(io::Error::other)?;
        let live = live.clone();
        draws = tokio::task::spawn_blocking(move || {
            if let Some(live) = live {
                live.take(&gathered);
            }
            gathered.into_iter().for_each(|draw| draws.push(&draw.into()));
            draws.flush().map(|()| draws)
        })
        .await
        .map_err(io::Error::other)??;
        if closed {
            return Ok(draws);
        }
    }
}
