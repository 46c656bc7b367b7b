//! A coordinator, parties and the network between them, in one process and one step at a time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use conclave_coordinator::simulated::{self as coordinator, SimulatedCoordinator};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::party_frame::Body as Said;
use conclave_proto::v1::{CoordinatorFrame, Heartbeat, Hello, PartyFrame, Query};
use conclave_vault::answer::simulated as party;
use conclave_vault::ledger::Durability;
use prost::Message;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::fixture::{Fixture, NAMES};
use super::jobs::Jobs;
use super::link::{Item, Link};
use super::mutant::Mutant;
use super::node::Node;
use super::plan::{Death, Plan};
use super::recorder::Recorder;

/// Milliseconds, as in `party::link`.
const SILENCE: u64 = 45_000;
const HEARTBEAT: u64 = 15_000;

/// A possible next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Dial(usize),
    Up(usize),
    Down(usize),
    Handle(usize),
}

pub(crate) struct World<'f> {
    pub(crate) fixture: &'f Fixture,
    pub(crate) plan: Plan,
    pub(crate) scratch: TempDir,
    pub(crate) coordinator: Option<SimulatedCoordinator>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) nodes: Vec<Node<'f>>,
    pub(crate) links: Vec<Link>,
    pub(crate) jobs: Jobs,
    pub(crate) recorder: Recorder,
    pub(crate) mutant: Mutant,
    /// True once the coordinator has been killed, or its disk has lost data.
    pub(crate) killed: bool,
    /// Virtual milliseconds since the beginning.
    pub(crate) now: u64,
    /// Time of the last answer to the round with garbage, and time at which the first job's end was observed.
    pub(crate) garbage_left: Option<u64>,
    pub(crate) garbage_seen: Option<u64>,
}

impl<'f> World<'f> {
    pub(crate) fn new(fixture: &'f Fixture, plan: &Plan, mutant: Mutant) -> Self {
        set_clocks(0, 0);
        let scratch = fixture.scratch();
        let durability = plan.reserve.map_or(Durability::Strict, |block| Durability::Reserve { block });
        let parties = plan.jobs.iter().map(|kind| fixture.kinds[*kind].parties).max().expect("a job");
        let mut world = Self {
            fixture,
            nodes: (0..parties).map(|index| Node::new(fixture, index, scratch.path(), durability)).collect(),
            jobs: Jobs::new(fixture, &plan.jobs),
            plan: plan.clone(),
            scratch,
            coordinator: None,
            runtime: None,
            links: Vec::new(),
            recorder: Recorder::default(),
            mutant,
            killed: false,
            now: 0,
            garbage_left: None,
            garbage_seen: None,
        };
        world.start_coordinator();
        world
    }

    pub(crate) fn strict(&self) -> bool {
        self.plan.reserve.is_none()
    }

    pub(crate) fn start_coordinator(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let (store, draws) = (self.scratch.path().join("coordinator.sqlite"), self.scratch.path().join("draws"));
        let opened = {
            let _inside = runtime.enter();
            SimulatedCoordinator::open(&store, &draws).expect("a coordinator that starts")
        };
        (self.runtime, self.coordinator) = (Some(runtime), Some(opened));
        self.settle(1);
    }

    pub(crate) fn end_coordinator(&mut self, death: Death) {
        self.jobs.forget_calls();
        self.killed |= death == Death::Kill;
        match (self.coordinator.take(), death) {
            (Some(coordinator), Death::Stop) => {
                let runtime = self.runtime.as_ref().expect("its runtime");
                runtime.block_on(coordinator.shut_down());
            }
            (coordinator, _) => drop(coordinator),
        }
        // Drops every task in it.
        self.runtime = None;
        self.links.iter_mut().for_each(Link::orphan);
    }

    /// Deletes the last rounds of every running job from the coordinator's disk, but none of their draws.
    pub(crate) fn forget_rounds(&mut self, rounds: u8) {
        self.killed = true;
        let store = Connection::open(self.scratch.path().join("coordinator.sqlite")).expect("the store");
        let forget = format!(
            "CREATE TEMP TABLE newest AS SELECT job, max(iteration) AS iteration FROM rounds GROUP BY job;
             DELETE FROM rounds WHERE job IN (SELECT key FROM jobs WHERE state = 'queued')
                AND iteration > (SELECT n.iteration FROM newest n WHERE n.job = rounds.job) - {rounds};"
        );
        store.execute_batch(&forget).expect("SQL");
    }

    /// Lets the coordinator run for `ms` milliseconds, and puts its frames into the queues.
    pub(crate) fn settle(&mut self, ms: u64) {
        if let Some(runtime) = &self.runtime {
            // Virtual time: the sleep ends once no other task can run before it.
            runtime.block_on(async { tokio::time::sleep(Duration::from_millis(ms)).await });
        }
        self.now += ms;
        self.links.iter_mut().for_each(Link::pump);
        if let (Some(runtime), Some(coordinator)) = (&self.runtime, &self.coordinator) {
            self.jobs.look(runtime, coordinator);
        }
        self.time_garbage(None);
    }

    fn cut_off(&self, party: usize) -> bool {
        self.nodes[party].cut_off > self.now
    }

    /// Returns all possible next events, in a deterministic order.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for node in &self.nodes {
            if node.process.is_some() && !node.desk.is_empty() {
                moves.push(Move::Handle(node.index));
            }
            if node.process.is_some() && node.link.is_none() && self.coordinator.is_some() && !self.cut_off(node.index) {
                moves.push(Move::Dial(node.index));
            }
        }
        for (at, link) in self.links.iter().enumerate() {
            let node = &self.nodes[link.party];
            if self.cut_off(link.party) {
                continue;
            }
            if !link.up.is_empty() && node.still[0] == 0 {
                moves.push(Move::Up(at));
            }
            if !link.down.is_empty() && node.link == Some(at) && node.still[1] == 0 {
                moves.push(Move::Down(at));
            }
        }
        moves
    }

    pub(crate) fn make(&mut self, next: Move) {
        for node in &mut self.nodes {
            node.still = node.still.map(|steps| steps.saturating_sub(1));
        }
        match next {
            Move::Dial(party) => self.dial(party),
            Move::Up(link) => {
                self.recorder.frames += 1;
                self.links[link].deliver_up();
            }
            Move::Down(link) => self.deliver_down(link),
            Move::Handle(party) => {
                if let Some((frame, outbox)) = self.nodes[party].desk.pop_front() {
                    self.handle(party, frame, &outbox, true);
                }
            }
        }
        self.settle(1);
    }

    fn dial(&mut self, party: usize) {
        let (Some(coordinator), Some(runtime)) = (&self.coordinator, &self.runtime) else { return };
        let _inside = runtime.enter();
        let mut link = Link::new(party, coordinator.attach(NAMES[party]), self.now);
        // The message may gain fields that this stand-in does not use.
        #[allow(clippy::needless_update)]
        let hello = Hello { protocol: conclave_proto::PROTOCOL, software: "simulated".into(), ..Hello::default() };
        link.say(Said::Hello(hello));
        self.nodes[party].link = Some(self.links.len());
        self.links.push(link);
    }

    /// Closes the party's end of its connection; the party dials again later.
    pub(crate) fn hang_up(&mut self, party: usize) {
        if let Some(link) = self.nodes[party].link.take() {
            self.links[link].hang_up();
        }
    }

    fn deliver_down(&mut self, at: usize) {
        let (link, now) = (&mut self.links[at], self.now);
        let party = link.party;
        let Some(Item::Frame(bytes)) = link.down.pop_front() else { return self.hang_up(party) };
        self.recorder.frames += 1;
        link.heard = now;
        let frame = CoordinatorFrame::decode(bytes.as_slice()).expect("a frame");
        match frame.body {
            Some(Body::Welcome(_)) => link.welcomed = true,
            // As in `party::link`: a frame before the welcome.
            Some(_) if !link.welcomed => return self.hang_up(party),
            _ => {}
        }
        let frame = self.mutant.deliver(&self.recorder, &self.jobs, party, at, frame);
        let outbox = self.links[at].outbox();
        self.nodes[party].desk.push_back((frame, outbox));
    }

    /// Lets a party handle a frame. Where `kept` is false, it is killed before it sends anything.
    pub(crate) fn handle(&mut self, party: usize, frame: CoordinatorFrame, outbox: &mpsc::Sender<PartyFrame>, kept: bool) {
        let Some(Body::Query(query)) = &frame.body else {
            let discarded = mpsc::channel(8).0;
            return self.take(party, frame, if kept { outbox } else { &discarded });
        };
        let query = query.clone();
        let Some(job) = self.jobs.number(&query.job) else { panic!("a query of an unknown job") };
        let round = (party, job, query.iteration);
        self.recorder.record_query(round, &query);
        let times = self.recorder.handled.get(&round).copied().unwrap_or(0);
        self.seed_noise(round, &query, times);
        let (own, mut replies) = mpsc::channel(8);
        let asked = self.mutant.ask(times, &query);
        for query in asked {
            self.take(party, CoordinatorFrame { body: Some(Body::Query(query)) }, &own);
        }
        let mut last = None;
        while let Ok(frame) = replies.try_recv() {
            last = Some(frame);
        }
        let Some(PartyFrame { body: Some(Said::Answer(mut answer)) }) = last else { panic!("a query without an answer") };
        answer.iteration = query.iteration;
        if kept {
            let masked = self.fixture.kinds[self.jobs.0[job].kind].masked;
            assert_eq!((answer.digest.len(), answer.check.is_some()), if masked { (32, true) } else { (0, false) });
            // A masked answer is sent once, in either durability mode.
            self.recorder.record_answer(round, &query, &answer, self.strict() || masked);
            self.mutant.answer(&self.plan, round, &mut answer);
            self.time_garbage(Some(round));
            // A closed connection takes nothing more.
            let _ = outbox.try_send(PartyFrame { body: Some(Said::Answer(answer)) });
        }
    }

    fn take(&mut self, party: usize, frame: CoordinatorFrame, outbox: &mpsc::Sender<PartyFrame>) {
        if let Some(process) = &mut self.nodes[party].process {
            process.take(frame, outbox);
        }
    }

    /// Seeds the noise of each answer; a repeated answer with new noise would differ.
    fn seed_noise(&mut self, round: (usize, usize, u64), query: &Query, times: u64) {
        let mut hash = DefaultHasher::new();
        (self.plan.noise, round, query.attempt, times).hash(&mut hash);
        if let Some(process) = &mut self.nodes[round.0].process {
            process.seed_noise(hash.finish());
        }
    }

    /// Lets time pass: heartbeats are exchanged, and ends without traffic give up.
    pub(crate) fn wait(&mut self, ms: u64) {
        let until = self.now + ms;
        while self.now < until {
            self.settle((until - self.now).min(5000));
            for at in 0..self.links.len() {
                let (link, now) = (&mut self.links[at], self.now);
                if self.nodes[link.party].link != Some(at) {
                    continue;
                }
                if now - link.heard >= SILENCE {
                    let party = link.party;
                    self.hang_up(party);
                } else if now - link.beat >= HEARTBEAT {
                    link.beat = now;
                    link.say(Said::Heartbeat(Heartbeat { sequence: now }));
                }
            }
        }
    }
}

/// Sets the offsets of both sides' wall clocks, in minutes.
pub(crate) fn set_clocks(of_coordinator: i32, of_parties: i32) {
    coordinator::set_clock_skew_ms(i64::from(of_coordinator) * 60_000);
    party::set_clock_skew_ms(i64::from(of_parties) * 60_000);
}
