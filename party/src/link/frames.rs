//! Outgoing frames of a session. The stream ends with the session even if an outbox is still held elsewhere: the answering thread
//! keeps one for jobs that await their owner, and an unending stream would keep an abandoned connection open.

use std::pin::Pin;
use std::task::{Context, Poll};

use conclave_proto::v1::PartyFrame;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Stream;

/// The stream of outgoing frames, in the order of the outbox.
pub(super) struct Frames {
    outbox: mpsc::Receiver<PartyFrame>,
    session: oneshot::Receiver<()>,
    ended: bool,
}

/// A guard that the session keeps. When it is dropped, the stream ends after the frames already in the outbox.
pub(super) struct Open(#[allow(dead_code)] oneshot::Sender<()>);

impl Frames {
    /// Creates the stream of an outbox, and the guard that keeps it open.
    pub(super) fn of(outbox: mpsc::Receiver<PartyFrame>) -> (Open, Self) {
        let (open, session) = oneshot::channel();
        (Open(open), Self { outbox, session, ended: false })
    }
}

impl Stream for Frames {
    type Item = PartyFrame;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PartyFrame>> {
        if !self.ended && Pin::new(&mut self.session).poll(context).is_ready() {
            self.ended = true;
            self.outbox.close();
        }
        self.outbox.poll_recv(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use tokio::time::timeout;
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test]
    async fn frames_end_with_their_session_and_not_before_they_have_left() {
        let (outbox, frames) = mpsc::channel(4);
        let (open, mut frames) = Frames::of(frames);
        outbox.try_send(PartyFrame::default()).unwrap();
        assert!(frames.next().await.is_some());
        assert!(timeout(Duration::from_millis(20), frames.next()).await.is_err());
        outbox.try_send(PartyFrame::default()).unwrap();
        drop(open);
        assert!(frames.next().await.is_some());
        // The outbox is still held.
        assert_eq!(frames.next().await, None);
        assert!(outbox.try_send(PartyFrame::default()).is_err());
    }
}
