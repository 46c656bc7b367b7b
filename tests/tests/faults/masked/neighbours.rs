//! Two parties whose records differ in one run the same script, with a masked job beside a local one. Logs, entries, charges and
//! replies are identical; only the integers differ.

use std::fs;

use conclave_proto::convert::{AnswerStatus, query_to_wire};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::party_frame::Body as Said;
use conclave_proto::v1::{self, PartyFrame};
use conclave_tests::recorder::signed_job;
use prost::Message;

use super::lab::{LANES, Lab};
use super::search::with_captured_log;

/// The party whose records differ between scripts.
const PLACE: usize = 1;

/// Everything observable of one run.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Replies in the order of events, each with its subject.
    said: Vec<(String, Reply)>,
    log: String,
    /// The ledger's rows without the integers, and without data that contain a key, which differs in every run.
    charges: Vec<String>,
    events: Vec<(String, usize)>,
}

/// A reply without its integers.
#[derive(Debug, PartialEq)]
enum Reply {
    /// Status and length.
    Answer(Option<u32>, usize),
    /// Everything except the keys, and the length without the signature, whose own length varies by a byte or two.
    Other(String, usize),
}

struct Life<'l> {
    lab: &'l mut Lab,
    /// The local job beside the masked one.
    local: v1::OpenJob,
    said: Vec<(String, Reply)>,
    /// Releases of the local job.
    numbers: Vec<i64>,
}

impl Life<'_> {
    fn note(&mut self, what: &str, said: Vec<Said>) {
        for mut body in said {
            if let Said::Answer(answer) = &body {
                let length = PartyFrame { body: Some(body.clone()) }.encoded_len();
                self.said.push((what.to_owned(), Reply::Answer(answer.status, length)));
                continue;
            }
            if let Said::JobOpened(v1::JobOpened { mask_key: Some(key), .. }) = &mut body {
                key.signature.clear();
            }
            let length = PartyFrame { body: Some(body.clone()) }.encoded_len();
            match &mut body {
                Said::JobOpened(opened) => (opened.head, opened.mask_key) = (Vec::new(), None),
                Said::RosterAccepted(accepted) => (accepted.digest, accepted.confirm) = (Vec::new(), Vec::new()),
                _ => {}
            }
            self.said.push((what.to_owned(), Reply::Other(format!("{body:?}"), length)));
        }
    }

    fn say(&mut self, what: &str, body: Body) {
        let said = self.lab.seats[PLACE].say(body);
        self.note(what, said);
    }

    /// Sends a query to one of the two jobs and checks the status of the answer.
    fn ask(&mut self, masked: bool, query: &v1::Query, expected: AnswerStatus) {
        let job = if masked { &self.lab.job.job } else { &self.local.job };
        let query = v1::Query { job: job.clone(), ..query.clone() };
        let answer = self.lab.ask(PLACE, &query);
        let what = format!("{} round {}", if masked { "masked" } else { "local" }, query.iteration);
        assert_eq!(answer.status, Some(expected.to_wire()), "{what}");
        if expected != AnswerStatus::Released {
            // A refusal consists of zeros, in the same length.
            let echo = answer.digest.iter().all(|byte| *byte == 0) && answer.check.is_none_or(|check| check == 0);
            assert!(echo && answer.releases.iter().all(|number| *number == 0), "{what}: {answer:?}");
        } else if !masked {
            self.numbers.extend_from_slice(&answer.releases);
        }
        assert_eq!(answer.digest.len(), if masked { 32 } else { 0 }, "{what}");
        self.note(&what, vec![Said::Answer(answer)]);
    }

    fn open(&mut self) {
        let (local, masked) = (self.local.clone(), self.lab.job.clone());
        self.say("local", Body::OpenJob(local));
        self.say("masked", Body::OpenJob(masked));
    }

    fn close(&mut self, job: &str) {
        self.say("end", Body::CloseJob(v1::CloseJob { job: job.to_owned(), reason: "finished".into(), waits: false }));
    }

    /// Sends both jobs every valid kind of query, and invalid ones.
    fn live(&mut self, mut roster: Vec<v1::RosterEntry>) {
        let whole = query_to_wire("", 0, &self.lab.queries());
        let round = |iteration: u64| v1::Query { iteration, ..whole.clone() };
        self.open();
        // A party's own key differs in every run.
        roster[PLACE].key = self.lab.open(PLACE).expect("a job that opens");
        self.ask(false, &round(0), AnswerStatus::Released);
        self.ask(true, &round(0), AnswerStatus::Policy);
        for piece in conclave_proto::roster::pieces(&self.lab.job.job, roster.clone()) {
            self.say("roster", Body::Roster(piece));
        }
        self.ask(true, &round(0), AnswerStatus::Released);
        for masked in [true, false] {
            for iteration in 1..4 {
                self.ask(masked, &round(iteration), AnswerStatus::Released);
                self.ask(!masked, &round(iteration + 10), AnswerStatus::Released);
                self.ask(masked, &round(iteration), AnswerStatus::Released);
            }
            for lanes in [1, 5, LANES as usize - 1] {
                let mut part = round(30 + lanes as u64);
                part.proposals.truncate(lanes);
                self.ask(masked, &part, AnswerStatus::Released);
            }
            let changed = |iteration: u64, change: &dyn Fn(&mut v1::Proposal)| {
                let mut query = round(iteration);
                query.proposals.iter_mut().for_each(change);
                query
            };
            self.ask(masked, &changed(1, &|proposal| proposal.to[0] = 0.11), AnswerStatus::Conflict);
            self.ask(masked, &changed(70, &|proposal| proposal.to[0] = 1e9), AnswerStatus::Invalid);
            self.ask(masked, &changed(71, &|proposal| proposal.from[0] = f64::NAN), AnswerStatus::Invalid);
            let expensive = |proposal: &mut v1::Proposal| (proposal.to[0], proposal.noise_scale) = (0.9, 1 << 29);
            self.ask(masked, &changed(72, &expensive), AnswerStatus::Budget);
            // Queries whose contributions are all zero, and queries with larger contributions than a step's.
            self.ask(masked, &changed(73, &|proposal| proposal.to[0] = proposal.from[0]), AnswerStatus::Released);
            self.ask(masked, &changed(74, &|proposal| proposal.from[0] = 0.09), AnswerStatus::Released);
        }
        self.ask(true, &v1::Query { attempt: 1, ..round(1) }, AnswerStatus::Invalid);
        self.lab.seats[PLACE].restart();
        self.ask(true, &round(1), AnswerStatus::UnknownJob);
        self.open();
        for masked in [true, false] {
            self.ask(masked, &round(1), AnswerStatus::Released);
            self.ask(masked, &round(80), AnswerStatus::Released);
        }
        let (local, masked) = (self.local.job.clone(), self.lab.job.job.clone());
        self.close(&masked);
        self.ask(true, &round(81), AnswerStatus::UnknownJob);
        self.ask(false, &round(81), AnswerStatus::Released);
        self.close(&local);
        self.ask(false, &round(82), AnswerStatus::UnknownJob);
        self.open();
    }
}

/// Runs the script on these records, ledger creation included; returns everything observable, and the local job's releases.
fn live(lab: &mut Lab, local: &v1::OpenJob, roster: &[v1::RosterEntry], rows: &str) -> (Seen, Vec<i64>) {
    let seat = &mut lab.seats[PLACE];
    seat.kill();
    let folder = seat.ledger.parent().expect("a folder").to_owned();
    fs::remove_dir_all(&folder).expect("a folder");
    fs::create_dir(&folder).expect("a folder");
    for file in ["ledger-secret.key", "ledger-head"] {
        fs::remove_file(seat.identity.join(file)).expect("a file");
    }
    let _ = fs::remove_dir_all(seat.identity.join("mask-keys"));
    fs::write(&seat.rows, rows).expect("records");
    seat.keeping().init().expect("a ledger");
    let ((said, numbers), log) = with_captured_log(|| {
        lab.seats[PLACE].start();
        let mut life = Life { lab: &mut *lab, local: local.clone(), said: Vec::new(), numbers: Vec::new() };
        life.live(roster.to_vec());
        (life.said, life.numbers)
    });
    let ledger = lab.seats[PLACE].read();
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = ledger.prepare(sql).expect("SQL");
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at)).collect::<Result<Vec<_>, _>>()
        };
        statement.query_map([], row).expect("rows").map(|row| format!("{:?}", row.expect("a row"))).collect()
    };
    let charges = rows(
        "SELECT seq, job, iteration, chain, attempt, theta, theta_next, kind, integers, k_t, s, honest, charge, alone, mu_squared, \
         released IS NULL FROM releases ORDER BY seq",
    );
    let mut statement = ledger.prepare("SELECT kind, length(body) FROM events ORDER BY seq").expect("SQL");
    let events = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("events").collect::<Result<_, _>>();
    let log = String::from_utf8(log).expect("text");
    (Seen { said, log, charges, events: events.expect("events") }, numbers)
}

fn rows(last: &[&str]) -> String {
    let ordinary: String = (0..60).map(|row| format!("{}\n", 120 + row * 7 % 60)).collect();
    format!("height\n{ordinary}{}\n", last.join("\n"))
}

#[test]
fn one_record_affects_only_the_integers() {
    let mut lab = Lab::masked(3, 1);
    let text = lab.job.spec_toml.split("[aggregation]").next().expect("a job file");
    let local = signed_job(&lab.folder.path().join("alice"), text);
    let roster = lab.open_all();
    let (ordinary, numbers) = live(&mut lab, &local, &roster, &rows(&["150"]));
    // The script has covered all of this.
    for words in ["job is open", "roster of keys is entered", "refused (Budget)", "closed"] {
        assert!(ordinary.log.contains(words), "{words}: {}", ordinary.log);
    }
    assert!(
        ordinary.charges.len() > 300 && ordinary.events.len() > 5,
        "{} charges, {:?}",
        ordinary.charges.len(),
        ordinary.events
    );
    one_length_by_lanes(&ordinary);
    for last in ["100", "200", "1e300", "-1e300", "1e-310"] {
        let (other, others) = live(&mut lab, &local, &roster, &rows(&[last]));
        assert_eq!(other.said, ordinary.said, "{last}");
        assert_eq!(other.log, ordinary.log, "{last}");
        assert_eq!(other, ordinary, "{last}");
        // The record matters: with the same noise the opened integers differ.
        assert_ne!(others, numbers, "{last}");
    }
    let (same, again) = live(&mut lab, &local, &roster, &rows(&["150"]));
    assert!(same == ordinary && again == numbers, "a life of the same records is the same");
    // An additional record is public and observable.
    let (more, _) = live(&mut lab, &local, &roster, &rows(&["150", "150"]));
    assert_ne!(more.said, ordinary.said);
}

/// Checks that all replies to messages of all chains have one length in each job, answers and refusals alike. A round number of 0
/// takes no byte and is compared separately.
fn one_length_by_lanes(seen: &Seen) {
    for (job, first) in [("masked", true), ("masked", false), ("local", false)] {
        let mut lengths: Vec<(bool, usize)> = Vec::new();
        for (what, reply) in seen.said.iter().filter(|(what, _)| what.starts_with(job)) {
            let part = ["round 31", "round 35", "round 61"].iter().any(|part| what.ends_with(part));
            if let (false, Reply::Answer(status, length)) = (part || what.ends_with("round 0") != first, reply) {
                lengths.push((*status == Some(AnswerStatus::Released.to_wire()), *length));
            }
        }
        assert!(lengths.iter().any(|(released, _)| *released) && lengths.iter().any(|(released, _)| !released), "{job}");
        assert!(lengths.iter().all(|(_, length)| *length == lengths[0].1), "{job}: {lengths:?}");
    }
}
