//! A party's own noised number is nowhere but in its memory, and what leaves has one length.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use conclave_party::ledger::export;
use conclave_proto::convert::{AnswerStatus, query_to_wire};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{self, CoordinatorFrame, PartyFrame, party_frame};
use prost::Message;

use super::lab::{Lab, Seat, released};

const ROUNDS: u64 = 4;

/// The forms in which a number could stand somewhere: eight bytes, six as SQLite keeps one of this size, and its digits.
fn forms(number: i64) -> Vec<Vec<u8>> {
    let big = number.to_be_bytes();
    vec![
        number.to_le_bytes().to_vec(),
        big[2..].to_vec(),
        number.to_string().into_bytes(),
        format!("{:016x}", number).into_bytes(),
        format!("{:016X}", number).into_bytes(),
        (number as f64).to_le_bytes().to_vec(),
    ]
}

fn holds(haystack: &[u8], number: i64) -> bool {
    forms(number).iter().any(|form| haystack.windows(form.len()).any(|window| window == form))
}

/// Everything on a party's disk, and everything that it can be made to print.
fn traces(seat: &Seat) -> Vec<u8> {
    fn read(folder: &Path, into: &mut Vec<u8>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                read(&path, into);
            } else {
                into.extend(std::fs::read(&path).expect("a file"));
            }
        }
    }
    let mut all = Vec::new();
    read(seat.identity.parent().expect("a folder"), &mut all);
    all
}

fn exported(seat: &Seat) -> Vec<u8> {
    let mut lines = Vec::new();
    export::write(&seat.keeping(), &mut lines).expect("an export");
    lines
}

/// A log that keeps everything.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The numbers of a party, from the same job without masks: the same records and the same noise.
#[test]
fn a_partys_own_number_is_nowhere_but_in_its_memory() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone());
    let (numbers, mut traces_in_plain, mut traces_masked, wire) =
        tracing_subscriber::util::SubscriberInitExt::set_default(subscriber.finish()).hold(|| {
            let (mut plain, mut lab) = (Lab::of(3, 1, ""), Lab::masked(3, 1));
            plain.open(1).expect("a job that opens");
            lab.begin();
            let (mut numbers, mut wire) = (Vec::new(), Vec::new());
            for iteration in 0..ROUNDS {
                let in_plain = query_to_wire(&plain.job.job, iteration, &plain.queries());
                numbers.extend_from_slice(released(&plain.ask(1, &in_plain)).expect("an answer"));
                let question = lab.question(iteration);
                if iteration == 2 {
                    // Charged, and killed before its answer: what was computed is nowhere either.
                    lab.seats[1].restart();
                    lab.open(1).expect("a job that opens again");
                }
                let answer = lab.ask(1, &question);
                wire.extend(PartyFrame { body: Some(party_frame::Body::Answer(answer)) }.encode_to_vec());
                // Asked again, and refused.
                lab.ask(1, &question);
                lab.ask(1, &v1::Query { attempt: 1, ..question });
            }
            // With the log of the database as it is while the party runs.
            let mut traces_masked = traces(&lab.seats[1]);
            let mut traces_in_plain = traces(&plain.seats[1]);
            lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: lab.job.job.clone(), reason: "finished".into(), waits: false }));
            for lab in [&mut lab, &mut plain] {
                lab.seats[1].kill();
            }
            traces_masked.extend(traces(&lab.seats[1]));
            traces_masked.extend(exported(&lab.seats[1]));
            traces_in_plain.extend(exported(&plain.seats[1]));
            (numbers, traces_in_plain, traces_masked, wire)
        });
    let log = log.0.lock().expect("no panic").clone();
    assert!(log.len() > 100, "nothing was logged: {}", String::from_utf8_lossy(&log));
    traces_masked.extend(&wire);
    traces_masked.extend(&log);
    // Six bytes at least, or a match says nothing.
    let large: Vec<i64> = numbers.into_iter().filter(|number| number.unsigned_abs() > 1 << 31).collect();
    assert!(large.len() >= 20, "{}", large.len());
    for number in &large {
        assert!(holds(&traces_in_plain, *number), "the search finds what is there");
        assert!(!holds(&traces_masked, *number), "{number} has been left somewhere");
        // Not its negative either, nor all of it but the last bits.
        assert!(!holds(&traces_masked, -*number));
    }
    traces_in_plain.clear();
}

/// Runs something and then lets go.
trait Hold: Sized {
    fn hold<T>(self, run: impl FnOnce() -> T) -> T {
        let out = run();
        drop(self);
        out
    }
}

impl<T> Hold for T {}

#[cfg(unix)]
#[test]
fn keys_are_their_owners_alone_and_go_with_their_job() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    for place in lab.honest() {
        let file = lab.seats[place].key_file(&lab.job.job);
        assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
    }
    // Not in an export, and not beside the ledger.
    let file = lab.seats[1].key_file(&lab.job.job);
    let bytes = std::fs::read(&file).expect("a key");
    lab.seats[1].kill();
    let exported = exported(&lab.seats[1]);
    let secret = &bytes[bytes.len() - 200..bytes.len() - 160];
    assert!(!exported.windows(secret.len()).any(|window| window == secret));
    assert!(!lab.seats[1].ledger.with_file_name("mask-keys").exists());
    lab.seats[1].start();
    lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: lab.job.job.clone(), reason: "finished".into(), waits: false }));
    assert!(!file.exists());
}

/// Over answers, and over refusals for every reason, before the roster, while the job runs, and after it: one length.
#[test]
fn all_replies_to_a_message_of_a_masked_job_have_one_length() {
    let mut lab = Lab::masked(3, 1);
    let entries = lab.open_all();
    let mut lengths = Vec::new();
    let mut reply = |lab: &mut Lab, query: &v1::Query, expected: AnswerStatus| {
        let answer = lab.ask(1, query);
        assert_eq!(answer.status, Some(expected.to_wire()));
        lengths.push((expected, PartyFrame { body: Some(party_frame::Body::Answer(answer)) }.encode_to_vec().len()));
    };
    let question = lab.question(3);
    reply(&mut lab, &question, AnswerStatus::Policy);
    lab.show(1, &entries).expect("a roster");
    reply(&mut lab, &question, AnswerStatus::Released);
    reply(&mut lab, &question, AnswerStatus::Released);
    reply(&mut lab, &v1::Query { attempt: 1, ..question.clone() }, AnswerStatus::Invalid);
    let mut other = question.clone();
    other.proposals[0].to[0] = 0.11;
    reply(&mut lab, &other, AnswerStatus::Conflict);
    let mut outside = lab.question(4);
    outside.proposals[0].to[0] = 1e9;
    reply(&mut lab, &outside, AnswerStatus::Invalid);
    let mut dear = lab.question(5);
    dear.proposals.iter_mut().for_each(|proposal| (proposal.to[0], proposal.noise_scale) = (0.9, 1 << 29));
    reply(&mut lab, &dear, AnswerStatus::Budget);
    lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: lab.job.job.clone(), reason: "finished".into(), waits: false }));
    reply(&mut lab, &question, AnswerStatus::UnknownJob);
    lab.seats[1].restart();
    reply(&mut lab, &question, AnswerStatus::UnknownJob);
    assert!(lengths.windows(2).all(|pair| pair[0].1 == pair[1].1), "{lengths:?}");
    let frame = CoordinatorFrame { body: Some(Body::Query(question)) };
    println!("{} bytes, asked in {}", lengths[0].1, frame.encode_to_vec().len());
}
