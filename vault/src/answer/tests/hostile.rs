//! A coordinator that sends inadmissible messages: every one is refused, and not a byte of the ledger changes.
#![allow(clippy::unwrap_used)]

use conclave_privacy::mechanism::QueryKind;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;
use rusqlite::types::Value;

use super::answers::{House, opened, status};
use super::*;
use crate::answer::MAX_JOB_ID;
use crate::testing::{MEAN_TOML, open_policy, open_request, query};

/// Every row of every table of the ledger, and the total charge.
#[derive(Debug, PartialEq)]
struct LedgerRows {
    rows: Vec<(String, Vec<Vec<Value>>)>,
    units: (u64, u64),
}

fn ledger_rows(house: &House, answerer: &Answerer) -> LedgerRows {
    let ledger = rusqlite::Connection::open_with_flags(house.ledger(), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut tables = ledger.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.iter().any(|table| table == "charges"), "{tables:?}");
    let rows = |table: &String| {
        let mut all = ledger.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let columns = all.column_count();
        let rows = all.query_map([], |row| (0..columns).map(|at| row.get(at)).collect::<Result<Vec<Value>, _>>()).unwrap();
        (table.clone(), rows.map(Result::unwrap).collect())
    };
    LedgerRows { rows: tables.iter().map(rows).collect(), units: answerer.ledger.units() }
}

type Change = Box<dyn Fn(&mut v1::Query)>;

fn change(what: impl Fn(&mut v1::Query) + 'static) -> Change {
    Box::new(what)
}

/// Values that theta never has.
const IMPOSSIBLE: [f64; 13] = [
    f64::NAN,
    -f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    1e-310,
    -1e-310,
    // Outside the box.
    1e4,
    -1e4,
];

fn values() -> Vec<(String, Change, AnswerStatus)> {
    let mut all = Vec::new();
    for (at, value) in (0..2).flat_map(|at| IMPOSSIBLE.map(|value| (at, value))) {
        all.push((format!("to[{at}] = {value:e}"), change(move |q| q.proposals[at].to[0] = value), AnswerStatus::Invalid));
        all.push((format!("from[{at}] = {value:e}"), change(move |q| q.proposals[at].from[0] = value), AnswerStatus::Invalid));
    }
    // NaNs by their bits: signalling, and with a payload.
    for bits in [0x7ff0_0000_0000_0001_u64, 0x7ff8_dead_beef_0001, 0xfff0_0000_0000_0001] {
        let set = change(move |q| q.proposals[0].to[0] = f64::from_bits(bits));
        all.push((format!("NaN {bits:x}"), set, AnswerStatus::Invalid));
    }
    all
}

fn shapes() -> Vec<(String, Change, AnswerStatus)> {
    let mut all: Vec<(String, Change, AnswerStatus)> = Vec::new();
    let mut add = |what: &str, with: Change| all.push((what.to_owned(), with, AnswerStatus::Invalid));
    add("no theta'", change(|q| q.proposals[0].to.clear()));
    add("no theta", change(|q| q.proposals[0].from.clear()));
    add("neither", change(|q| (q.proposals[0].from, q.proposals[0].to) = (Vec::new(), Vec::new())));
    add("one parameter more in theta'", change(|q| q.proposals[1].to.push(0.0)));
    for dimension in [2, 4096, 4097] {
        let both =
            change(move |q| q.proposals.iter_mut().for_each(|p| (p.from, p.to) = (vec![0.0; dimension], vec![0.0; dimension])));
        add(&format!("{dimension} parameters"), both);
    }
    add("no proposal", change(|q| q.proposals.clear()));
    add("a chain twice", change(|q| q.proposals[1].chain = q.proposals[0].chain));
    add("one proposal twice", change(|q| q.proposals.push(q.proposals[0].clone())));
    add(
        "257 proposals",
        change(|q| q.proposals = (0..257).map(|chain| v1::Proposal { chain, ..q.proposals[0].clone() }).collect()),
    );
    for kind in [1, 2, 3, 2 + QueryKind::MAX_COMPONENTS, u32::MAX] {
        add(&format!("kind {kind} with points"), change(move |q| q.proposals[0].kind = kind));
        let bare =
            change(move |q| q.proposals[0] = v1::Proposal { kind, from: Vec::new(), to: Vec::new(), ..q.proposals[0].clone() });
        add(&format!("kind {kind} in a job that has no statistics"), bare);
    }
    for scale in [0, 1, 1 << 16, (1 << 32) + 1, (1 << 50) + (1 << 16), 1 << 63, u64::MAX] {
        add(&format!("noise_scale {scale}"), change(move |q| q.proposals[0].noise_scale = scale));
    }
    for iteration in [i64::MAX as u64 + 1, u64::MAX] {
        add(&format!("iteration {iteration}"), change(move |q| q.iteration = iteration));
    }
    all
}

#[test]
fn an_inadmissible_query_is_refused_before_any_charge() {
    let house = House::new(Policy { min_noise_sd: 0.5, ..open_policy() });
    let mut answerer = house.start();
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    let good = |iteration| query(iteration, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]);
    assert_eq!(status(&answerer.answer(good(0))), AnswerStatus::Released);
    let before = ledger_rows(&house, &answerer);
    let quiet = |q: &mut v1::Query| q.proposals[0].noise_scale /= 4;
    let others = [
        ("noise below the floor".to_owned(), change(quiet), AnswerStatus::Policy),
        ("a job that is not open".to_owned(), change(|q| q.job = "another".into()), AnswerStatus::UnknownJob),
        (
            "an old round with another theta'".to_owned(),
            change(|q| (q.iteration, q.proposals[0].to[0]) = (0, 2e-4)),
            AnswerStatus::Conflict,
        ),
        (
            "an old round with other noise".to_owned(),
            change(|q| (q.iteration, q.proposals[0].noise_scale) = (0, 2 * q.proposals[0].noise_scale)),
            AnswerStatus::Conflict,
        ),
        ("a step that costs more than the job has".to_owned(), change(|q| q.proposals[0].to[0] = 900.0), AnswerStatus::Budget),
    ];
    for (what, change, expected) in values().into_iter().chain(shapes()).chain(others) {
        let mut asked = good(1);
        change(&mut asked);
        let proposals = asked.proposals.len();
        let answer = answerer.answer(asked);
        assert_eq!(status(&answer), expected, "{what}");
        assert_eq!(answer.releases, vec![0; proposals], "{what}");
        assert_eq!(ledger_rows(&house, &answerer), before, "{what} left a trace in the ledger");
    }
    // An honest query is answered as usual, and the ledger records it.
    assert_eq!(status(&answerer.answer(good(1))), AnswerStatus::Released);
    assert_ne!(ledger_rows(&house, &answerer), before);
}

#[test]
fn an_inadmissible_job_is_not_entered_in_the_ledger() {
    let (house, mut answerer) = opened();
    let before = ledger_rows(&house, &answerer);
    let of = |from: &str, to: &str| {
        assert!(MEAN_TOML.contains(from), "{from}");
        v1::OpenJob { job: "fresh".into(), ..open_request(&MEAN_TOML.replace(from, to)) }
    };
    let fresh = || v1::OpenJob { job: "fresh".into(), ..open_request(MEAN_TOML) };
    let mut requests = vec![
        v1::OpenJob { job: String::new(), ..fresh() },
        v1::OpenJob { job: "x".repeat(MAX_JOB_ID + 1), ..fresh() },
        v1::OpenJob { job: "../../etc".into(), ..fresh() },
        v1::OpenJob { analyst: "Alice'); DROP TABLE charges".into(), ..fresh() },
        v1::OpenJob { spec_digest: vec![0; 32], ..fresh() },
        v1::OpenJob { spec_digest: Vec::new(), ..fresh() },
        v1::OpenJob { spec_toml: "\0".into(), ..fresh() },
        open_request("not a job"),
        of("epsilon = 3.0", "epsilon = 3.0\nepsilon = 3.0"),
        of("parties = [\"hospital-a\"]", "parties = [\"hospital-b\"]"),
        of("chains = 2", "chains = 100000"),
        of("max = 200", "max = 100"),
    ];
    for bad in ["nan", "inf", "-inf", "0.0", "-1.0"] {
        requests.push(of("epsilon = 3.0", &format!("epsilon = {bad}")));
        requests.push(of("noise_sd = 1.0", &format!("noise_sd = {bad}")));
    }
    for bad in ["nan", "inf", "-inf"] {
        requests.push(of("max = 200", &format!("max = {bad}")));
        requests.push(of("sd = 10.0", &format!("sd = {bad}")));
    }
    for request in requests {
        let fault = answerer.open(&request).err().unwrap_or_else(|| panic!("opened: {request:?}"));
        assert_eq!(fault.party.as_deref(), Some("hospital-a"), "{fault}");
        assert_eq!(ledger_rows(&house, &answerer), before, "{request:?} left a trace in the ledger");
    }
    assert!(matches!(answerer.open(&fresh()).unwrap(), Opening::Opened(..)));
    assert_ne!(ledger_rows(&house, &answerer), before);
}
