//! However the records are stored, the sums are the same, bit for bit.
#![allow(clippy::unwrap_used)]
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use conclave_common::model::Summand;
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use conclave_privacy::pass::{LatticeSum, NoSum, Step, Summed};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1::{self, party_frame::Body};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::answer::records::Records;
use crate::answer::sums::{self, Pass, SumQuery};
use crate::data::tests::row_by_row::{Row, config, csv_file, parquet_file, rows};
use crate::data::{BadRows, DataConfig, Memory};
use crate::ledger::Secret;
use crate::members::Members;
use crate::testing::{JOB, budget, open_policy, open_request, query};

const LINEAR: &str = r#"
name = "memory"
parties = ["hospital-a"]
[model]
kind = "linear"
outcome = "a"
predictors = ["n", "ward", "n:ward"]
sd = 2e8
[columns]
a = { min = -1e9, max = 1e9 }
n = { min = -9e18, max = 9e18 }
ward = { levels = ["a", "b", "ab", "cc"] }
[privacy]
epsilon = 3.0
delta = 1e-6
noise_sd = 1.0
"#;

pub(super) const NEEDED: [&str; 3] = ["a", "ward", "n"];

/// Returns one sum per step.
pub(super) fn step_sums(job: &ActiveJob, threads: &Threads, steps: &[Step<'_>]) -> Result<Vec<LatticeSum>, NoSum> {
    let summands = (0..).zip(steps.iter().map(|step| Summand::Step(*step)));
    let asked: Vec<SumQuery<'_>> = summands.map(|(key, summand)| SumQuery { key, kind: QueryKind::Ratio, summand }).collect();
    let pass = Pass { model: job.model.as_ref(), blocks: job.records.blocks(), threads };
    Ok(sums::sums(&pass, &job.fixed_sums, &asked)?.into_values().collect())
}

/// Opens a job on the records of a file; returns the party.
fn open(folder: &Path, data: &DataConfig, policy: Policy) -> Answerer {
    let shard = Shard::load(data, Some(&NEEDED.map(str::to_owned))).unwrap();
    let ledger = folder.join(format!("{:?}.sqlite", data.memory));
    if !ledger.exists() {
        Ledger::init(&ledger, "hospital-a", &budget().of(data.unit)).unwrap();
    }
    let ledger = Ledger::open(&ledger, "hospital-a", &budget().of(data.unit)).unwrap();
    let mut answerer =
        Answerer::new("hospital-a".into(), policy, budget().of(data.unit), shard, ledger, Noise::from_os().unwrap())
            .with_members(Members::anyone());
    assert!(matches!(answerer.open(&open_request(LINEAR)).unwrap(), Opening::Opened(..)));
    answerer
}

/// Returns the sums of two steps, each on one thread and on three.
fn sums(answerer: &Answerer) -> Vec<Vec<i64>> {
    let job = &answerer.jobs[JOB];
    let from = vec![0.0; job.spec.dimension()];
    let to: Vec<f64> = (0..job.spec.dimension()).map(|at| 0.01 + 0.02 * at as f64).collect();
    let clamp = Sensitivity::from_units(1 << 33).unwrap();
    let counted = Step { of: Summed::Clipped, ..Step::new(&to, &from, Sensitivity::from_units(1 << 20).unwrap()) };
    let steps = [Step::new(&from, &to, clamp), counted];
    let on = |threads: &Threads| step_sums(job, threads, &steps).unwrap().into_iter().map(LatticeSum::open_for_test).collect();
    vec![on(&Threads::one()), on(&Threads::new(NonZeroUsize::new(3).unwrap()).unwrap()), on(&Threads::one())]
}

fn held(answerer: &Answerer) -> bool {
    matches!(answerer.jobs[JOB].records, Records::Held(_))
}

/// Returns a file's configurations under each applicable memory mode.
pub(super) fn ways(file: PathBuf, limit: Option<usize>) -> Vec<DataConfig> {
    let ways = [Memory::Copies, Memory::Lean, Memory::Stream].into_iter();
    ways.map(|memory| DataConfig { memory, ..config(file.clone(), BadRows::Drop, limit) }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn every_memory_mode_gives_the_same_sums(
        rows in rows(),
        limit in prop::option::of(1_usize..4),
        cuts in (0.0..1.0, 0.0..1.0),
        parquet in any::<bool>(),
    ) {
        let good = Row { a: Ok(1e8), ward: Ok("b".into()), n: Ok(-7), who: Some("z".into()), torn: false };
        let rows: Vec<Row> = rows.into_iter().chain([good]).collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(if parquet { "a.parquet" } else { "a.csv" });
        if parquet {
            let (first, rest) = rows.split_at((cuts.0 * rows.len() as f64) as usize);
            let (second, third) = rest.split_at((cuts.1 * rest.len() as f64) as usize);
            parquet_file(&file, &[first, second, third]);
        } else {
            std::fs::write(&file, csv_file(&rows)).unwrap();
        }
        let policy = || Policy { max_memory_mib: Some(4096), ..open_policy() };
        let all: Vec<_> = ways(file, limit).iter().map(|data| sums(&open(folder.path(), data, policy()))).collect();
        for sums in &all {
            prop_assert_eq!(sums, &vec![all[0][0].clone(); 3]);
        }
    }
}

fn study() -> (TempDir, PathBuf) {
    let row = |at: i64| Row {
        a: if at % 97 == 5 { Err(crate::data::Flaw::Missing) } else { Ok(at as f64 * 1e4) },
        ward: Ok(["a", "b", "ab", "zz"][at as usize % 4].to_owned()),
        n: Ok(at * 100_000_000_000_000),
        who: Some(format!("p{}", at / 2)),
        torn: false,
    };
    let rows: Vec<Row> = (0..90_000).map(row).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    parquet_file(&file, &[&rows[..70_000], &rows[70_000..]]);
    (folder, file)
}

#[test]
fn a_real_job_is_answered_however_its_records_are_stored() {
    let (folder, file) = study();
    let secret = Secret::load_or_make(&folder.path().join("secret")).unwrap();
    let mut seen = Vec::new();
    for data in ways(file, None) {
        let mut answerer = open(folder.path(), &data, open_policy());
        assert_eq!(held(&answerer), data.memory == Memory::Copies);
        seen.push((sums(&answerer), answerer.shard.fingerprints(&secret).unwrap(), answerer.shard.inert()));
        let dimension = answerer.jobs[JOB].spec.dimension();
        let mut ask = query(0, &[(0, 0.0, 1e-4)]);
        ask.proposals.iter_mut().for_each(|p| {
            p.from.resize(dimension, 0.0);
            p.to.resize(dimension, 0.0);
        });
        let answer = answerer.answer(ask);
        assert_eq!(AnswerStatus::from_wire(answer.status.unwrap()).unwrap(), AnswerStatus::Released);
    }
    assert!(seen[0].2 > 0 && seen.iter().all(|one| *one == seen[0]));
    assert!(seen[0].0[0].iter().all(|sum| *sum != 0));
}

/// `cargo test --release -p conclave-vault --lib passes_take -- --ignored --nocapture` prints a line for each memory mode.
#[test]
#[ignore = "a measurement"]
fn passes_take_their_time() {
    let row = |at: i64| Row {
        a: Ok(at as f64 * 1e3),
        ward: Ok(["a", "b", "ab", "cc"][at as usize % 4].to_owned()),
        n: Ok(at * 10_000_000_000),
        who: None,
        torn: false,
    };
    let rows: Vec<Row> = (0..1_000_000).map(row).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    parquet_file(&file, &[&rows]);
    for data in ways(file, None) {
        let answerer = open(folder.path(), &data, open_policy());
        let job = &answerer.jobs[JOB];
        let (from, to) = (vec![0.0; job.spec.dimension()], vec![0.01; job.spec.dimension()]);
        let step = [Step::new(&from, &to, Sensitivity::from_units(1 << 33).unwrap())];
        for threads in [1, 2] {
            let threads = Threads::new(NonZeroUsize::new(threads).unwrap()).unwrap();
            let mut times: Vec<f64> = (0..15)
                .map(|_| {
                    let began = Instant::now();
                    step_sums(job, &threads, &step).unwrap();
                    began.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("{:?}, {} threads: {:.2} ms a pass over {} records", data.memory, threads.count(), times[7], rows.len());
        }
    }
}

/// Copies are limited by memory; a mode without copies has no such limit.
#[test]
fn jobs_whose_copies_do_not_fit_alone_are_refused() {
    let (folder, file) = study();
    let policy = |mib| Policy { max_memory_mib: Some(mib), ..open_policy() };
    let copies = config(file.clone(), BadRows::Drop, None);
    let lean = DataConfig { memory: Memory::Lean, ..copies.clone() };
    assert!(held(&open(folder.path(), &copies, policy(8))) && !held(&open(folder.path(), &lean, policy(1))));
    let shard = Shard::load(&copies, Some(&NEEDED.map(str::to_owned))).unwrap();
    let path = folder.path().join("none.sqlite");
    Ledger::init(&path, "hospital-a", &budget()).unwrap();
    let ledger = Ledger::open(&path, "hospital-a", &budget()).unwrap();
    let mut answerer = Answerer::new("hospital-a".into(), policy(1), budget(), shard, ledger, Noise::from_os().unwrap())
        .with_members(Members::anyone());
    let refused = answerer.open(&open_request(LINEAR)).unwrap_err().to_string();
    assert!(refused.contains("max_memory_mib of 1"), "{refused}");
}

/// A job waits while others leave no room for it, and opens once one has ended; the same holds beyond the maximal number of open
/// jobs.
#[test]
fn a_job_waits_for_room() {
    let (folder, file) = study();
    let copies = config(file, BadRows::Drop, None);
    // Room for one job's columns but not for two's.
    let mut answerer = open(folder.path(), &copies, Policy { max_memory_mib: Some(8), ..open_policy() });
    let second = || {
        let text = LINEAR.replace("\"memory\"", "\"second\"");
        v1::OpenJob { job: "second".into(), ..open_request(&text) }
    };
    let Opening::Full(why) = answerer.open(&second()).unwrap() else { panic!("there is room") };
    assert!(why.contains("max_memory_mib of 8"), "{why}");
    assert!(answerer.ledger().state().job("second").is_none(), "nothing is entered of what waits");
    let (outbox, mut said) = tokio::sync::mpsc::channel(8);
    answerer.open_or_wait(second(), Instant::now(), outbox);
    assert!(
        matches!(said.try_recv().unwrap().body, Some(Body::JobPending(pending)) if pending.full && pending.reason.contains("max_memory_mib"))
    );
    answerer.close(JOB, "finished").unwrap();
    answerer.make_room();
    assert!(matches!(said.try_recv().unwrap().body, Some(Body::JobOpened(opened)) if opened.job == "second"));
}

/// Another file at the same path, or changed bytes in it, changes no answer: passes read the snapshot, which has no name.
#[test]
fn a_streamed_file_that_changes_changes_no_answer() {
    for replaced in [false, true] {
        let (folder, file) = study();
        let data = DataConfig { memory: Memory::Stream, ..config(file.clone(), BadRows::Drop, None) };
        let answerer = open(folder.path(), &data, open_policy());
        let names = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names().all(|name| !name.starts_with(".snapshot")), "{:?}", names().collect::<Vec<_>>());
        let before = sums(&answerer);
        if replaced {
            std::fs::rename(&file, folder.path().join("b.parquet")).unwrap();
            std::fs::write(&file, "no Parquet").unwrap();
        } else {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[1000] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
        assert_eq!(sums(&answerer), before);
        // A new start reads the current file.
        assert!(Shard::load(&data, Some(&NEEDED.map(str::to_owned))).is_err() || !replaced);
    }
}

/// A folder that takes no snapshot stops the start, and names the key.
#[test]
fn a_snapshot_needs_a_folder() {
    let (folder, file) = study();
    let data = DataConfig { memory: Memory::Stream, snapshot: folder.path().join("none"), ..config(file, BadRows::Drop, None) };
    let e = Shard::load(&data, None).unwrap_err().to_string();
    assert!(e.contains("none") && e.contains("`data.snapshot`"), "{e}");
}
