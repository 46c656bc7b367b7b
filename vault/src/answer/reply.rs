//! Sends a reply to the session that asked.

use conclave_proto::v1::{self, party_frame::Body};
use tokio::sync::mpsc::{self, error::TrySendError};

/// Channel for a session's replies.
pub type ReplySender = mpsc::Sender<v1::PartyFrame>;

/// Sends a reply, or drops it if the channel is full or closed. The ledger holds every answer, so the coordinator can ask for it again.
pub(super) fn reply(outbox: &ReplySender, body: Body) {
    if let Err(TrySendError::Full(_)) = outbox.try_send(v1::PartyFrame { body: Some(body) }) {
        tracing::warn!("the coordinator does not take replies; one was dropped and can be asked for again");
    }
}
