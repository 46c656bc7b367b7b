//! A script of messages to the small process, and its outcome.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1::{self, coordinator_frame::Body, party_frame};
use prost::Message;

use super::observer::Observer;
use super::shim::Plan;
use super::{IDENTITY, Mode, jobs};

/// A step of the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Opens a job, possibly again.
    Open(usize),
    /// Queries two chains of a round.
    Ask(usize, u64),
    /// Queries a round with different content.
    Altered(usize, u64),
    /// Queries one chain twice in a message.
    Twice(usize, u64),
    /// Closes a job.
    Close(usize),
}

/// Opening, queries, repeated queries, altered ones, rounds out of order, closing and reopening.
pub const SCRIPT: [Step; 18] = [
    Step::Open(0),
    Step::Ask(0, 0),
    Step::Ask(0, 1),
    Step::Open(1),
    Step::Ask(1, 0),
    Step::Ask(0, 0),
    Step::Altered(0, 1),
    Step::Twice(0, 2),
    Step::Ask(0, 2),
    Step::Ask(1, 3),
    Step::Ask(1, 1),
    Step::Ask(0, 3),
    Step::Close(0),
    Step::Open(0),
    Step::Ask(0, 3),
    Step::Ask(0, 4),
    Step::Ask(1, 0),
    Step::Ask(1, 2),
];

/// The same for masked jobs, without reopening after a close. A local job beside them may send answers before they are synced.
pub const MASKED: [Step; 20] = [
    Step::Open(2),
    Step::Ask(2, 0),
    Step::Open(0),
    Step::Ask(0, 0),
    Step::Ask(2, 1),
    Step::Open(3),
    Step::Ask(3, 0),
    Step::Ask(2, 0),
    Step::Altered(2, 1),
    Step::Twice(2, 2),
    Step::Ask(0, 1),
    Step::Open(2),
    Step::Ask(2, 2),
    Step::Ask(3, 3),
    Step::Ask(3, 1),
    Step::Ask(2, 3),
    Step::Close(2),
    Step::Open(2),
    Step::Ask(3, 2),
    Step::Ask(0, 2),
];

/// The same for a job with subsampled releases, two chains per message and three places per block. Blocks are opened before,
/// between and within messages, in rounds that arrive out of order and are repeated. A local job beside it may send answers
/// before they are synced.
pub const SAMPLES: [Step; 19] = [
    Step::Open(4),
    Step::Ask(4, 0),
    Step::Open(0),
    Step::Ask(0, 0),
    Step::Ask(4, 1),
    Step::Ask(4, 0),
    Step::Altered(4, 1),
    Step::Twice(4, 2),
    Step::Ask(0, 1),
    Step::Ask(4, 3),
    Step::Ask(4, 2),
    Step::Close(4),
    Step::Open(4),
    Step::Ask(4, 3),
    Step::Ask(4, 4),
    Step::Ask(0, 0),
    Step::Ask(0, 2),
    Step::Ask(4, 5),
    Step::Ask(4, 1),
];

/// Returns the current and proposed point of a chain in a round. The steps are too small to exhaust a budget in the rounds that a
/// fast machine has time for.
pub fn points(iteration: u64, chain: u32) -> (f64, f64) {
    let size = [1e-5, -2e-5][chain as usize % 2];
    (0.0, size * (1 + iteration % 3) as f64)
}

/// Outcome of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The script has finished.
    Done,
    /// The process died or exited before that.
    Dead,
    /// The party reported a failed ledger.
    Halted,
}

/// Adds records and an identity to a folder that has none.
pub fn populate(folder: &Path) {
    let (rows, identity) = (folder.join("rows.csv"), folder.join(IDENTITY));
    if !rows.exists() {
        std::fs::write(rows, "height\n170\n180\n175\n164\n158\n").expect("records");
        std::fs::create_dir_all(&identity).expect("a folder");
        jobs::files().iter().for_each(|(name, text)| std::fs::write(identity.join(name), text).expect("a file"));
    }
}

/// The running process.
pub struct Party {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
}

impl Party {
    /// Starts the process in `folder`; its standard error goes to a file beside the folder.
    pub fn start(exe: &str, folder: &Path, mode: Mode, plan: Option<&Plan<'_>>) -> Self {
        Self::run(exe, folder, &[&mode.argument()], plan)
    }

    /// Unlocks the ledger as its owner would; returns true on success.
    pub fn unlock(exe: &str, folder: &Path, mode: Mode, plan: Option<&Plan<'_>>) -> bool {
        Self::run(exe, folder, &[&mode.argument(), "unlock"], plan).end().success()
    }

    /// Adds to the ledger's reserve as its owner would; returns true on success.
    pub fn add_reserve(exe: &str, folder: &Path, mode: Mode, plan: Option<&Plan<'_>>) -> bool {
        Self::run(exe, folder, &[&mode.argument(), "reserve"], plan).end().success()
    }

    fn run(exe: &str, folder: &Path, arguments: &[&str], plan: Option<&Plan<'_>>) -> Self {
        let mut command = Command::new(exe);
        populate(folder);
        if let Some(plan) = plan {
            plan.arm(&mut command, folder);
        }
        let stderr = std::fs::File::create(folder.with_extension("stderr")).expect("a log");
        command.arg(folder).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("the binary starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        Self { child, stdin, stdout }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads a frame; `None` once the process is dead.
    pub fn receive(&mut self) -> Option<party_frame::Body> {
        let mut length = [0; 4];
        self.stdout.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        self.stdout.read_exact(&mut frame).expect("frames leave whole");
        v1::PartyFrame::decode(frame.as_slice()).expect("a frame").body
    }

    /// Sends a frame; `None` once the process is dead.
    pub fn send(&mut self, body: Body) -> Option<()> {
        let frame = v1::CoordinatorFrame { body: Some(body) }.encode_to_vec();
        let length = u32::try_from(frame.len()).expect("a short frame");
        self.stdin.as_mut()?.write_all(&[&length.to_le_bytes(), frame.as_slice()].concat()).ok()
    }

    /// Closes its input and waits for its exit.
    pub fn end(mut self) -> ExitStatus {
        self.stdin = None;
        let mut rest = Vec::new();
        let _ = self.stdout.read_to_end(&mut rest);
        self.child.wait().expect("its end")
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("its end");
    }

    /// Returns the child process, for another thread to kill.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Runs the script, greeting included.
    pub fn run_script(&mut self, script: &[Step], mode: Mode, observer: &mut Observer) -> End {
        self.try_script(script, mode, observer).unwrap_or(End::Dead)
    }

    fn try_script(&mut self, script: &[Step], mode: Mode, observer: &mut Observer) -> Option<End> {
        match self.receive()? {
            party_frame::Body::Hello(_) => {}
            other => panic!("{other:?}"),
        }
        for step in script {
            if !self.step(*step, mode, observer)? {
                return Some(End::Halted);
            }
        }
        Some(End::Done)
    }

    /// Runs one step; false where the party reports a failed ledger.
    pub fn step(&mut self, step: Step, mode: Mode, observer: &mut Observer) -> Option<bool> {
        match step {
            Step::Ask(job, _) | Step::Altered(job, _) | Step::Twice(job, _) | Step::Close(job) if observer.has_closed(job) => {
                Some(true)
            }
            Step::Open(job) => {
                self.send(Body::OpenJob(jobs::open_job(job)))?;
                match self.receive()? {
                    party_frame::Body::JobOpened(opened) => {
                        assert!(!observer.has_closed(job), "{} is opened again after it has ended", jobs::id(job));
                        self.enter(job, opened.mask_key, observer)
                    }
                    // A masked job that has been closed never opens again.
                    party_frame::Body::JobPending(pending)
                        if observer.may_be_closed(job) && pending.reason.contains("submit") =>
                    {
                        observer.record_closed(job);
                        Some(true)
                    }
                    party_frame::Body::JobPending(pending) if pending.reason.contains("the ledger has failed") => Some(false),
                    other => panic!("{other:?}"),
                }
            }
            Step::Close(job) => {
                observer.record_close_request(job);
                self.send(Body::CloseJob(v1::CloseJob { job: jobs::id(job).into(), reason: "done".into(), waits: false }))?;
                Some(true)
            }
            Step::Ask(job, iteration) => self.ask(job, iteration, mode, observer),
            Step::Altered(job, iteration) => {
                let mut query = query(job, iteration, 0);
                query.proposals[1].to[0] *= 1.5;
                let expect_refusal = [AnswerStatus::Conflict, AnswerStatus::Attempt];
                self.expect_refusal(
                    query,
                    if observer.has_answer(job, iteration) { &expect_refusal } else { &expect_refusal[..0] },
                )
            }
            Step::Twice(job, iteration) => {
                let mut query = query(job, iteration, 0);
                query.proposals[1].chain = 0;
                self.expect_refusal(query, &[AnswerStatus::Conflict, AnswerStatus::Invalid])
            }
        }
    }

    /// Enters the roster of an opened job, if it is masked. At every opening the party announces the same key and confirms with
    /// the same masks.
    fn enter(&mut self, job: usize, key: Option<v1::MaskKey>, observer: &mut Observer) -> Option<bool> {
        assert_eq!(key.is_some(), jobs::is_masked(job), "a key for {}", jobs::id(job));
        let Some(key) = key else { return Some(true) };
        observer.record_key(job, &key.public);
        for piece in jobs::roster(job, key) {
            self.send(Body::Roster(piece))?;
        }
        match self.receive()? {
            party_frame::Body::RosterAccepted(accepted) => observer.record_roster(job, (accepted.digest, accepted.confirm)),
            party_frame::Body::JobRefused(expect_refusal) if expect_refusal.reason.contains("the ledger has failed") => {
                return Some(false);
            }
            other => panic!("{other:?}"),
        }
        Some(true)
    }

    /// Opens a job; returns true if the party defers it to its owner for a reason that contains `word`.
    pub fn defers_to_its_owner(&mut self, job: usize, word: &str) -> bool {
        let mut said = self.send(Body::OpenJob(jobs::open_job(job))).and_then(|()| self.receive());
        if let Some(party_frame::Body::Hello(_)) = said {
            said = self.receive();
        }
        matches!(said, Some(party_frame::Body::JobPending(pending)) if pending.reason.contains(word))
    }

    /// Queries a round; returns true if the query was refused, and `None` once the party is dead.
    pub fn refuses(&mut self, job: usize, iteration: u64) -> Option<bool> {
        Some(self.answer(query(job, iteration, 0))?.0 != AnswerStatus::Released)
    }

    /// Sends a query that must be refused with one of the allowed statuses.
    fn expect_refusal(&mut self, query: v1::Query, allowed: &[AnswerStatus]) -> Option<bool> {
        if allowed.is_empty() {
            return Some(true);
        }
        match self.answer(query)?.0 {
            AnswerStatus::Halted => Some(false),
            status => {
                assert!(allowed.contains(&status), "{status:?}");
                Some(true)
            }
        }
    }

    /// Queries a round until it is answered, and passes the answer to the observer.
    fn ask(&mut self, job: usize, iteration: u64, mode: Mode, observer: &mut Observer) -> Option<bool> {
        let mut attempt = 0;
        loop {
            observer.record_query(job, iteration);
            let (status, answer) = self.answer(query(job, iteration, attempt))?;
            match status {
                AnswerStatus::Released => {
                    observer.record_answer(job, &answer, attempt, mode);
                    return Some(true);
                }
                AnswerStatus::Halted => return Some(false),
                AnswerStatus::Attempt if mode != Mode::Strict && attempt < 100 => attempt += 1,
                other => panic!("{other:?} to round {iteration} of {}", jobs::id(job)),
            }
        }
    }

    fn answer(&mut self, query: v1::Query) -> Option<(AnswerStatus, v1::Answer)> {
        self.send(Body::Query(query))?;
        match self.receive()? {
            party_frame::Body::Answer(answer) => {
                let status = AnswerStatus::from_wire(answer.status.expect("a status")).expect("a known status");
                Some((status, answer))
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Builds a query for two chains of a round.
pub fn query(job: usize, iteration: u64, attempt: u32) -> v1::Query {
    let noise_scale = NoiseScale::from_sd(1.0).expect("a scale").units();
    let kind = if job == jobs::SAMPLED { QueryKind::SampledRatio } else { QueryKind::Ratio }.code();
    let proposals = (0..2)
        .map(|chain| {
            let (from, to) = points(iteration, chain);
            v1::Proposal { chain, from: vec![from], to: vec![to], noise_scale, kind }
        })
        .collect();
    v1::Query { job: jobs::id(job).into(), iteration, proposals, attempt }
}
