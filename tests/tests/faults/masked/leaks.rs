//! A party's own noised number is only in its memory, and all its replies have the same length.

use std::path::Path;

use conclave_party::ledger_views::export;
use conclave_proto::convert::{AnswerStatus, query_to_wire};
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{self, CoordinatorFrame, PartyFrame, party_frame};
use prost::Message;

use super::keys::kill_before_the_answer;
use super::lab::{LANES, Lab, Seat, released};
use super::search::{files, found_in, large, with_captured_log};

const ROUNDS: u64 = 4;
/// The round in which the party is killed before its answer.
const KILLED: u64 = 2;

/// Returns all bytes on a party's disk.
fn traces(seat: &Seat) -> Vec<u8> {
    files(seat.identity.parent().expect("a folder"))
}

fn count(seat: &Seat, table: &str) -> u64 {
    seat.read().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a count")
}

fn exported(seat: &Seat) -> Vec<u8> {
    let mut lines = Vec::new();
    export::write(&seat.keeping(), &mut lines).expect("an export");
    lines
}

/// Returns a party's numbers from an unmasked job with the same records and noise.
fn numbers_in_plain(plain: &mut Lab) -> Vec<i64> {
    plain.open(1).expect("a job that opens");
    let mut numbers = Vec::new();
    for iteration in 0..ROUNDS {
        let query = query_to_wire(&plain.job.job, iteration, &plain.queries());
        numbers.extend_from_slice(released(&plain.ask(1, &query)).expect("an answer"));
    }
    numbers
}

#[test]
fn a_partys_own_number_is_nowhere_but_in_its_memory() {
    let ((mut lab, numbers, in_plain, mut masked), log) = with_captured_log(|| {
        let (mut plain, mut lab) = (Lab::of(3, 1, ""), Lab::masked(3, 1));
        let numbers = numbers_in_plain(&mut plain);
        lab.begin();
        let mut masked = Vec::new();
        for iteration in 0..ROUNDS {
            let query = lab.query(iteration);
            if iteration == KILLED {
                // Charged, and killed before the answer: the computed number is not on the disk, neither before the restart nor
                // after it.
                let head = std::fs::read(lab.seats[1].identity.join("ledger-head")).expect("a head");
                released(&lab.ask(1, &query)).expect("an answer");
                kill_before_the_answer(&mut lab.seats[1], &head);
                masked.extend(traces(&lab.seats[1]));
                lab.seats[1].start();
                masked.extend(traces(&lab.seats[1]));
                let answers = count(&lab.seats[1], "answers");
                assert_eq!((lab.seats[1].charges(), answers), ((KILLED + 1) * u64::from(LANES), KILLED * u64::from(LANES)));
                lab.open(1).expect("a job that opens again");
            }
            let answer = lab.ask(1, &query);
            assert!(released(&answer).is_ok(), "round {iteration}");
            masked.extend(PartyFrame { body: Some(party_frame::Body::Answer(answer)) }.encode_to_vec());
            // The query is repeated, and refused as another attempt.
            lab.ask(1, &query);
            lab.ask(1, &v1::Query { attempt: 1, ..query });
        }
        // Includes the database's log while the party runs.
        masked.extend(traces(&lab.seats[1]));
        let mut in_plain = traces(&plain.seats[1]);
        lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: lab.job.job.clone(), reason: "finished".into(), waits: false }));
        for lab in [&mut lab, &mut plain] {
            lab.seats[1].kill();
        }
        masked.extend(traces(&lab.seats[1]));
        masked.extend(exported(&lab.seats[1]));
        in_plain.extend(exported(&plain.seats[1]));
        (lab, numbers, in_plain, masked)
    });
    assert!(log.len() > 100, "nothing was logged: {}", String::from_utf8_lossy(&log));
    masked.extend(&log);
    let numbers = large(numbers);
    assert!(numbers.len() >= 20, "{}", numbers.len());
    assert_eq!(found_in(&numbers, &in_plain).len(), numbers.len(), "the search finds known numbers");
    // The negated number must not occur either.
    let either: Vec<i64> = numbers.iter().flat_map(|number| [*number, -*number]).collect();
    assert!(found_in(&either, &masked).is_empty(), "{:?} was found", found_in(&either, &masked));
    // A ledger with a party's own number in place of its masked release would be detected.
    check_planted_number_is_found(&mut lab, numbers[0], &either);
}

/// Replaces the last answer of a stopped party with a number.
fn check_planted_number_is_found(lab: &mut Lab, number: i64, all: &[i64]) {
    let (seat, last) = (&lab.seats[1], "(SELECT max(charge) FROM answers)");
    let store = seat.read();
    let changed = store.execute(&format!("UPDATE answers SET released = ?1 WHERE charge = {last}"), [number]);
    assert_eq!(changed, Ok(1));
    drop(store);
    assert_eq!(found_in(all, &traces(seat)).into_iter().collect::<Vec<_>>(), [number], "the search misses a planted number");
}

#[cfg(unix)]
#[test]
fn keys_are_readable_by_their_owner_only_and_deleted_with_their_job() {
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

/// Answers and refusals for every reason have one length: before the roster, while the job runs, and after it.
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
    let query = lab.query(3);
    reply(&mut lab, &query, AnswerStatus::Policy);
    lab.show(1, &entries).expect("a roster");
    reply(&mut lab, &query, AnswerStatus::Released);
    reply(&mut lab, &query, AnswerStatus::Released);
    reply(&mut lab, &v1::Query { attempt: 1, ..query.clone() }, AnswerStatus::Invalid);
    let mut other = query.clone();
    other.proposals[0].to[0] = 0.11;
    reply(&mut lab, &other, AnswerStatus::Conflict);
    let mut outside = lab.query(4);
    outside.proposals[0].to[0] = 1e9;
    reply(&mut lab, &outside, AnswerStatus::Invalid);
    let mut expensive = lab.query(5);
    expensive.proposals.iter_mut().for_each(|proposal| (proposal.to[0], proposal.noise_scale) = (0.9, 1 << 29));
    reply(&mut lab, &expensive, AnswerStatus::Budget);
    lab.seats[1].say(Body::CloseJob(v1::CloseJob { job: lab.job.job.clone(), reason: "finished".into(), waits: false }));
    reply(&mut lab, &query, AnswerStatus::UnknownJob);
    lab.seats[1].restart();
    reply(&mut lab, &query, AnswerStatus::UnknownJob);
    assert!(lengths.windows(2).all(|pair| pair[0].1 == pair[1].1), "{lengths:?}");
    let frame = CoordinatorFrame { body: Some(Body::Query(query)) };
    println!("{} bytes, asked in {}", lengths[0].1, frame.encode_to_vec().len());
}
