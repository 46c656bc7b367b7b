//! Conditions that every list must meet.

use std::collections::BTreeMap;

use conclave_privacy::secagg;
use conclave_proto::convert::query_to_wire;
use conclave_tests::books::{LedgerCopy, Replay};
use prost::Message;
use rusqlite::Connection;

use super::fixture::{ANALYST, NAMES};
use super::mutant::Mutant;
use super::plan::Death;
use super::world::World;

/// Outcome of a job in which a party sent garbage.
pub(crate) const ENDED_BY_GARBAGE: &str = "failed of garbage";

/// Outcome of a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Per job: releases of all parties by round and chain.
    pub(crate) releases: Vec<BTreeMap<(u64, u32), Vec<i64>>>,
    /// Per job: its end.
    pub(crate) ends: Vec<String>,
    /// Releases replaced under another attempt.
    pub(crate) reissued: u64,
    /// Answers to an attempt other than the first.
    pub(crate) attempts: usize,
    /// Frames delivered.
    pub(crate) frames: u64,
}

impl World<'_> {
    /// Checks that every job that waits for a party absent for long is paused and names it.
    pub(crate) fn check_paused(&mut self, party: usize) {
        let Some(coordinator) = &self.coordinator else { return };
        for job in self.jobs.0.iter().filter(|job| job.accepted && job.ended.is_none()) {
            if party >= self.fixture.kinds[job.kind].parties {
                continue;
            }
            let status = coordinator.status(&job.signed.job, ANALYST).expect("a job that was accepted");
            assert_eq!(status.state, "paused", "{} has been away for a minute: {status:?}", NAMES[party]);
            assert!(status.waiting_for.iter().any(|name| name == NAMES[party]), "{status:?}");
        }
    }

    /// Ends everything in order and compares the records of all sides.
    pub(crate) fn check(mut self) -> Outcome {
        self.end_coordinator(Death::Stop);
        for node in &mut self.nodes {
            node.end(Death::Stop);
        }
        let store = Connection::open(self.scratch.path().join("coordinator.sqlite")).expect("the store");
        if self.mutant == Mutant::LosesARound {
            store.execute("DELETE FROM rounds WHERE iteration = (SELECT max(iteration) FROM rounds)", []).expect("SQL");
        }
        let ledgers: Vec<Connection> =
            self.nodes.iter().map(|node| Connection::open(node.folder.join("ledger.sqlite")).expect("a ledger")).collect();
        let attempts = self.recorder.answers.values().filter(|(attempt, _)| *attempt > 0).count();
        let mut outcome =
            Outcome { attempts, reissued: self.recorder.reissued, frames: self.recorder.frames, ..Outcome::default() };
        for job in 0..self.jobs.0.len() {
            let (end, releases) = self.check_job(job, &store, &ledgers);
            outcome.ends.push(end);
            outcome.releases.push(releases);
        }
        outcome
    }

    fn check_job(&self, at: usize, store: &Connection, ledgers: &[Connection]) -> (String, BTreeMap<(u64, u32), Vec<i64>>) {
        let job = &self.jobs.0[at];
        let (id, parties) = (job.signed.job.as_str(), self.fixture.kinds[job.kind].parties);
        let ended = job.ended.as_ref().expect("every job has ended");
        let stored: String = store.query_row("SELECT state FROM jobs WHERE id = ?1", [id], |row| row.get(0)).expect("the job");
        assert_eq!(stored, ended.state);
        let opened: usize = store
            .query_row(
                "SELECT count(*) FROM job_parties JOIN jobs ON key = job WHERE id = ?1 AND records IS NOT NULL",
                [id],
                |row| row.get(0),
            )
            .expect("a count");
        let copies: Vec<LedgerCopy> = ledgers[..parties].iter().map(|ledger| LedgerCopy::of(ledger, id)).collect();
        if opened < parties {
            assert_eq!(ended.state, "cancelled", "it never started: {ended:?}");
            // The coordinator repeats queries that it had not committed when it was killed, unless the analyst ends the job
            // first.
            assert!(
                self.killed || copies.iter().all(|ledger| ledger.rows.is_empty()),
                "charged before every party had opened the job"
            );
            return ("cancelled before it began".into(), BTreeMap::new());
        }
        let replay = Replay::of(store, id);
        let draws = self.scratch.path().join("draws");
        let [file, folder] = [".zarr.zip", ".zarr"].map(|suffix| draws.join(format!("{id}{suffix}")));
        let draws = if file.exists() { file } else { folder };
        if draws.exists() || replay.rounds > 0 {
            replay.assert_equals_zarr(&draws);
        }
        let end = self.check_end(at, &replay);
        for (party, ledger) in copies.iter().enumerate() {
            self.check_ledger(at, party, ledger, &replay);
            if end == ENDED_BY_GARBAGE {
                self.check_garbage_charged(at, party, ledger, &replay);
            }
        }
        // Masks differ in every run; the sums under them do not.
        let open = |released: &Vec<i64>| {
            let masked = self.fixture.kinds[job.kind].masked;
            if masked { vec![secagg::opened(released.iter().copied())] } else { released.clone() }
        };
        (end, replay.releases.iter().map(|(id, (released, _))| (*id, open(released))).collect())
    }

    /// Checks that the job ended for a reason, with the right draws.
    fn check_end(&self, at: usize, replay: &Replay) -> String {
        let job = &self.jobs.0[at];
        let ended = job.ended.as_ref().expect("every job has ended");
        let stopped_by = serde_json::from_str::<serde_json::Value>(&ended.result_json).ok();
        let stopped_by = stopped_by.as_ref().and_then(|result| result["stopped_by"].as_str()).unwrap_or("nothing").to_owned();
        let kept = replay.draws.iter().filter(|draw| !draw.warmup).count() / replay.spec.sampler.chains as usize;
        let all = replay.spec.sampler.draws as usize;
        assert_eq!(ended.draws as usize, kept, "draws kept: {ended:?}");
        if self.ended_by_garbage(at, ended, replay) {
            return ENDED_BY_GARBAGE.into();
        }
        match (ended.state.as_str(), stopped_by.as_str()) {
            ("finished", "draws") => assert!(replay.complete && kept == all, "{kept} draws of {all}"),
            ("finished", "budget") => assert!(!replay.complete && kept > 0),
            ("cancelled", "cancelled") => assert!(job.cancelled || !replay.complete),
            ("cancelled", "nothing") => assert_eq!(kept, 0),
            ("failed", _) => assert_eq!((ended.error_code.as_str(), kept), ("budget", 0), "{ended:?}"),
            _ => panic!("an end without a reason: {ended:?}"),
        }
        assert!(!job.cancelled || ended.state != "failed" || kept == 0);
        format!("{} by {stopped_by}", ended.state)
    }

    /// Checks that the records of a party, of the coordinator and of the recorder agree: each query was charged once, at its
    /// price, and answered once.
    fn check_ledger(&self, at: usize, party: usize, ledger: &LedgerCopy, replay: &Replay) {
        let mut beyond = replay.assert_in_ledger(ledger, party);
        // The same applies to rounds that it had absorbed and not committed.
        let cut_short = self.killed && self.jobs.0[at].ended.as_ref().is_some_and(|ended| ended.state == "cancelled");
        if cut_short {
            let asked = |id: &(u64, u32)| self.recorder.queries.contains_key(&(party, at, id.0));
            assert!(beyond.iter().all(asked), "charged at party {party} without a query: {beyond:?}");
            beyond.retain(|id| replay.unfinished.contains_key(id));
        }
        assert!(beyond.is_empty() || beyond.len() == replay.unfinished.len(), "part of a round is charged: {beyond:?}");
        for id in &beyond {
            let price = replay.unfinished.get(id).unwrap_or_else(|| panic!("{id:?} is charged at party {party} without a query"));
            assert_eq!(ledger.rows[id].charge, *price, "price of {id:?} at party {party}");
        }
        for ((round, chain), (_, released)) in self.recorder.answers.iter().filter(|((r, _), _)| (r.0, r.1) == (party, at)) {
            let row = ledger.rows.get(&(round.2, *chain)).unwrap_or_else(|| panic!("{round:?} was released without a charge"));
            assert_eq!(row.released, Some(*released), "{round:?}: the release differs from the ledger");
        }
        for ((_, _, iteration), asked) in self.recorder.queries.iter().filter(|(r, _)| (r.0, r.1) == (party, at)) {
            if cut_short && !replay.queries.contains_key(iteration) {
                continue;
            }
            let queries = replay.queries.get(iteration).unwrap_or_else(|| panic!("round {iteration} is not of the chain"));
            let expected = query_to_wire(&self.jobs.0[at].signed.job, *iteration, queries).encode_to_vec();
            assert!(*asked == expected, "round {iteration} sent party {party} another query than the chain's");
        }
    }
}
