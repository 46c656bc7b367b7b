//! The driver against parties in memory: honest ones, and ones that are late, repeat themselves, disconnect, refuse or lie.
#![allow(clippy::unwrap_used)]

mod queue;
mod unwritten;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conclave_common::query::PartyMetadata;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::ErrorCode;
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use super::*;
use crate::bounds::Bounds;
use crate::party_event::Message;
use crate::party_registry::PartyRegistry;
use crate::registry::{JobRegistry, SignedSubmission};
use crate::send_queue::{SendStream, send_queue};
use crate::status::{State, Status};
use crate::store::Store;
use conclave_draws::zarr::StoreFiles;
use conclave_pages::verdict::Grade;
use tokio_stream::StreamExt;

const RECORDS: u64 = 500;

/// A placeholder: the service that accepts a job checks its signature.
fn signed() -> SignedSubmission {
    SignedSubmission {
        job: uuid::Uuid::new_v4().to_string(),
        submission: v1::Submission { nonce: vec![7; 32], ..Default::default() },
    }
}

fn spec(draws: u64) -> String {
    format!(
        r#"
name = "mean"
parties = ["a", "b"]
model = {{ kind = "gaussian_mean", outcome = "x", sd = 1.0 }}
columns = {{ x = {{ min = -4, max = 4 }} }}
[sampler]
chains = 2
draws = {draws}
warmup = 10
proposal = {{ kind = "guided", radius = 0.05 }}
start = {{ mean = 0.1 }}
seed = 7
[privacy]
epsilon = 20.0
delta = 1e-6
"#
    )
}

/// A noised sum that depends only on the query and the party, as a ledger in strict mode returns.
fn honest(party: &str, query: &v1::Query) -> Vec<i64> {
    let one = |p: &v1::Proposal| {
        let mut hash = DefaultHasher::new();
        (party, query.iteration, p.chain, p.to[0].to_bits()).hash(&mut hash);
        let noise = (hash.finish() % 1_000_001) as f64 / 1_000_001.0 - 0.5;
        let ratio = |x: f64| -8.0 * RECORDS as f64 * (x - 0.1).powi(2);
        ((ratio(p.to[0]) - ratio(p.from[0]) + 3.0 * noise) * 2f64.powi(32)) as i64
    };
    query.proposals.iter().map(one).collect()
}

/// A party's replies to a query: any number of messages, in order.
type Reply = Box<dyn FnMut(&v1::Query) -> Vec<Message> + Send>;

fn answer(iteration: u64, releases: Vec<i64>) -> Message {
    Message::Answer { iteration, outcome: Ok(releases), echo: None }
}

fn honestly(party: &'static str) -> Reply {
    Box::new(move |query| vec![answer(query.iteration, honest(party, query))])
}

/// Answers up to a round, and never answers that one.
fn until(party: &'static str, round: u64) -> Reply {
    Box::new(move |query| match query.iteration < round {
        true => vec![answer(query.iteration, honest(party, query))],
        false => Vec::new(),
    })
}

/// Traffic recorded for the tests.
#[derive(Default)]
struct Seen {
    /// Bits of the queries asked, by party and iteration.
    asked: BTreeMap<(String, u64), BTreeSet<Vec<u64>>>,
    closed: Vec<(String, String)>,
    /// Reasons why streams were ended, by party.
    ended: Vec<(String, String)>,
}

struct Fixture {
    folder: tempfile::TempDir,
    context: DriverContext,
    job_registry: Arc<JobRegistry>,
    seen: Arc<Mutex<Seen>>,
}

impl Fixture {
    fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    fn at(folder: tempfile::TempDir) -> Self {
        Self::with(folder, Limits::default())
    }

    fn with(folder: tempfile::TempDir, limits: Limits) -> Self {
        Self::bounded(folder, limits, Bounds::default())
    }

    fn bounded(folder: tempfile::TempDir, limits: Limits, bounds: Bounds) -> Self {
        let (store, loaded) = Store::open(&folder.path().join("c.sqlite")).unwrap();
        let context = DriverContext {
            party_registry: Arc::new(PartyRegistry::new(loaded.parties)),
            store,
            counters: Arc::default(),
            limits,
        };
        let job_registry = JobRegistry::open(context.clone(), folder.path().join("draws"), loaded.jobs, true, bounds);
        Self { folder, context, job_registry, seen: Arc::default() }
    }

    /// Attaches a party that replies with `reply`.
    fn attach(&self, name: &'static str, reply: Reply) -> Party {
        self.attach_with(name, RECORDS, reply)
    }

    fn attach_with(&self, name: &'static str, records: u64, reply: Reply) -> Party {
        let (queue, outgoing) = send_queue();
        self.context.store.seen(name, "test", 0);
        let place = self.context.party_registry.attach(name, queue);
        let party_registry = Arc::clone(&self.context.party_registry);
        let seen = Arc::clone(&self.seen);
        let task = tokio::spawn(serve(name, records, outgoing, party_registry, seen, reply));
        Party {
            name,
            generation: place.generation,
            party_registry: Arc::clone(&self.context.party_registry),
            task,
            _place: place,
        }
    }

    async fn until(&self, job: &str, what: impl FnMut(&Status) -> bool) -> Status {
        let mut status = self.job_registry.watch(job, "alice").unwrap();
        let waited = tokio::time::timeout(Duration::from_secs(30), status.wait_for(what)).await;
        match waited {
            Ok(found) => found.unwrap().clone(),
            Err(_) => panic!("waited in vain: {:?}", self.job_registry.watch(job, "alice").unwrap().borrow()),
        }
    }

    /// Waits until a party has been asked a round.
    async fn asked(&self, party: &str, round: u64) {
        let key = (party.to_owned(), round);
        while !self.seen.lock().unwrap().asked.contains_key(&key) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn ended(&self, job: &str) -> Status {
        self.until(job, |status| status.state.has_ended()).await
    }

    /// Arrays of a job's store by path, without the root's attributes, which contain times.
    fn draws(&self, job: &str) -> BTreeMap<String, Vec<u8>> {
        let Ok(files) = StoreFiles::open(&self.job_registry.draws_of(job)) else { return BTreeMap::new() };
        let names = files.names().unwrap_or_default();
        names.into_iter().filter(|name| name != "zarr.json").map(|name| (name.clone(), files.read(&name).unwrap())).collect()
    }

    /// Stops as on SIGTERM and restarts after `meddle` has changed the store.
    async fn restart(self, meddle: impl FnOnce(&rusqlite::Connection)) -> Self {
        self.job_registry.close().await;
        self.context.store.close();
        let Self { folder, context, job_registry, .. } = self;
        drop((context, job_registry));
        meddle(&rusqlite::Connection::open(folder.path().join("c.sqlite")).unwrap());
        Self::at(folder)
    }
}

struct Party {
    name: &'static str,
    generation: u64,
    party_registry: Arc<PartyRegistry>,
    task: JoinHandle<()>,
    _place: crate::party_registry::AttachedStream,
}

impl Party {
    fn leave(self) {
        self.task.abort();
        self.party_registry.detach(self.name, self.generation);
    }
}

async fn serve(
    name: &'static str,
    records: u64,
    mut outgoing: SendStream,
    party_registry: Arc<PartyRegistry>,
    seen: Arc<Mutex<Seen>>,
    mut reply: Reply,
) {
    while let Some(frame) = outgoing.next().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(status) => return seen.lock().unwrap().ended.push((name.to_owned(), status.message().to_owned())),
        };
        match frame.body.unwrap() {
            Body::OpenJob(open) => {
                assert_eq!(open.submission.unwrap().nonce, [7; 32]);
                assert_eq!(open.spec_digest, Sha256::digest(open.spec_toml.as_bytes()).to_vec());
                party_registry.deliver(name, &open.job, Message::Opened(PartyMetadata::rows(records), None, None));
            }
            Body::Query(query) => {
                let bits = query.proposals.iter().flat_map(|p| p.from.iter().chain(&p.to)).map(|x| x.to_bits());
                let key = (name.to_owned(), query.iteration);
                seen.lock().unwrap().asked.entry(key).or_default().insert(bits.collect());
                for message in reply(&query) {
                    party_registry.deliver(name, &query.job, message);
                }
            }
            Body::CloseJob(close) => seen.lock().unwrap().closed.push((name.to_owned(), close.reason)),
            _ => {}
        }
    }
}

fn result(status: &Status) -> serde_json::Value {
    serde_json::from_str(status.result.as_deref().unwrap()).unwrap()
}

/// The draws of an undisturbed run of [`spec`].
async fn undisturbed(draws: u64) -> BTreeMap<String, Vec<u8>> {
    let rig = Fixture::new();
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    let job = rig.job_registry.submit(spec(draws), "alice", signed()).await.unwrap();
    assert_eq!(rig.ended(&job).await.state, State::Finished);
    rig.draws(&job)
}

#[tokio::test]
async fn a_job_runs_to_its_end() {
    let rig = Fixture::new();
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    let job = rig.job_registry.submit(spec(300), "alice", signed()).await.unwrap();
    let status = rig.ended(&job).await;
    assert_eq!((status.state, status.draws, status.iteration), (State::Finished, 300, 310));
    let result = result(&status);
    assert_eq!(result["stopped_by"], "draws");
    assert_eq!(result["job"], job.as_str());
    assert_eq!((result["iterations"].as_u64(), result["chains"].as_u64()), (Some(310), Some(2)));
    let figures = conclave_pages::released::figures(&result);
    assert_eq!(figures["posterior"][0]["name"], "mean");
    // x in [-4, 4] is scaled to [-1, 1], so a unit of the prior's scale is 4 of the data's.
    let mean = |key: &str| figures[key][0]["mean"].as_f64().unwrap();
    assert!((mean("posterior_original") - 4.0 * mean("posterior")).abs() < 1e-9);
    // Every released ratio is used in the fit, or counted as excluded.
    let surrogate = conclave_pages::released::section(&result, "surrogate");
    assert_eq!(surrogate["answers"].as_u64().unwrap() + surrogate["answers_left_out"].as_u64().unwrap(), 620, "{surrogate}");
    assert_eq!(surrogate["parameters"].as_object().unwrap().is_empty(), surrogate["suppressed"].is_string(), "{surrogate}");
    for party in result["parties"].as_array().unwrap() {
        assert_eq!((party["records"].as_u64(), party["queries"].as_u64()), (Some(RECORDS), Some(620)));
        let epsilon = party["epsilon_spent"].as_f64().unwrap();
        assert!(epsilon > 0.0 && party["epsilon_zcdp"].as_f64().unwrap() > epsilon);
    }
    let draws = Path::new(result["draws"].as_str().unwrap());
    assert!(draws.is_file() && !draws.with_extension("").exists(), "{draws:?}");
    assert!(rig.draws(&job).contains_key("posterior/mean/c/1/0"));
    assert_eq!(rig.job_registry.list("alice").len(), 1);
    assert!(rig.job_registry.list("mallory").is_empty());
    assert_eq!(rig.job_registry.watch(&job, "mallory").unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_job_of_few_draws_has_a_result_with_nulls() {
    for draws in 1..6 {
        let rig = Fixture::new();
        let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
        let job = rig.job_registry.submit(spec(draws), "alice", signed()).await.unwrap();
        let status = rig.ended(&job).await;
        assert_eq!(status.state, State::Finished);
        let result = result(&status);
        assert_eq!(result["verdict"]["grade"], "not_usable");
        // Two chains of two draws or fewer have no Monte Carlo error, so there is no answer.
        let adequate = result["adequacy"]["adequate"] == true;
        assert!(draws > 2 || !adequate, "{result}");
        assert_eq!(status.grade, Some(if adequate { Grade::NotUsable } else { Grade::NoAnswer }));
        assert_eq!((result["posterior"] == serde_json::json!([]), result["inadequate"].is_null()), (!adequate, adequate));
        let row = &conclave_pages::released::figures(&result)["posterior"][0];
        assert!(row["mean"].is_number());
        assert!(!result["warnings"].as_array().unwrap().is_empty());
        assert!(draws > 1 || row["rhat"].is_null());
    }
}

#[tokio::test]
async fn a_job_that_searches_for_its_mode_runs() {
    let rig = Fixture::new();
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    let text = spec(50).replace("start = { mean = 0.1 }", "").replace("radius = 0.05", "radius = \"auto\"");
    let job = rig.job_registry.submit(text, "alice", signed()).await.unwrap();
    let status = rig.ended(&job).await;
    assert_eq!(status.state, State::Finished, "{:?}", status.fault);
    assert!(status.iteration > 60, "rounds of the search count");
}

#[tokio::test]
async fn parties_that_never_attached_are_refused_at_submission() {
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let fault = rig.job_registry.submit(spec(5), "alice", signed()).await.unwrap_err();
    assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::InvalidInput, Some("b")));
    assert!(fault.message.contains("known are a"), "{fault}");
    let fault = rig.job_registry.submit(spec(5).replace("chains", "chanis"), "alice", signed()).await.unwrap_err();
    assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("chains"), "{fault}");
    assert!(rig.job_registry.list("alice").is_empty());
    assert!(rig.seen.lock().unwrap().asked.is_empty());
}

#[tokio::test]
async fn an_absent_party_pauses_the_job_and_changes_nothing() {
    let expected = undisturbed(2000).await;
    let rig = Fixture::new();
    let (_a, b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    b.leave();
    let job = rig.job_registry.submit(spec(2000), "alice", signed()).await.unwrap();
    let status = rig.until(&job, |s| s.state == State::Paused).await;
    assert_eq!(status.waiting_for, ["b"]);
    assert!(status.waiting_since_ms > 0);
    for rounds in [0, 3, 700, 1200] {
        let b = rig.attach("b", until("b", rounds));
        rig.asked("b", rounds).await;
        b.leave();
        let status = rig.until(&job, |s| s.state == State::Paused).await;
        assert_eq!(status.waiting_for, ["b"]);
    }
    let _b = rig.attach("b", honestly("b"));
    assert_eq!(rig.ended(&job).await.state, State::Finished);
    assert_eq!(rig.draws(&job), expected);
    assert!(rig.seen.lock().unwrap().asked.values().all(|asked| asked.len() == 1), "asked again means the same again");
}

const HASTY: Limits =
    Limits { shown: Duration::from_millis(20), first: Duration::from_millis(60), most: Duration::from_millis(500) };

#[tokio::test]
async fn a_party_that_hangs_is_named_and_asked_again_on_a_new_stream() {
    let expected = undisturbed(200).await;
    let rig = Fixture::with(tempfile::tempdir().unwrap(), HASTY);
    let (_a, mut b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 20)));
    let job = rig.job_registry.submit(spec(200), "alice", signed()).await.unwrap();
    let mut since = 0;
    for hung in 1..=3 {
        let status = rig.until(&job, |s| s.waiting_reason.contains("b: connected, but round 20")).await;
        assert_eq!((status.state, &status.waiting_for[..]), (State::Paused, &["b".to_owned()][..]));
        assert!(since == 0 || since == status.waiting_since_ms, "the wait continues across its streams");
        since = status.waiting_since_ms;
        while rig.seen.lock().unwrap().ended.len() < hung {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        b.leave();
        let status = rig.until(&job, |s| s.waiting_reason == "b: not connected").await;
        assert_eq!(status.waiting_since_ms, since);
        b = rig.attach("b", if hung < 3 { until("b", 20) } else { honestly("b") });
    }
    assert_eq!(rig.ended(&job).await.state, State::Finished);
    assert_eq!(rig.draws(&job), expected);
    let seen = rig.seen.lock().unwrap();
    assert!(seen.asked.values().all(|asked| asked.len() == 1), "asked again means the same again");
    assert!(seen.ended.iter().all(|(party, why)| party == "b" && why.contains("has not answered round 20")), "{:?}", seen.ended);
}

#[tokio::test]
async fn a_party_that_does_not_open_a_job_is_hastened_too_but_not_its_owner() {
    let rig = Fixture::with(tempfile::tempdir().unwrap(), HASTY);
    let _a = rig.attach("a", honestly("a"));
    rig.context.store.seen("b", "test", 0);
    let (queue, mut outgoing) = send_queue();
    let _place = rig.context.party_registry.attach("b", queue.clone());
    let job = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap();
    rig.until(&job, |s| s.waiting_reason == "b: connected, but the job is not opened yet").await;
    assert!(queue.ended().await.contains("b has not opened it"));
    assert!(matches!(outgoing.next().await.unwrap().unwrap().body, Some(Body::OpenJob(_))));
    assert!(outgoing.next().await.unwrap().is_err());
    let (queue, _outgoing) = crate::send_queue::send_queue();
    let _place = rig.context.party_registry.attach("b", queue.clone());
    rig.context.party_registry.deliver("b", &job, Message::Pending);
    rig.until(&job, |s| s.waiting_reason == "b: waiting for consent").await;
    // An owner has no time limit.
    assert!(tokio::time::timeout(HASTY.most * 2, queue.ended()).await.is_err());
}

/// A job whose model parties of protocol 1 compute differently.
fn poisson() -> String {
    spec(10)
        .replace("gaussian_mean\", outcome = \"x\", sd = 1.0", "poisson\", outcome = \"x\", predictors = [\"z\"]")
        .replace("{ x = { min = -4, max = 4 } }", "{ x = { min = 0, max = 4 }, z = { min = 0, max = 1 } }")
        .replace("{ mean = 0.1 }", "{ intercept = 0.1, z = 0.1 }")
}

#[tokio::test]
async fn a_job_is_not_opened_at_a_party_that_computes_it_differently() {
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    rig.context.store.seen("b", "test", 0);
    let (queue, mut outgoing) = send_queue();
    let _place = rig.context.party_registry.attach("b", queue.with_protocol(1));
    let job = rig.job_registry.submit(poisson(), "alice", signed()).await.unwrap();
    let fault = rig.ended(&job).await.fault.unwrap();
    assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::InvalidInput, Some("b")));
    assert!(fault.message.ends_with("upgrade both, and submit the job again"), "{fault}");
    // A job that both protocols compute in the same way is opened.
    let other = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap();
    loop {
        match outgoing.next().await.unwrap().unwrap().body {
            Some(Body::OpenJob(open)) if open.job == other => break,
            Some(Body::CloseJob(close)) => assert_eq!(close.job, job),
            frame => panic!("{frame:?}"),
        }
    }
}

#[tokio::test]
async fn a_job_waits_for_a_party_that_was_set_back_to_an_older_protocol() {
    let rig = Fixture::new();
    let (_a, b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 2)));
    let job = rig.job_registry.submit(poisson(), "alice", signed()).await.unwrap();
    rig.asked("b", 2).await;
    b.leave();
    let (queue, _outgoing) = send_queue();
    let place = rig.context.party_registry.attach("b", queue.with_protocol(1));
    let status = rig.until(&job, |s| s.waiting_reason.contains("upgrade both")).await;
    assert!(!status.state.has_ended() && status.waiting_for == ["b"], "{status:?}");
    rig.context.party_registry.detach("b", place.generation);
    let _b = rig.attach("b", honestly("b"));
    assert_eq!(rig.ended(&job).await.state, State::Finished);
}

#[tokio::test]
async fn a_job_begun_by_an_earlier_version_is_not_continued_on_another_centre() {
    let mut rig = Fixture::new();
    let jobs = {
        let (_a, _b) = (rig.attach("a", until("a", 2)), rig.attach("b", until("b", 2)));
        let jobs = [poisson(), spec(10)].map(|spec| rig.job_registry.submit(spec, "alice", signed()));
        let [earlier, alike] = jobs;
        let jobs = (earlier.await.unwrap(), alike.await.unwrap());
        rig.asked("b", 1).await;
        jobs
    };
    rig = rig.restart(|store| assert_eq!(store.execute("UPDATE jobs SET protocol = NULL", []).unwrap(), 2)).await;
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    let status = rig.ended(&jobs.0).await;
    assert_eq!(status.state, State::Failed);
    assert!(status.fault.unwrap().message.contains("begun by an earlier version; submit it again"));
    assert_eq!(rig.ended(&jobs.1).await.state, State::Finished, "a model that both compute alike continues");
}

#[tokio::test]
async fn answers_may_repeat_themselves_and_come_late() {
    let expected = undisturbed(200).await;
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let mut before: Vec<Message> = Vec::new();
    let repeating: Reply = Box::new(move |query| {
        let now = answer(query.iteration, honest("b", query));
        let mut all = std::mem::replace(&mut before, vec![now.clone()]);
        all.extend([now.clone(), now]);
        all
    });
    let _b = rig.attach("b", repeating);
    let job = rig.job_registry.submit(spec(200), "alice", signed()).await.unwrap();
    let status = rig.ended(&job).await;
    assert_eq!(status.state, State::Finished, "{:?}", status.fault);
    assert_eq!(rig.draws(&job), expected);
}

#[tokio::test]
async fn a_party_that_breaks_the_protocol_ends_the_job_by_name() {
    let broken: [fn(&v1::Query) -> Vec<Message>; 6] = [
        |query| vec![answer(query.iteration, vec![1; query.proposals.len() + 1])],
        |query| vec![answer(query.iteration + 1, vec![1; query.proposals.len()])],
        |query| vec![answer(query.iteration, vec![1, 2]), answer(query.iteration, vec![1, 3])],
        |_| vec![Message::Malformed("an answer without a status".to_owned())],
        |query| vec![answer(query.iteration, vec![i64::MIN, 1])],
        // 500 records at this walk's steps, plus noise, give about 2^41.
        |query| vec![answer(query.iteration, vec![1, 1 << 50])],
    ];
    for act in broken {
        let rig = Fixture::new();
        let _a = rig.attach("a", honestly("a"));
        let reply: Reply = Box::new(move |query| match query.iteration {
            20 => act(query),
            _ => vec![answer(query.iteration, honest("b", query))],
        });
        let _b = rig.attach("b", reply);
        let job = rig.job_registry.submit(spec(100), "alice", signed()).await.unwrap();
        let status = rig.ended(&job).await;
        assert_eq!(status.state, State::Failed);
        // Earlier draws and their cost are available to summary, report and extension.
        let result = result(&status);
        assert_eq!((&result["stopped_by"], result["draws_per_chain"].as_u64()), (&"failure".into(), Some(status.draws)));
        assert!(status.draws > 0 && result["continuation"]["states"][0][0].is_number(), "{result}");
        assert!(result["parties"][0]["queries"].as_u64() >= Some(40), "{result}");
        assert_eq!(status.fault.unwrap().party.as_deref(), Some("b"));
    }
}

fn refusing_at(party: &'static str, round: u64, status: AnswerStatus) -> Reply {
    Box::new(move |query| match query.iteration < round {
        true => vec![answer(query.iteration, honest(party, query))],
        false => vec![Message::Answer { iteration: query.iteration, outcome: Err(status), echo: None }],
    })
}

/// A full disk at one party does not end the job for the others: it waits for that party, by name, and then continues.
#[tokio::test]
async fn a_party_that_halts_pauses_the_job_and_changes_nothing() {
    let expected = undisturbed(200).await;
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let b = rig.attach("b", refusing_at("b", 110, AnswerStatus::Halted));
    let job = rig.job_registry.submit(spec(200), "alice", signed()).await.unwrap();
    let status = rig.until(&job, |s| s.state == State::Paused).await;
    assert_eq!((status.waiting_for, status.fault), (vec!["b".to_owned()], None));
    assert!(status.waiting_reason.contains("b: it has stopped answering") && status.waiting_reason.contains("start it again"));
    // Repaired and restarted.
    b.leave();
    let _b = rig.attach("b", honestly("b"));
    let status = rig.ended(&job).await;
    assert_eq!(status.state, State::Finished, "{:?}", status.fault);
    assert_eq!(rig.draws(&job), expected);
}

#[tokio::test]
async fn a_budget_that_ends_keeps_the_draws() {
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let _b = rig.attach("b", refusing_at("b", 110, AnswerStatus::Budget));
    let job = rig.job_registry.submit(spec(1000), "alice", signed()).await.unwrap();
    let status = rig.ended(&job).await;
    assert_eq!((status.state, status.draws, status.iteration), (State::Finished, 100, 110));
    let result = result(&status);
    assert_eq!((&result["stopped_by"], &result["budget_party"]), (&"budget".into(), &"b".into()));
    // The discarded round was answered, and charged, by one of the two.
    assert_eq!(result["parties"][0]["queries"], 222);
    assert_eq!(result["parties"][1]["queries"], 220);
    assert_eq!(result["draws_per_chain"], 100);
}

#[tokio::test]
async fn a_budget_that_ends_before_the_first_draw_fails_the_job() {
    let rig = Fixture::new();
    let _a = rig.attach("a", refusing_at("a", 3, AnswerStatus::Budget));
    let _b = rig.attach("b", honestly("b"));
    let job = rig.job_registry.submit(spec(1000), "alice", signed()).await.unwrap();
    let status = rig.ended(&job).await;
    let fault = status.fault.unwrap();
    assert_eq!((status.state, fault.code, fault.party.as_deref()), (State::Failed, ErrorCode::Budget, Some("a")));
    // Its warm-up lies in one file, like the draws of every ended job.
    let folder = rig.folder.path().join("draws").join(format!("{job}.zarr"));
    assert!(!folder.exists() && folder.with_extension("zarr.zip").is_file());
    assert!(rig.draws(&job).keys().any(|name| name.starts_with("warmup_posterior/mean/c/")), "{:?}", rig.draws(&job).keys());
}

#[tokio::test]
async fn a_refusal_ends_the_job_and_the_others_hear_of_it() {
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let _b = rig.attach("b", refusing_at("b", 12, AnswerStatus::Policy));
    let job = rig.job_registry.submit(spec(1000), "alice", signed()).await.unwrap();
    let fault = rig.ended(&job).await.fault.unwrap();
    assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::Policy, Some("b")));
    let notified = async {
        while !rig.seen.lock().unwrap().closed.iter().any(|(party, reason)| party == "a" && reason.contains('b')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), notified).await.unwrap();
}

#[tokio::test]
async fn a_consent_withdrawn_keeps_the_draws_and_names_the_party() {
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let _b = rig.attach("b", refusing_at("b", 110, AnswerStatus::Policy));
    let job = rig.job_registry.submit(spec(1000), "alice", signed()).await.unwrap();
    let status = rig.ended(&job).await;
    let fault = status.fault.clone().unwrap();
    assert_eq!((status.state, status.draws, fault.code), (State::Failed, 100, ErrorCode::Policy));
    assert_eq!(fault.party.as_deref(), Some("b"));
    let result = result(&status);
    assert_eq!((&result["stopped_by"], &result["draws_per_chain"]), (&"policy".into(), &100.into()));
    assert_eq!((&result["parties"][0]["queries"], &result["parties"][1]["queries"]), (&222.into(), &220.into()));
}

#[tokio::test]
async fn an_owner_who_has_yet_to_decide_is_waited_for() {
    let rig = Fixture::new();
    let _a = rig.attach("a", honestly("a"));
    let (queue, mut outgoing) = send_queue();
    rig.context.store.seen("b", "test", 0);
    let _place = rig.context.party_registry.attach("b", queue);
    let job = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap();
    assert!(matches!(outgoing.next().await.unwrap().unwrap().body, Some(Body::OpenJob(_))));
    rig.context.party_registry.deliver("b", &job, Message::Pending);
    let status = rig.until(&job, |s| !s.awaiting_consent.is_empty()).await;
    assert_eq!((status.state, status.awaiting_consent, status.waiting_for), (State::Opening, vec!["b".into()], vec!["b".into()]));
    rig.context.party_registry.deliver("b", &job, Message::Opened(PartyMetadata::rows(RECORDS), None, None));
    let status = rig.until(&job, |s| s.state == State::Running).await;
    assert!(status.awaiting_consent.is_empty() && status.waiting_for.is_empty());
}

#[tokio::test]
async fn a_cancelled_job_keeps_its_draws() {
    let rig = Fixture::new();
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    let job = rig.job_registry.submit(spec(10_000_000), "alice", signed()).await.unwrap();
    rig.until(&job, |s| s.draws > 50).await;
    assert_eq!(rig.job_registry.cancel(&job, "mallory").await.unwrap_err().code, ErrorCode::NotFound);
    let status = rig.job_registry.cancel(&job, "alice").await.unwrap();
    assert_eq!(status.state, State::Cancelled);
    assert_eq!(result(&status)["stopped_by"], "cancelled");
    let again = rig.job_registry.cancel(&job, "alice").await.unwrap();
    assert_eq!(again.draws, status.draws);
}

#[tokio::test]
async fn a_job_that_waits_can_be_cancelled() {
    let rig = Fixture::new();
    let (_a, b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    b.leave();
    let job = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap();
    let status = rig.job_registry.cancel(&job, "alice").await.unwrap();
    assert_eq!((status.state, status.result), (State::Cancelled, None));
}

#[tokio::test]
async fn a_party_that_was_away_is_notified_of_an_end() {
    let rig = Fixture::new();
    let (_a, b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 5)));
    let job = rig.job_registry.submit(spec(10), "alice", signed()).await.unwrap();
    rig.asked("b", 5).await;
    b.leave();
    assert_eq!(rig.job_registry.cancel(&job, "alice").await.unwrap().state, State::Cancelled);
    let notified = async |rig: &Fixture, party: &str| {
        let end = (party.to_owned(), "cancelled".to_owned());
        while !rig.seen.lock().unwrap().closed.contains(&end) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    notified(&rig, "a").await;
    assert_eq!(rig.seen.lock().unwrap().closed.len(), 1);
    let b = rig.attach("b", honestly("b"));
    notified(&rig, "b").await;
    b.leave();
    // And after a restart.
    let rig = rig.restart(|_| ()).await;
    let _b = rig.attach("b", honestly("b"));
    notified(&rig, "b").await;
}

#[tokio::test]
async fn a_restarted_coordinator_continues_the_same_chain() {
    let expected = undisturbed(1500).await;
    let mut rig = Fixture::new();
    let mut parties = [rig.attach("a", honestly("a")), rig.attach("b", until("b", 100))];
    let job = rig.job_registry.submit(spec(1500), "alice", signed()).await.unwrap();
    for (rounds, lost, next) in [(100, 0, 400), (400, 60, 900), (900, 900, u64::MAX)] {
        rig.asked("b", rounds).await;
        parties.into_iter().for_each(Party::leave);
        // A power loss may take the log's tail; the draws on disk may then be ahead of it.
        rig = rig
            .restart(|store| {
                let sql = "DELETE FROM rounds WHERE iteration >= (SELECT count(*) FROM rounds) - ?1";
                store.execute(sql, [lost]).unwrap();
            })
            .await;
        parties = [rig.attach("a", honestly("a")), rig.attach("b", until("b", next))];
    }
    let status = rig.ended(&job).await;
    assert_eq!(status.state, State::Finished, "{:?}", status.fault);
    assert_eq!(rig.draws(&job), expected);
    assert_eq!(result(&status)["parties"][0]["queries"], 2 * 1510);
    // And an ended job is still shown after another restart.
    let rig = rig.restart(|_| ()).await;
    let shown = rig.job_registry.watch(&job, "alice").unwrap().borrow().clone();
    assert_eq!((shown.state, shown.draws, shown.result), (State::Finished, 1500, status.result));
}

#[tokio::test]
async fn a_job_begins_and_ends_with_the_same_record_counts() {
    let rig = Fixture::new();
    let (_a, b) = (rig.attach("a", honestly("a")), rig.attach("b", until("b", 20)));
    let job = rig.job_registry.submit(spec(100_000), "alice", signed()).await.unwrap();
    rig.asked("b", 20).await;
    b.leave();
    let _b = rig.attach_with("b", RECORDS + 1, honestly("b"));
    let fault = rig.ended(&job).await.fault.unwrap();
    assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::Conflict, Some("b")));
}

#[tokio::test]
async fn several_jobs_run_side_by_side() {
    let expected = undisturbed(300).await;
    let rig = Fixture::new();
    let (_a, _b) = (rig.attach("a", honestly("a")), rig.attach("b", honestly("b")));
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(rig.job_registry.submit(spec(300), "alice", signed()).await.unwrap());
    }
    for job in &jobs {
        assert_eq!(rig.ended(job).await.state, State::Finished);
        assert_eq!(rig.draws(job), expected);
    }
}
