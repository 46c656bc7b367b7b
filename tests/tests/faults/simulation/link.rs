//! A party's connection to the coordinator: two queues of frames as bytes.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use conclave_coordinator::simulated::{Downlink, Uplink};
use conclave_proto::v1::{PartyFrame, party_frame};
use prost::Message;
use tokio::sync::mpsc;

/// Replies that may wait for the network, as in the daemon.
const OUTBOX: usize = 1024;

/// What one end reads next.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    Frame(Vec<u8>),
    /// The other end has hung up, or the connection is known to be broken.
    End,
}

/// What becomes of the frames on the way to one end when a connection breaks, and of that end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Lost; the end knows at once.
    Lost,
    /// They arrive, and then the end knows.
    Late,
    /// Lost; the end knows nothing before it has been silent for too long.
    Silent,
}

pub(crate) struct Link {
    pub(crate) party: usize,
    uplink: Option<Uplink>,
    downlink: Option<Downlink>,
    /// To the coordinator.
    pub(crate) up: VecDeque<Item>,
    /// To the party.
    pub(crate) down: VecDeque<Item>,
    outbox: mpsc::Sender<PartyFrame>,
    replies: Option<mpsc::Receiver<PartyFrame>>,
    /// Nothing more gets onto it.
    pub(crate) broken: bool,
    /// The party has been welcomed on it.
    pub(crate) welcomed: bool,
    /// When the party heard something on it, virtual milliseconds.
    pub(crate) heard: u64,
    /// When the party's last heartbeat left.
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

    /// The party sends a frame.
    pub(crate) fn say(&mut self, body: party_frame::Body) {
        if !self.broken {
            self.up.push_back(Item::Frame(PartyFrame { body: Some(body) }.encode_to_vec()));
        }
    }

    /// Puts onto the wire what the party's answers and the coordinator's sessions have sent.
    pub(crate) fn pump(&mut self) {
        while let Some(Ok(PartyFrame { body: Some(body) })) = self.replies.as_mut().map(mpsc::Receiver::try_recv) {
            self.say(body);
        }
        let mut context = Context::from_waker(Waker::noop());
        while let Some(Poll::Ready(next)) = self.downlink.as_mut().map(|d| d.as_mut().poll_next(&mut context)) {
            match next {
                Some(Ok(frame)) if !self.broken => self.down.push_back(Item::Frame(frame.encode_to_vec())),
                Some(Ok(_)) => {}
                // A status ends a stream, too.
                Some(Err(_)) | None => {
                    self.downlink = None;
                    if !self.broken {
                        self.down.push_back(Item::End);
                    }
                }
            }
        }
    }

    /// The coordinator reads the next item.
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

    /// Breaks it.
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

    /// The party's end is gone: what it has sent may still arrive.
    pub(crate) fn hang_up(&mut self) {
        self.pump();
        self.replies = None;
        self.down.clear();
        if !self.broken {
            self.broken = true;
            self.up.push_back(Item::End);
        }
    }

    /// The coordinator is gone: what it has sent may still arrive.
    pub(crate) fn orphan(&mut self) {
        (self.uplink, self.downlink) = (None, None);
        self.up.clear();
        if !self.broken {
            self.broken = true;
            self.down.push_back(Item::End);
        }
    }
}
