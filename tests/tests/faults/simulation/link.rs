//! A party's connection to the coordinator: two queues of encoded frames.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use conclave_coordinator::simulated::{Downlink, Uplink};
use conclave_proto::v1::{PartyFrame, party_frame};
use prost::Message;
use tokio::sync::mpsc;

/// Capacity for replies that wait for the network, as in the daemon.
const OUTBOX: usize = 1024;

/// The next item that one end reads.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    Frame(Vec<u8>),
    /// The other end has hung up, or the connection is known to be broken.
    End,
}

/// Effect of a broken connection on the frames in transit to one end, and on that end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The frames are lost, and the end notices immediately.
    Lost,
    /// The frames arrive, and then the end notices.
    Late,
    /// The frames are lost, and the end notices only after too long a silence.
    Silent,
}

pub(crate) struct Link {
    pub(crate) party: usize,
    uplink: Option<Uplink>,
    downlink: Option<Downlink>,
    /// Items in transit to the coordinator.
    pub(crate) up: VecDeque<Item>,
    /// Items in transit to the party.
    pub(crate) down: VecDeque<Item>,
    outbox: mpsc::Sender<PartyFrame>,
    replies: Option<mpsc::Receiver<PartyFrame>>,
    /// True once nothing more can be sent on it.
    pub(crate) broken: bool,
    /// True once the party has been welcomed on it.
    pub(crate) welcomed: bool,
    /// Time at which the party last received something on it, virtual milliseconds.
    pub(crate) heard: u64,
    /// Time at which the party last sent a heartbeat.
    pub(crate) beat: u64,
}

impl Link {
    pub(crate) fn new(party: usize, (uplink, downlink): (Uplink, Downlink), now: u64) -> Self {
        let (outbox, replies) = mpsc::channel(OUTBOX);
        Self {
            party,
            uplink: Some(uplink),
            downlink: Some(downlink),
            up: VecDeque::new(),
            down: VecDeque::new(),
            outbox,
            replies: Some(replies),
            broken: false,
            welcomed: false,
            heard: now,
            beat: now,
        }
    }

    pub(crate) fn outbox(&self) -> mpsc::Sender<PartyFrame> {
        self.outbox.clone()
    }

    /// Sends a frame from the party.
    pub(crate) fn say(&mut self, body: party_frame::Body) {
        if !self.broken {
            self.up.push_back(Item::Frame(PartyFrame { body: Some(body) }.encode_to_vec()));
        }
    }

    /// Puts the party's answers and the frames of the coordinator's sessions into the queues.
    pub(crate) fn pump(&mut self) {
        while let Some(Ok(PartyFrame { body: Some(body) })) = self.replies.as_mut().map(mpsc::Receiver::try_recv) {
            self.say(body);
        }
        let mut context = Context::from_waker(Waker::noop());
        while let Some(Poll::Ready(next)) = self.downlink.as_mut().map(|d| d.as_mut().poll_next(&mut context)) {
            match next {
                Some(Ok(frame)) if !self.broken => self.down.push_back(Item::Frame(frame.encode_to_vec())),
                Some(Ok(_)) => {}
                // A status also ends a stream.
                Some(Err(_)) | None => {
                    self.downlink = None;
                    if !self.broken {
                        self.down.push_back(Item::End);
                    }
                }
            }
        }
    }

    /// Delivers the next item to the coordinator.
    pub(crate) fn deliver_up(&mut self) {
        match (self.up.pop_front(), &self.uplink) {
            (Some(Item::Frame(frame)), Some(uplink)) => drop(uplink.send(&frame)),
            (Some(Item::End), Some(_)) => {
                if let Some(uplink) = self.uplink.take() {
                    uplink.fail();
                }
            }
            _ => {}
        }
    }

    /// Breaks the connection.
    pub(crate) fn cut(&mut self, up: Fate, down: Fate) {
        if self.broken {
            return;
        }
        self.broken = true;
        for (queue, fate) in [(&mut self.up, up), (&mut self.down, down)] {
            if fate != Fate::Late {
                queue.clear();
            }
            if fate != Fate::Silent {
                queue.push_back(Item::End);
            }
        }
    }

    /// Closes the party's end; frames that it has sent may still arrive.
    pub(crate) fn hang_up(&mut self) {
        self.pump();
        self.replies = None;
        self.down.clear();
        if !self.broken {
            self.broken = true;
            self.up.push_back(Item::End);
        }
    }

    /// Closes the coordinator's end; frames that it has sent may still arrive.
    pub(crate) fn orphan(&mut self) {
        (self.uplink, self.downlink) = (None, None);
        self.up.clear();
        if !self.broken {
            self.broken = true;
            self.down.push_back(Item::End);
        }
    }
}
