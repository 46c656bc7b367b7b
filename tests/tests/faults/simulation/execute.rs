//! Execution of a list from its first operation to the last, and then until everything has recovered.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fixture::Fixture;
use super::link::{Fate, Item};
use super::mutant::Mutant;
use super::plan::{Death, Direction, Op, Plan};
use super::world::{Move, World, set_clocks};

/// Operations after which a stopped party is restarted.
const DOWN: u32 = 3;
/// Seconds within which everything must have ended once there are no more faults.
const PATIENCE: u32 = 600;

/// Executes a list; panics with a violated condition.
pub(crate) fn execute<'f>(fixture: &'f Fixture, plan: &Plan, mutant: Mutant) -> World<'f> {
    let mut world = World::new(fixture, plan, mutant);
    for op in &plan.ops {
        world.perform(*op);
        for at in 0..world.nodes.len() {
            let node = &mut world.nodes[at];
            if node.process.is_none() {
                node.down += 1;
                if node.down >= DOWN {
                    node.start();
                }
            }
        }
    }
    world.heal();
    world.run_to_end();
    // Delivers the reports of the ends to the parties.
    world.run_dry();
    world
}

impl World<'_> {
    fn perform(&mut self, op: Op) {
        let of = |party: u8, world: &Self| usize::from(party) % world.nodes.len();
        match op {
            Op::Steps { count, salt } => self.steps(count, salt),
            Op::Cut { party, up, down } => self.cut(of(party, self), up, down),
            Op::AnswerLost { party } => self.lose_answer(of(party, self)),
            Op::Party { party, death } => self.end_party(of(party, self), death),
            Op::KilledAnswering { party, pages } => self.kill_answering(of(party, self), pages.into()),
            Op::Start { party } => {
                let node = of(party, self);
                self.nodes[node].start();
            }
            Op::Coordinator { death, commit, forget } => {
                if let Some(coordinator) = &self.coordinator {
                    coordinator.commit_next(commit.into());
                }
                self.end_coordinator(death);
                if forget > 0 {
                    self.forget_rounds(forget);
                }
                self.start_coordinator();
            }
            Op::Commit { count } => self.coordinator.iter().for_each(|c| c.commit_next(count.into())),
            Op::Twice { party, direction, at } => self.in_transit(of(party, self), direction, at, |queue, at| {
                let again = queue[at].clone();
                queue.insert(at, again);
            }),
            Op::Overtake { party, direction, at } => self.in_transit(of(party, self), direction, at, |queue, at| {
                if at + 1 < queue.len() {
                    queue.swap(at, at + 1);
                }
            }),
            Op::Delay { party, direction, steps } => {
                let node = of(party, self);
                self.nodes[node].still[usize::from(direction == Direction::Down)] = steps;
            }
            Op::Partition { party, seconds } => self.partition(of(party, self), seconds),
            Op::Wait { ms } => self.wait(ms.into()),
            Op::Clocks { coordinator, parties } => set_clocks(coordinator, parties),
            Op::Submit => self.jobs.0.iter_mut().for_each(|job| job.wanted = true),
            Op::Cancel { job } => {
                if let (Some(runtime), Some(coordinator)) = (&self.runtime, &self.coordinator) {
                    self.jobs.cancel(job.into(), runtime, coordinator);
                }
                self.settle(1);
            }
        }
    }

    fn steps(&mut self, count: u8, salt: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(salt);
        for _ in 0..count {
            let moves = self.moves();
            match moves.len() {
                0 => self.settle(1),
                many => self.make(moves[rng.random_range(0..many)]),
            }
        }
    }

    fn cut(&mut self, party: usize, up: Fate, down: Fate) {
        if let Some(link) = self.nodes[party].link {
            self.links[link].cut(up, down);
        }
    }

    fn lose_answer(&mut self, party: usize) {
        while let Some(next) = self.moves().into_iter().find(|next| match next {
            Move::Handle(node) => *node == party,
            Move::Down(link) => self.nodes[party].link == Some(*link),
            _ => false,
        }) {
            self.make(next);
        }
        self.cut(party, Fate::Lost, Fate::Lost);
    }

    fn end_party(&mut self, party: usize, death: Death) {
        self.nodes[party].end(death);
        self.nodes[party].down = 0;
        self.hang_up(party);
    }

    /// Kills a party in the middle of its next answer, if it has received a query; otherwise as it opens a job or enters a
    /// roster.
    fn kill_answering(&mut self, party: usize, pages: usize) {
        use conclave_proto::v1::coordinator_frame::Body;
        let node = &mut self.nodes[party];
        if node.process.is_none() {
            return;
        }
        let is_query = |body: &Option<Body>| matches!(body, Some(Body::Query(_)));
        let writes = |body: &Option<Body>| matches!(body, Some(Body::OpenJob(_) | Body::Roster(_)));
        let query = node.desk.iter().position(|(frame, _)| is_query(&frame.body));
        let query = query.or_else(|| node.desk.iter().position(|(frame, _)| writes(&frame.body)));
        if let Some(query) = query {
            for _ in 0..query {
                self.make(Move::Handle(party));
            }
            let before = self.nodes[party].snapshot();
            if let Some((frame, outbox)) = self.nodes[party].desk.pop_front() {
                self.handle(party, frame, &outbox, false);
            }
            self.nodes[party].kill_between(&before, pages);
        }
        self.end_party(party, Death::Kill);
    }

    fn in_transit(
        &mut self,
        party: usize,
        direction: Direction,
        at: u8,
        act: impl Fn(&mut std::collections::VecDeque<Item>, usize),
    ) {
        let Some(link) = self.nodes[party].link.map(|link| &mut self.links[link]) else { return };
        let queue = if direction == Direction::Up { &mut link.up } else { &mut link.down };
        if !queue.is_empty() {
            let at = usize::from(at) % queue.len();
            act(queue, at);
        }
    }

    /// Cuts a party off while the others continue as far as they can.
    fn partition(&mut self, party: usize, seconds: u8) {
        let until = self.now + 1000 * u64::from(seconds);
        self.nodes[party].cut_off = until;
        while self.now < until {
            self.run_dry();
            self.wait((until - self.now).min(5000));
        }
        if seconds >= 60 {
            self.check_paused(party);
        }
    }

    /// Makes every possible move, the oldest connections first.
    fn run_dry(&mut self) {
        for _ in 0..100_000 {
            let Some(next) = self.moves().first().copied() else { return };
            self.make(next);
        }
        panic!("frames are exchanged without end");
    }

    /// Removes all faults.
    fn heal(&mut self) {
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            (node.cut_off, node.still) = (0, [0; 2]);
            node.start();
            if let Some(link) = node.link
                && self.links[link].broken
            {
                self.hang_up(at);
            }
        }
        self.jobs.0.iter_mut().for_each(|job| job.wanted = true);
    }

    fn run_to_end(&mut self) {
        for _ in 0..PATIENCE {
            self.run_dry();
            if self.jobs.all_ended() {
                return;
            }
            self.wait(1000);
        }
        let states = self.jobs.0.iter().map(|job| {
            let status = self.coordinator.as_ref().map(|c| c.status(&job.signed.job, super::fixture::ANALYST));
            format!("{status:?}")
        });
        panic!("the list does not end: {}", states.collect::<Vec<_>>().join("; "));
    }
}
