//! Only the released integers depend on a record: neither the log, nor a status, nor the length of a reply does.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::io;
use std::sync::Once;
use std::time::Duration;

use conclave_privacy::pass::ModelData;
use conclave_proto::v1;
use prost::Message;
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::config::ReplyDelay;
use crate::data::BadRows;
use crate::members::Members;
use crate::testing::life::{logistic_toml, requests};
use crate::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};

thread_local! {
    /// The log of this thread; answers are logged on the thread that computes them.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;
    fn make_writer(&self) -> Log {
        Log
    }
}

/// Subscribes to every level, without times, which differ between any two runs. It does so for the whole process: with a single
/// thread's subscriber, another thread's first use of a line may disable it.
fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).without_time().with_ansi(false);
        subscriber.with_writer(Log).init();
    });
}

/// Everything of a run that an outsider and a reader of the log can see.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    log: String,
    /// The opening without the ledger's head, and its length with it.
    opened: (v1::JobOpened, usize),
    replies: Vec<(Option<u32>, usize)>,
    spent: (u64, u64),
    overruns: u64,
}

/// Runs a party's whole life: a job opens, receives every kind of query, spends its budget and closes.
fn live(rows: &str, toml: &str, change: impl Fn(&mut ModelData)) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", &format!("height,sick\n{rows}"));
    let ledger = folder.path().join("ledger.sqlite");
    Ledger::init(&ledger, "hospital-a", &budget()).unwrap();
    listen();
    LOG.take();
    let mut replies = Vec::new();
    let opened;
    let (spent, overruns) = {
        let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
        let delay = ReplyDelay::Fixed(Duration::from_secs(1));
        let policy = Policy { reply_delay: delay, min_noise_sd: 0.5, ..open_policy() };
        let ledger = Ledger::open(&ledger, "hospital-a", &budget()).unwrap();
        let mut answerer = Answerer::new("hospital-a".into(), policy, budget(), shard, ledger, Noise::from_os().unwrap())
            .with_members(Members::anyone());
        opened = open(&mut answerer, toml);
        // An opening may be late on a busy machine.
        let late = answerer.reply_counts().overruns;
        change(answerer.jobs.get_mut(JOB).unwrap().records.held_mut());
        for request in requests(answerer.jobs[JOB].spec.dimension()) {
            let answer = answerer.answer(request);
            replies.push((answer.status, answer.encoded_len()));
        }
        answerer.close(JOB, "done").unwrap();
        replies.push((answerer.answer(query(9, &[(0, 0.0, 1e-4)])).status, 0));
        (answerer.ledger().units(), answerer.reply_counts().overruns - late)
    };
    let log = String::from_utf8(LOG.take()).unwrap();
    // Folders differ between ledgers, and measurements on generated records vary.
    let log = log.replace(&*folder.path().to_string_lossy(), "");
    let log: Vec<&str> = log.lines().filter(|line| !line.contains(" ms") && !line.contains("answer::measure")).collect();
    let log = log.join("\n");
    Seen { log, opened, replies, spent, overruns }
}

/// Opens the job as for the coordinator; returns the coordinator's view.
fn open(answerer: &mut Answerer, toml: &str) -> (v1::JobOpened, usize) {
    let (outbox, mut inbox) = tokio::sync::mpsc::channel(1);
    answerer.open_or_wait(open_request(toml), Instant::now(), outbox);
    let frame = inbox.try_recv().unwrap();
    let length = frame.encoded_len();
    let Some(v1::party_frame::Body::JobOpened(opened)) = frame.body else { panic!("{frame:?}") };
    // The head is signed with the ledger's own key.
    (v1::JobOpened { head: Vec::new(), ..opened }, length)
}

#[test]
fn records_leave_no_trace_but_in_the_released_integers() {
    let rows = |last: &str| (0..200).map(|i| format!("{},{}\n", 100 + i % 101, i % 2)).collect::<String>() + last + "\n";
    for toml in [MEAN_TOML.to_owned(), logistic_toml()] {
        let ordinary = live(&rows("150,1"), &toml, |_| {});
        assert!(ordinary.log.contains("is open") && ordinary.log.contains("closed"), "{}", ordinary.log);
        assert!(ordinary.opened.0.reply_delay_us == 1_000_000, "{:?}", ordinary.opened);
        assert!(ordinary.replies.iter().any(|(s, _)| *s == Some(1)) && ordinary.replies.iter().any(|(s, _)| *s == Some(0)));
        for last in ["1e300,1", "-1e300,0", "1e-310,1", "100,1", "200,0"] {
            assert_eq!(live(&rows(last), &toml, |_| {}), ordinary, "{last}");
        }
        // Values that no loader accepts.
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE / 2.0] {
            let one = |data: &mut ModelData| data.outcome[7] = value;
            let all = |data: &mut ModelData| {
                data.outcome.fill(value);
                data.predictors.iter_mut().for_each(|column| column.fill(value));
            };
            assert_eq!(live(&rows("150,1"), &toml, one), ordinary, "one {value}");
            assert_eq!(live(&rows("150,1"), &toml, all), ordinary, "all {value}");
        }
    }
}

#[test]
fn a_reply_has_one_length_whatever_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", "height\n150\n");
    let file = folder.path().join("ledger.sqlite");
    Ledger::init(&file, "hospital-a", &budget()).unwrap();
    let ledger = Ledger::open(&file, "hospital-a", &budget()).unwrap();
    let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
    let noise = Noise::from_os().unwrap();
    let mut answerer =
        Answerer::new("hospital-a".into(), open_policy(), budget(), shard, ledger, noise).with_members(Members::anyone());
    let unknown = answerer.answer(query(0, &[(0, 0.0, 1e-4)]));
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    let answer = answerer.answer(query(0, &[(0, 0.0, 1e-4)]));
    assert_eq!((unknown.status, answer.status), (Some(5), Some(0)));
    // The encoded frame: with the head of an empty ledger and of a later one, any status, any integer.
    let length =
        |answer: &v1::Answer| v1::PartyFrame { body: Some(v1::party_frame::Body::Answer(answer.clone())) }.encode_to_vec().len();
    assert_eq!(length(&unknown), length(&answer));
    for status in conclave_proto::convert::AnswerStatus::ALL {
        for released in [i64::MIN, -1, 0, 1, i64::MAX] {
            let other = v1::Answer { status: Some(status.to_wire()), releases: vec![released], ..answer.clone() };
            assert_eq!(length(&other), length(&answer), "{status:?} {released}");
        }
    }
}
