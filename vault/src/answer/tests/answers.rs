#![allow(clippy::unwrap_used)]
use conclave_common::query::QueryTerms;
use conclave_privacy::mechanism::{QueryKind, STEP};
use conclave_privacy::pass::{Block, BlockError, Blocks, ModelData};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::ErrorCode;
use conclave_proto::v1;
use tempfile::TempDir;

use super::*;
use crate::answer::records::Records;
use crate::answer::thread;
use crate::data::BadRows;
use crate::members::Members;
use crate::testing::life::logistic_toml;
use crate::testing::{JOB, MEAN_TOML, budget, data, open_policy, open_request, query, write};
use conclave_ops::answer_times;

pub(crate) struct House {
    folder: TempDir,
    policy: Policy,
    budget: Budget,
}

impl House {
    pub(super) fn new(policy: Policy) -> Self {
        Self::with_budget(policy, budget())
    }

    pub(super) fn with_budget(policy: Policy, budget: Budget) -> Self {
        let house = Self { folder: tempfile::tempdir().unwrap(), policy, budget };
        let rows: String = (0..1000).map(|i| format!("{},{}\n", 100 + i % 101, i % 2)).collect();
        write(house.folder.path(), "a.csv", &format!("height,sick\n{rows}"));
        Ledger::init(&house.ledger(), "hospital-a", &budget).unwrap();
        house
    }

    pub(super) fn ledger(&self) -> std::path::PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    pub(super) fn start(&self) -> Answerer {
        let config = data(self.folder.path().join("a.csv"), BadRows::Stop);
        let shard = Shard::load(&config, self.policy.columns.as_deref()).unwrap();
        let ledger = Ledger::open(&self.ledger(), "hospital-a", &self.budget).unwrap();
        Answerer::new("hospital-a".into(), self.policy.clone(), self.budget, shard, ledger, Noise::from_os().unwrap())
            .with_members(Members::anyone())
    }

    pub(super) fn queries(&self) -> u64 {
        queries_of(&self.ledger())
    }
}

pub(crate) fn opened() -> (House, Answerer) {
    let house = House::new(open_policy());
    let mut answerer = house.start();
    assert!(matches!(answerer.open(&open_request(MEAN_TOML)).unwrap(), Opening::Opened(..)));
    (house, answerer)
}

pub(super) fn status(answer: &v1::Answer) -> AnswerStatus {
    AnswerStatus::from_wire(answer.status.unwrap()).unwrap()
}

/// In a job whose clamp leaves room for them, inert rows are counted and contribute nothing. The sum with the centre added back
/// for every row equals that of the other rows, wherever theta is. A job without that room is refused, with a reason that depends
/// on no row.
#[test]
fn bad_rows_are_counted_and_add_nothing() {
    let incomplete = MEAN_TOML.replace("kind = \"gaussian_mean\"", "kind = \"gaussian_mean\"\nincomplete_rows = true");
    let start = |rows: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.csv", &format!("height\n{rows}"));
        let shard = Shard::load(&data(path, BadRows::Drop), None).unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        Ledger::init(&ledger, "hospital-a", &budget()).unwrap();
        let ledger = Ledger::open(&ledger, "hospital-a", &budget()).unwrap();
        let answerer = Answerer::new("hospital-a".into(), open_policy(), budget(), shard, ledger, Noise::from_os().unwrap());
        (folder, answerer.with_members(Members::anyone()))
    };
    let opened = |rows: &str| {
        let (folder, mut answerer) = start(rows);
        let refused = answerer.open(&open_request(MEAN_TOML)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidInput);
        let Opening::Opened(metadata, _) = answerer.open(&open_request(&incomplete)).unwrap() else { panic!("it waits") };
        let job = &answerer.jobs[JOB];
        // Within the declared bounds, at their edge, and so far beyond that every ratio has the same sign.
        let sums: Vec<i64> = [(0.0, 0.01), (0.9, 1.1), (7.0, 7.01), (-40.0, -39.5)]
            .map(|(from, to)| {
                let (from, to) = ([from], [to]);
                let terms =
                    QueryTerms::new(job.model.as_ref(), &job.spec, answerer.budget.unit, QueryKind::Ratio, (&from, &to)).unwrap();
                let summand = terms.summand(&from, &to, terms.sensitivity()).unwrap();
                let sum =
                    conclave_common::model::sums(job.model.as_ref(), job.records.held(), &[summand]).remove(0).open_for_test();
                let centre = (terms.centre() / STEP).round_ties_even() as i64;
                sum + metadata.records().unwrap() as i64 * centre
            })
            .into();
        drop(folder);
        (refused.message, metadata, sums)
    };
    let (whole, gap) = (opened("170\n181.5\n164\n"), opened("170\n181.5\nmissing\n"));
    assert_eq!((&whole.0, whole.1), (&gap.0, gap.1), "one bad value changes nothing that is published");
    let usable = opened("170\n181.5\n");
    for (gap, usable) in gap.2.iter().zip(&usable.2) {
        // A record's rounding of the centre is at most one lattice step.
        assert!(gap.abs_diff(*usable) <= 3, "{gap} {usable}");
    }
}

/// An answer of a length other than requested is never sent, whatever its cause, and nothing is sent after it.
#[test]
fn an_answer_of_another_length_halts_the_party() {
    for given in [vec![], vec![7], vec![7; 3]] {
        let (_house, mut answerer) = opened();
        let (asked, again) = (query(0, &[(0, 0.0, 0.1), (1, 0.0, 0.2)]), query(1, &[(0, 0.0, 0.1)]));
        let reply = answerer.reply_to(asked, |_, _| Ok(given.clone().into()));
        assert_eq!((status(&reply), reply.releases.as_slice()), (AnswerStatus::Halted, &[0, 0][..]), "{given:?}");
        assert!(answerer.ledger().halted().is_some());
        assert_eq!(status(&answerer.answer(again)), AnswerStatus::Halted);
    }
}

#[test]
fn the_noised_sum_is_released_and_the_same_query_gets_the_same_bytes() {
    let (house, mut answerer) = opened();
    let ask = query(0, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]);
    let answer = answerer.answer(ask.clone());
    assert_eq!(status(&answer), AnswerStatus::Released);
    // Noise of sd 1 and a sum of some hundredths: within six standard deviations.
    assert!(answer.releases.iter().all(|r| (*r as f64 * STEP).abs() < 6.5 && *r != 0));
    assert_ne!(answer.releases[0], answer.releases[1]);
    assert_eq!(answerer.answer(ask.clone()), answer);
    drop(answerer);
    let mut answerer = house.start();
    assert_eq!(status(&answerer.answer(ask.clone())), AnswerStatus::UnknownJob);
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    assert_eq!(answerer.answer(ask).releases, answer.releases);
    assert_eq!(house.queries(), 2);
}

#[test]
fn the_sum_is_right() {
    let house = House::with_budget(open_policy(), Budget::new(900.0, 1e-6).unwrap());
    let mut answerer = house.start();
    answerer.open(&open_request(&MEAN_TOML.replace("epsilon = 3.0", "epsilon = 900.0"))).unwrap();
    // log p(y | b) - log p(y | a) = (b - a)(y - (a + b)/2)/v with y in [-1, 1], a = 0, b = 0.02 and sd = 10/50; the second part
    // is the public centre, which the party subtracts.
    let exact: f64 = (0..1000).map(|i| f64::from(i % 101) / 50.0 - 1.0).map(|y| 0.02 * y / 0.04).sum();
    assert!(exact.abs() > 4.0, "{exact}");
    let runs = 400;
    let mut total = 0.0;
    for i in 0..runs {
        let answer = answerer.answer(query(i, &[(0, 0.0, 0.02)]));
        assert_eq!(status(&answer), AnswerStatus::Released);
        total += answer.releases[0] as f64 * STEP - exact;
    }
    assert!((total / runs as f64).abs() < 5.0 / (runs as f64).sqrt(), "{total}");
}

#[test]
fn bad_requests_are_refused_at_one_length_and_cost_nothing() {
    let (house, mut answerer) = opened();
    let good = query(0, &[(0, 0.0, 1e-4), (1, 0.0, -1e-4)]);
    let length = prost_length(&answerer.answer(good.clone()));
    let spent = house.queries();
    let bad = |change: &dyn Fn(&mut v1::Query)| {
        let mut bad = good.clone();
        bad.iteration = 1;
        change(&mut bad);
        bad
    };
    for (request, expected) in [
        (bad(&|q| q.proposals[1].to[0] = f64::NAN), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[1].from[0] = f64::INFINITY), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[0].to[0] = 1e-310), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[0].to[0] = 1e4), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[0].to.push(0.0)), AnswerStatus::Invalid),
        (bad(&|q| q.proposals.iter_mut().for_each(|p| (p.from, p.to) = (vec![0.0; 2], vec![0.0; 2]))), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[0].noise_scale += 1), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[0].noise_scale = 0), AnswerStatus::Invalid),
        (bad(&|q| q.proposals[1].chain = 0), AnswerStatus::Invalid),
        (bad(&|q| q.job = JOB.replace('6', "7")), AnswerStatus::UnknownJob),
        (bad(&|q| (q.iteration, q.proposals[1].to[0]) = (0, -2e-4)), AnswerStatus::Conflict),
        (bad(&|q| (q.iteration, q.proposals[1].to[0]) = (0, -1e-4f64.next_up())), AnswerStatus::Conflict),
        // Steps that cost more than the job may spend.
        (bad(&|q| q.proposals[0].to[0] = 900.0), AnswerStatus::Budget),
        (bad(&|q| q.proposals[0].to[0] = 1.0), AnswerStatus::Budget),
    ] {
        let answer = answerer.answer(request);
        assert_eq!(status(&answer), expected);
        assert_eq!(answer.releases, [0, 0]);
        assert_eq!(prost_length(&answer), length);
    }
    assert_eq!(house.queries(), spent);
    let none = bad(&|q| q.proposals.clear());
    assert_eq!(status(&answerer.answer(none)), AnswerStatus::Invalid);
}

/// Returns the length of the variable bytes: the repeated numbers have a fixed width, so only their count matters.
fn prost_length(answer: &v1::Answer) -> usize {
    answer.releases.len() * 8 + answer.status.map_or(0, |_| 5)
}

#[test]
fn the_budget_ends_a_job_and_stays_ended() {
    let (house, mut answerer) = opened();
    let outcomes: Vec<_> = (0..2000).map(|i| status(&answerer.answer(query(i, &[(0, 0.0, 0.005)])))).collect();
    let granted = outcomes.iter().take_while(|s| **s == AnswerStatus::Released).count();
    assert!(granted > 2 && granted < 2000, "{granted}");
    assert!(outcomes[granted..].iter().all(|s| *s == AnswerStatus::Budget));
    assert_eq!(house.queries(), granted as u64);
}

#[test]
fn policy_refusals_name_limit_and_value() {
    let limits = Policy {
        analysts: Some(vec!["alice".into()]),
        models: Some(vec!["gaussian_mean".into()]),
        max_epsilon_per_job: Some(3.0),
        min_noise_sd: 1.0,
        columns: Some(vec!["height".into()]),
        ..open_policy()
    };
    let house = House::new(limits);
    let mut answerer = house.start();
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    let logistic = logistic_toml();
    for (from, to, code, said) in [
        ("epsilon = 3.0", "epsilon = 3.5", ErrorCode::Policy, "limit of 3 (max_epsilon_per_job)"),
        ("delta = 1e-6", "delta = 1e-5", ErrorCode::Policy, "lower privacy.delta"),
        ("noise_sd = 1.0", "noise_sd = 0.9", ErrorCode::Policy, "limit of 1 (min_noise_sd)"),
        ("height", "weight", ErrorCode::Policy, "does not admit column \"weight\" (did you mean \"height\"?)"),
        ("height", "sick", ErrorCode::Policy, "does not admit column \"sick\""),
        // The data have `sick` but not `sack`: the refusals are identical.
        ("height", "sack", ErrorCode::Policy, "does not admit column \"sack\""),
        ("hospital-a", "hospital-b", ErrorCode::InvalidInput, "hospital-a"),
        ("chains = 2", "chains = 0", ErrorCode::InvalidInput, "chains"),
        (MEAN_TOML, &logistic, ErrorCode::Policy, "gaussian_mean, not logistic"),
    ] {
        let mut request = open_request(&MEAN_TOML.replace(from, to));
        request.job = "another".into();
        let fault = answerer.open(&request).unwrap_err();
        assert_eq!((fault.code, fault.party.as_deref()), (code, Some("hospital-a")), "{fault}");
        assert!(fault.message.contains(said), "{fault}");
    }
    let mut request = open_request(MEAN_TOML);
    request.job = "another".into();
    request.analyst = "bob".into();
    assert_eq!(answerer.open(&request).unwrap_err().code, ErrorCode::Policy);
    // The noise floor applies to every query, whatever the job states.
    let mut ask = query(0, &[(0, 0.0, 1e-4)]);
    ask.proposals[0].noise_scale /= 2;
    assert_eq!(status(&answerer.answer(ask)), AnswerStatus::Policy);
    assert_eq!(house.queries(), 0);
}

#[test]
fn a_failed_ledger_silences_the_party() {
    let (house, mut answerer) = opened();
    let ask = |i| query(i, &[(0, 0.0, 1e-4)]);
    assert_eq!(status(&answerer.answer(ask(0))), AnswerStatus::Released);
    // Another writer has changed the ledger.
    let intruder = rusqlite::Connection::open(house.ledger()).unwrap();
    intruder.execute_batch("UPDATE charges SET time_ms = time_ms + 1").unwrap();
    for iteration in [1, 1, 0] {
        let answer = answerer.answer(ask(iteration));
        assert_eq!((status(&answer), answer.releases.as_slice()), (AnswerStatus::Halted, &[0][..]));
    }
    let mut again = open_request(MEAN_TOML);
    again.job = "another".into();
    assert_eq!(answerer.open(&again).unwrap_err().code, ErrorCode::Unreachable);
}

/// A shard with one unreadable block.
struct Unread(ModelData);

impl Blocks for Unread {
    fn count(&self) -> usize {
        2
    }
    fn records(&self) -> u64 {
        self.0.records()
    }
    fn units(&self) -> u64 {
        self.0.units()
    }
    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        if at == 0 { self.0.block(0) } else { Err(BlockError::new("planted")) }
    }
}

#[test]
fn records_that_cannot_be_read_after_the_charge_silence_the_party() {
    let (house, mut answerer) = opened();
    let held = std::mem::take(answerer.jobs.get_mut(JOB).unwrap().records.held_mut());
    answerer.jobs.get_mut(JOB).unwrap().records = Records::Streamed(Box::new(Unread(held.clone())));
    let ask = query(0, &[(0, 0.0, 1e-4)]);
    let said = |answer: v1::Answer| (status(&answer), answer.releases);
    assert_eq!(said(answerer.answer(ask.clone())), (AnswerStatus::Halted, vec![0]));
    // Charged, and not answered again without a charge once the records are back.
    assert_eq!(house.queries(), 1);
    answerer.jobs.get_mut(JOB).unwrap().records = Records::Held(held);
    for again in [ask.clone(), query(1, &[(0, 0.0, 1e-4)])] {
        assert_eq!(said(answerer.answer(again)), (AnswerStatus::Halted, vec![0]));
    }
    assert_eq!(house.queries(), 1);
    // As after a crash, a restart answers charged and unanswered queries.
    drop(answerer);
    let mut answerer = house.start();
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    assert_eq!(status(&answerer.answer(ask)), AnswerStatus::Released);
    assert_eq!(house.queries(), 1);
}

#[test]
fn a_kernel_that_fails_after_the_charge_still_gives_a_number() {
    let house = House::new(open_policy());
    let mut answerer = house.start();
    answerer.open(&open_request(&logistic_toml())).unwrap();
    let mut ask = query(0, &[(0, 0.0, 1e-4)]);
    if let Some(job) = answerer.jobs.get_mut(JOB) {
        // Records 3 to 999 lack a value: the kernel fails on each of them, and on none before.
        job.records.held_mut().predictors.iter_mut().for_each(|column| column.truncate(3));
        ask.proposals.iter_mut().for_each(|p| {
            p.from.resize(job.spec.dimension(), 0.0);
            p.to.resize(job.spec.dimension(), 0.0);
        });
    }
    let answer = answerer.answer(ask.clone());
    assert_eq!(status(&answer), AnswerStatus::Released);
    assert_eq!(answerer.answer(ask), answer);
    assert_eq!(house.queries(), 1);
}

#[test]
fn opening_is_idempotent_and_an_id_belongs_to_one_job() {
    let (_house, mut answerer) = opened();
    assert!(matches!(answerer.open(&open_request(MEAN_TOML)).unwrap(), Opening::Opened(..)));
    let other = open_request(&MEAN_TOML.replace("draws = 10", "draws = 11"));
    assert_eq!(answerer.open(&other).unwrap_err().code, ErrorCode::Conflict);
    let mut forged = open_request(MEAN_TOML);
    forged.spec_toml = forged.spec_toml.replace("draws = 10", "draws = 11");
    assert_eq!(answerer.open(&forged).unwrap_err().code, ErrorCode::InvalidInput);
    // None of this affects the job itself until it is closed.
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 1e-4)]))), AnswerStatus::Released);
    answerer.close(JOB, "done").unwrap();
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 1e-4)]))), AnswerStatus::UnknownJob);
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    assert_eq!(status(&answerer.answer(query(0, &[(0, 0.0, 1e-4)]))), AnswerStatus::Released);
}

/// On the answering thread itself, the components of an answer's time are recorded once it has been sent; refusals record
/// nothing.
#[test]
fn the_owner_sees_the_components_of_the_time_of_answers() {
    let delay = Duration::from_millis(40);
    let house = House::new(Policy { reply_delay: crate::config::ReplyDelay::Fixed(delay), ..open_policy() });
    let mut answerer = house.start();
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    let times = answerer.times.clone();
    let (outbox, mut inbox) = tokio::sync::mpsc::channel(4);
    let mut ask = |request| {
        answerer.handle(thread::Command::Query(request, Instant::now(), outbox.clone()));
        let Some(v1::party_frame::Body::Answer(answer)) = inbox.try_recv().unwrap().body else { panic!() };
        status(&answer)
    };
    assert_eq!(ask(query(0, &[(0, f64::NAN, 0.0)])), AnswerStatus::Invalid);
    assert_eq!((times.summary(), times.counts().held), (None, 1));
    assert_eq!(ask(query(0, &[(0, 0.0, 1e-4)])), AnswerStatus::Released);
    let summary = times.summary().unwrap();
    let of = |part: answer_times::Part| summary.parts[part as usize].0;
    // Service began before its first reading of the clock and ended after the delay, or a multiple of it.
    assert!(summary.whole.0 > 0.9 * delay.as_secs_f64(), "{summary:?}");
    assert!(
        of(answer_times::Part::Ledger) > 0.0 && of(answer_times::Part::Computing) > 0.0 && of(answer_times::Part::Held) > 0.0,
        "{summary:?}"
    );
    assert_eq!(times.counts(), answerer.reply_counts());
}

/// A job that releases once may query only what its owner has been shown.
#[test]
fn a_job_that_releases_once_queries_no_more_than_it_states() {
    use conclave_privacy::mechanism::{NoiseScale, QueryKind};
    let house = House::new(open_policy());
    let mut answerer = house.start();
    let toml = logistic_toml().replace("\"penalty\"", "\"noisy-statistics\"").replace("noise_sd = 1.0\n", "");
    let spec = conclave_common::job::JobSpec::parse(&toml).unwrap();
    assert_eq!((spec.releases(), spec.most_rounds()), (vec!["score"], Some(11)));
    assert!(matches!(answerer.open(&open_request(&toml)).unwrap(), Opening::Opened(..)));
    let (theta, frame) = (vec![0.0; 2], vec![0.5, 0.0, 0.0, 0.5, 0.0, 0.0]);
    let proposal = |chain: u32, kind: QueryKind, from: &[f64], to: &[f64]| v1::Proposal {
        chain,
        from: from.to_vec(),
        to: to.to_vec(),
        noise_scale: NoiseScale::MAX_UNITS,
        kind: kind.code(),
    };
    let gradient = |chain| proposal(chain, QueryKind::Gradient { parameters: 2 }, &theta, &frame);
    let curvature = |scale: f64| proposal(9, QueryKind::Curvature { parameters: 2 }, &theta, &[scale, 1.0]);
    let mut ask = |iteration: u64, proposals: Vec<v1::Proposal>| {
        status(&answerer.answer(v1::Query { job: JOB.into(), iteration, proposals, attempt: 0 }))
    };
    assert_eq!(ask(0, vec![gradient(0), curvature(0.25)]), AnswerStatus::Released);
    assert_eq!(ask(10, vec![gradient(0), curvature(0.25)]), AnswerStatus::Released);
    let (statistic, moments) = (QueryKind::Statistic { component: 0 }, QueryKind::Moments { order: 3 });
    for (what, iteration, proposals) in [
        ("a twelfth round", 11, vec![gradient(0)]),
        ("a kind twice in a round", 1, vec![gradient(0), gradient(1)]),
        ("a scale in which information is subnormal", 1, vec![curvature(1e300)]),
        ("a statistic", 1, vec![proposal(0, statistic, &[], &[])]),
        ("moments that do not determine the model", 1, vec![proposal(0, moments, &[], &[])]),
        ("a ratio", 1, vec![proposal(0, QueryKind::Ratio, &theta, &[0.1, 0.1])]),
        ("a gradient of another order", 1, vec![proposal(0, QueryKind::Gradient { parameters: 1 }, &[0.0], &[1.0, 0.0])]),
    ] {
        assert_eq!(ask(iteration, proposals), AnswerStatus::Invalid, "{what}");
    }
    assert_eq!(house.queries(), 4);
    // No other algorithm may query a vector.
    let (_house, mut answerer) = opened();
    let one = proposal(0, QueryKind::Gradient { parameters: 1 }, &[0.0], &[1.0, 0.0]);
    let asked = answerer.answer(v1::Query { job: JOB.into(), iteration: 0, proposals: vec![one], attempt: 0 });
    assert_eq!(status(&asked), AnswerStatus::Invalid);
}

/// A job that weights records asks one table in a round, whatever its size, and no entry of a frame by which arithmetic on a record
/// would be subnormal.
#[test]
fn a_weighted_job_asks_one_table_in_a_round() {
    use conclave_privacy::mechanism::{NoiseScale, QueryKind};
    let house = House::new(open_policy());
    let mut answerer = house.start();
    let weighted = "kind = \"linear\"\npredictors = [\"sick\"]\nweights = \"always\"";
    let toml = logistic_toml().replace("\"penalty\"", "\"noisy-statistics\"").replace("noise_sd = 1.0\n", "");
    let toml = toml
        .replace("kind = \"logistic\"\npredictors = [\"height\"]", weighted)
        .replace("outcome = \"sick\"", "outcome = \"height\"");
    assert!(matches!(answerer.open(&open_request(&toml)).unwrap(), Opening::Opened(..)));
    let theta = [0.1, 0.2, 0.5];
    let frame = |entry: f64| [entry, 0.1, 0.0, 0.1, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 1.5].to_vec();
    let proposal = |(kind, to): (QueryKind, Vec<f64>)| v1::Proposal {
        chain: kind.code() % 7,
        from: theta.to_vec(),
        to,
        noise_scale: NoiseScale::MAX_UNITS,
        kind: kind.code(),
    };
    let table = |edges: &[f64]| (QueryKind::Table { cells: edges.len() as u32 + 2 }, edges.to_vec());
    let gradient = |entry: f64| (QueryKind::Gradient { parameters: 3 }, frame(entry));
    let information = (QueryKind::Curvature { parameters: 3 }, frame(0.4));
    let lengths = (QueryKind::Table { cells: 3 }, [frame(0.4), vec![1.0]].concat());
    let mut ask = |iteration: u64, queries: Vec<(QueryKind, Vec<f64>)>| {
        let proposals = queries.into_iter().map(proposal).collect();
        status(&answerer.answer(v1::Query { job: JOB.into(), iteration, proposals, attempt: 0 }))
    };
    assert_eq!(ask(0, vec![gradient(0.4), information, table(&[-1.0, 0.0, 1.0])]), AnswerStatus::Released);
    assert_eq!(ask(1, vec![lengths.clone()]), AnswerStatus::Released);
    for (what, queries) in [
        ("two tables of different sizes", vec![table(&[0.0]), table(&[0.0, 1.0])]),
        ("two tables of one size", vec![table(&[0.0]), lengths]),
        ("a large entry of a frame", vec![gradient(2.0_f64.powi(509))]),
        ("edges that do not ascend", vec![table(&[1.0, 0.0])]),
        ("edges without an end", vec![table(&[0.0, f64::INFINITY])]),
        ("more edges than a rehearsal asks", vec![table(&(0..65).map(f64::from).collect::<Vec<_>>())]),
        ("a table without edges", vec![table(&[])]),
    ] {
        assert_eq!(ask(2, queries), AnswerStatus::Invalid, "{what}");
    }
    assert_eq!(house.queries(), 4);
}

/// A cost beyond the ledger's integers is above every limit of the owner's, and no smaller price than one that fits.
#[test]
fn the_owners_least_noise_refuses_a_cost_that_overflows() {
    use conclave_privacy::mechanism::{NoiseScale, QueryKind};
    let house = House::new(open_policy());
    let mut answerer = house.start();
    let toml = logistic_toml().replace("\"penalty\"", "\"noisy-statistics\"").replace("noise_sd = 1.0\n", "");
    answerer.open(&open_request(&toml)).unwrap();
    answerer.policy.min_noise_multiplier = 1.0;
    let mut ask = |iteration: u64, noise_scale: u64| {
        let kind = QueryKind::Gradient { parameters: 2 }.code();
        let (from, to) = (vec![0.0; 2], vec![0.5, 0.0, 0.0, 0.5, 0.0, 0.0]);
        let proposals = vec![v1::Proposal { chain: 0, from, to, noise_scale, kind }];
        status(&answerer.answer(v1::Query { job: JOB.into(), iteration, proposals, attempt: 0 }))
    };
    // A gradient moves by 2^29: (2^29 / 2^20)^2 is 2^18 of mu^2, 2^66 of the ledger's units.
    for noise_scale in [NoiseScale::MIN_UNITS, 4 * NoiseScale::MIN_UNITS] {
        assert_eq!(ask(0, noise_scale), AnswerStatus::Policy, "{noise_scale}");
    }
    assert_eq!(ask(1, 1 << 32), AnswerStatus::Released);
    assert_eq!(house.queries(), 1);
}
