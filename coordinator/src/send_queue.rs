//! Send queue of a party, bounded, between the jobs' drivers and the party's stream.
//!
//! A driver never waits for a party, so frames that the party does not read gather here. Beyond the bounds the queue ends: its
//! memory is freed, and the stream's session receives the reason.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use conclave_proto::PROTOCOL;
use conclave_proto::error::{Fault, to_status};
use conclave_proto::v1::CoordinatorFrame;
use conclave_proto::v1::coordinator_frame::Body;
use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::Status;

/// An item of a party's stream.
pub(crate) type Outgoing = Result<CoordinatorFrame, Status>;

/// Maximum number of waiting frames. A job has one unanswered query at a party; openings, and closings of ended jobs, come on
/// top.
pub(crate) const MOST_FRAMES: usize = 1024;
/// Maximum number of waiting bytes, beyond one frame.
const MOST_BYTES: usize = 4 << 20;

/// The sending half; clones share it. The stream ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct SendQueue {
    sender: Arc<Sender>,
    /// The protocol that the party speaks on this stream.
    protocol: u32,
}

/// The party's stream.
#[derive(Debug)]
pub(crate) struct SendStream(Arc<Shared>);

#[derive(Debug)]
struct Sender(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<(usize, Arc<Body>)>,
    bytes: usize,
    /// Set once: no frame is accepted after it, and it is the stream's last item.
    ending: Option<Ending>,
    closed: bool,
    reader: Option<Waker>,
}

#[derive(Debug, Clone)]
struct Ending {
    why: String,
    status: Option<Status>,
}

/// Creates a queue and the stream that it feeds, for the newest protocol.
pub(crate) fn send_queue() -> (SendQueue, SendStream) {
    let shared = Arc::new(Shared::default());
    (SendQueue { sender: Arc::new(Sender(Arc::clone(&shared))), protocol: PROTOCOL }, SendStream(shared))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No change below can panic halfway.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, mut queue: MutexGuard<'_, Queue>, ending: Ending) {
        if queue.ending.is_none() {
            queue.ending = Some(ending);
            wake(queue);
            self.ended.notify_one();
        }
    }
}

fn wake(mut queue: MutexGuard<'_, Queue>) {
    let reader = queue.reader.take();
    drop(queue);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl SendQueue {
    /// Sets the protocol of the stream.
    pub(crate) fn with_protocol(self, protocol: u32) -> Self {
        Self { protocol, ..self }
    }

    /// The protocol of the stream.
    pub(crate) fn protocol(&self) -> u32 {
        self.protocol
    }

    /// Sends a frame; queues of many parties share one copy. A stream that has ended discards it silently: [`SendQueue::ended`]
    /// reports the end.
    pub(crate) fn send(&self, body: impl Into<Arc<Body>>) {
        let body = body.into();
        let size = body.encoded_len();
        let mut queue = self.sender.0.lock();
        if queue.ending.is_some() || queue.closed {
            return;
        }
        let full = queue.frames.len() >= MOST_FRAMES || (!queue.frames.is_empty() && queue.bytes + size > MOST_BYTES);
        if full {
            let why = format!(
                "it does not read its stream: {} frames of {} bytes were waiting",
                queue.frames.len(),
                queue.bytes + size
            );
            // Freed immediately: a connection that is not read may stay open for long.
            (queue.frames, queue.bytes) = (VecDeque::new(), 0);
            self.sender.0.end(queue, Ending { why, status: None });
            return;
        }
        queue.bytes += size;
        queue.frames.push_back((size, body));
        wake(queue);
    }

    /// Ends the stream with a status, after what was sent before.
    pub(crate) fn refuse(&self, fault: &Fault) {
        let ending = Ending { why: fault.message.clone(), status: Some(to_status(fault)) };
        self.sender.0.end(self.sender.0.lock(), ending);
    }

    /// Waits until this side has ended the queue, and returns the reason. For one waiter.
    pub(crate) async fn ended(&self) -> String {
        loop {
            if let Some(ending) = &self.sender.0.lock().ending {
                return ending.why.clone();
            }
            self.sender.0.ended.notified().await;
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.closed = true;
        wake(queue);
    }
}

impl Drop for SendStream {
    // Nothing sent from now on will be read.
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        (queue.frames, queue.bytes, queue.closed) = (VecDeque::new(), 0, true);
    }
}

impl Stream for SendStream {
    type Item = Outgoing;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        let mut queue = self.0.lock();
        if let Some((size, body)) = queue.frames.pop_front() {
            queue.bytes -= size;
            drop(queue);
            return Poll::Ready(Some(Ok(CoordinatorFrame { body: Some(Arc::unwrap_or_clone(body)) })));
        }
        if let Some(ending) = &mut queue.ending {
            return Poll::Ready(ending.status.take().map(Err));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::error::ErrorCode;
    use conclave_proto::v1::{Heartbeat, OpenJob};
    use tokio_stream::StreamExt;

    fn beat(sequence: u64) -> Body {
        Body::Heartbeat(Heartbeat { sequence })
    }

    #[tokio::test]
    async fn frames_come_in_order_and_then_the_end() {
        let (queue, mut stream) = send_queue();
        let reader = tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Some(frame) = stream.next().await {
                seen.push(frame.map(|frame| frame.body.unwrap()).map_err(|status| status.message().to_owned()));
            }
            seen
        });
        tokio::task::yield_now().await;
        (0..3).for_each(|sequence| queue.send(beat(sequence)));
        queue.refuse(&Fault::new(ErrorCode::Unreachable, "enough"));
        queue.send(beat(4));
        assert_eq!(queue.ended().await, "enough");
        let expected: Vec<_> = (0..3).map(|sequence| Ok(beat(sequence))).chain([Err("enough".to_owned())]).collect();
        assert_eq!(reader.await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_stream_ends_with_its_last_sender() {
        let (queue, mut stream) = send_queue();
        let other = queue.clone();
        drop(queue);
        other.send(beat(1));
        drop(other);
        assert!(stream.next().await.unwrap().is_ok());
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn what_is_not_read_ends_the_stream_and_is_given_back() {
        let (queue, mut stream) = send_queue();
        (0..MOST_FRAMES as u64).for_each(|sequence| queue.send(beat(sequence)));
        assert!(queue.sender.0.lock().ending.is_none());
        queue.send(beat(0));
        assert!(queue.ended().await.contains("1024 frames"));
        assert_eq!(queue.sender.0.lock().frames.capacity(), 0);
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn bytes_are_bounded_too_but_never_a_single_frame() {
        let (queue, _stream) = send_queue();
        let open = |size: usize| Body::OpenJob(OpenJob { spec_toml: "#".repeat(size), ..OpenJob::default() });
        queue.send(open(MOST_BYTES + 1));
        assert!(queue.sender.0.lock().ending.is_none());
        queue.send(beat(0));
        assert!(queue.ended().await.contains("does not read"));
    }
}
