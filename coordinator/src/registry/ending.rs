//! Ends of jobs from outside: cancelled by an analyst, retired by the operator, left unfinished by a coordinator that stops.

use conclave_proto::error::Fault;
use conclave_proto::revoked::RevokedList;

use super::jobs::JobRegistry;
use super::view::Entry;
use crate::driver::StopRequest;
use crate::status::Status;

impl JobRegistry {
    /// Cancels a job and waits until it has ended; an ended job is left as it is.
    ///
    /// # Errors
    /// The errors of [`Self::watch`].
    pub(crate) async fn cancel(&self, id: &str, analyst: &str) -> Result<Status, Fault> {
        let mut status = self.watch(id, analyst)?;
        {
            let mut inner = self.lock();
            if let Some(entry) = inner.entries.get(id) {
                // A coordinator that is stopping keeps stopping.
                entry.stop.send_if_modified(|stop| stop.is_none() && stop.replace(StopRequest::Cancel).is_none());
            }
            // A job that waits for its turn ends without it.
            if !inner.closed
                && let Some(turn) = inner.queue.withdraw(id)
            {
                self.start_driver(&mut inner, turn);
            }
        }
        self.changed.notify_one();
        // The driver's end of the channel closes after the last status.
        let ended = status.wait_for(|status| status.state.has_ended()).await.map(|status| status.clone());
        Ok(ended.unwrap_or_else(|_| status.borrow().clone()))
    }

    /// Takes over the operator's list of retired members, and ends the unfinished jobs that need one of them.
    pub(crate) fn retire(&self, list: RevokedList) {
        self.context.party_registry.set_retired(list);
        let mut inner = self.lock();
        let needs = |entry: &Entry| {
            let status = entry.status.borrow();
            let parties: Vec<String> = status.parties.iter().map(|party| party.name.clone()).collect();
            !status.state.has_ended() && self.context.party_registry.retired_member(&status.analyst, &parties).is_some()
        };
        let ended: Vec<String> = inner.entries.iter().filter(|(_, entry)| needs(entry)).map(|(id, _)| id.clone()).collect();
        for id in ended {
            if let Some(entry) = inner.entries.get(&id) {
                entry.stop.send_if_modified(|stop| stop.is_none() && stop.replace(StopRequest::Retire).is_none());
            }
            tracing::warn!(job = id, "the job ends: its analyst or one of its parties has been retired");
            // A job that waits for its turn ends without it.
            if !inner.closed
                && let Some(turn) = inner.queue.withdraw(&id)
            {
                self.start_driver(&mut inner, turn);
            }
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// Stops every driver and leaves its job unfinished in the store.
    pub(crate) async fn close(&self) {
        let mut drivers = {
            let mut inner = self.lock();
            inner.closed = true;
            for entry in inner.entries.values() {
                entry.stop.send_if_modified(|stop| stop.is_none() && stop.replace(StopRequest::Shutdown).is_none());
            }
            std::mem::take(&mut inner.drivers)
        };
        while let Some(joined) = drivers.join_next().await {
            if let Err(error) = joined {
                tracing::error!(%error, "a driver failed");
            }
        }
    }
}
