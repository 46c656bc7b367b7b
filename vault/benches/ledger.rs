//! Cost of the ledger per query: digest, charge and record of the answer, through the types of the answer path.
//!
//! `cargo bench -p conclave-vault --bench ledger` prints for the folder of temporary files (or `CONCLAVE_BENCH_DIR`) and for memory: the
//! time of an fdatasync measured in the same minute, releases per second and bytes per release; then criterion's figures of one message.
//! No time includes the noise draw, which is not part of the ledger.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::{Budget, Honest};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use conclave_privacy::pass::ModelData;
use conclave_vault::ledger::{
    ChargeOutcome, Durability, Grant, JobEntry, Ledger, LedgerSettings, QueryContent, QueryKey, RESERVE_BLOCK, Recorded,
    sample_noise,
};
use conclave_vault::noise::Noise;
use criterion::{BenchmarkId, Criterion, Throughput};
use tempfile::TempDir;

const PARTY: &str = "hospital-a";
const JOB: &str = "6f1c1a52-6d0e-4b1e-9d55-0d8f0f2b7a01";
const SPEC: &str = include_str!("../tests/jobs/mean.toml");
/// Parameters of a point: each query's digest covers two.
const DIMENSION: usize = 10;
const RESERVE: Durability = Durability::Reserve { block: RESERVE_BLOCK };

type Failure = Box<dyn std::error::Error>;

/// A ledger with one open job, and the other parts of a release.
struct Bench {
    folder: TempDir,
    keeping: LedgerSettings,
    ledger: Ledger,
    noise: Noise,
    model: Box<dyn Model>,
    iteration: u64,
}

/// Cost of one message: on the query's path, and after its reply.
#[derive(Default, Clone, Copy)]
struct Cost {
    path: Duration,
    after: Duration,
}

impl Bench {
    fn new(at: &Path, durability: Durability) -> Result<Self, Failure> {
        let folder = TempDir::new_in(at)?;
        // So large that hundreds of thousands of releases of an ordinary price fit.
        let budget = Budget::new(900.0, 1e-6)?;
        let keeping =
            LedgerSettings { durability, ..LedgerSettings::beside(&folder.path().join("ledger.sqlite"), PARTY, &budget) };
        keeping.init()?;
        let mut ledger = Ledger::open_kept(&keeping)?;
        let entry = JobEntry {
            job: JOB,
            analyst: "alice",
            spec_digest: &[1; 32],
            spec_toml: SPEC,
            cap: budget,
            records: 1000,
            room: None,
            honest: Honest::ALONE,
            approval: None,
        };
        ledger.open_job(&entry)?;
        let model = JobSpec::parse(SPEC)?.build_model();
        Ok(Self { folder, keeping, ledger, noise: Noise::from_os()?, model, iteration: 0 })
    }

    fn keys(&self, chains: u32) -> Result<Vec<QueryKey>, Failure> {
        let (spec_digest, s) = ([1; 32], NoiseScale::from_sd(1.0)?);
        let point = |chain: u32, moved: u64| [f64::from(chain) + (self.iteration + moved) as f64 * 1e-9; DIMENSION];
        (0..chains)
            .map(|chain| {
                let (from, to) = (point(chain, 0), point(chain, 1));
                // Prices vary a little, as those of proposals do.
                let k_t = Sensitivity::from_units((1 << 26) + ((self.iteration % 7) << 20))?;
                let (job, spec_digest, iteration, kind) = (JOB, &spec_digest, self.iteration, QueryKind::Ratio);
                let content =
                    QueryContent { job, spec_digest, iteration, chain, from: &from, to: &to, kind, k_t, s, masked: None };
                Ok(content.key(0))
            })
            .collect()
    }

    /// One message, answered.
    fn message(&mut self, chains: u32) -> Result<Cost, Failure> {
        let begun = Instant::now();
        let keys = self.keys(chains)?;
        let ChargeOutcome::Granted(grants) = self.ledger.charge(JOB, self.iteration, &keys)? else {
            return Err("refused".into());
        };
        let charged = begun.elapsed();
        let k_t = Sensitivity::from_units(5)?;
        let mut releases = Vec::with_capacity(grants.len());
        for grant in grants {
            let Grant::Charged(receipt) = grant else { return Err("answered before".into()) };
            let sum = self.model.lattice_sum(&ModelData::default(), &[0.0], &[0.1], k_t);
            releases.push(sample_noise(receipt, &mut self.noise).release(sum).ok_or("uncovered")?);
        }
        let begun = Instant::now();
        black_box::<Vec<Recorded>>(self.ledger.record(releases)?);
        let path = charged + begun.elapsed();
        self.iteration += 1;
        let begun = Instant::now();
        self.ledger.catch_up()?;
        Ok(Cost { path, after: begun.elapsed() })
    }

    fn bytes(&self) -> u64 {
        self.keeping.ledger.metadata().map_or(0, |file| file.len())
    }

    fn log_bytes(&self) -> u64 {
        self.folder.path().join("ledger.sqlite-wal").metadata().map_or(0, |file| file.len())
    }
}

/// The median time of an fdatasync after a page has been appended, as a commit of the ledger does.
fn sync_time(at: &Path) -> Result<Duration, Failure> {
    let folder = TempDir::new_in(at)?;
    let mut file = File::create(folder.path().join("log"))?;
    let mut times = Vec::new();
    for _ in 0..200 {
        file.write_all(&[7; 2 * 4120])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// Plain figures: releases a second, and the bytes that each takes once the log is copied in.
fn figures(name: &str, at: &Path) -> Result<(), Failure> {
    println!("{name} ({}): fdatasync {:.3} ms", at.display(), sync_time(at)?.as_secs_f64() * 1e3);
    for (mode, durability) in [("strict", Durability::Strict), ("reserve", RESERVE)] {
        for chains in [1, 16] {
            let mut bench = Bench::new(at, durability)?;
            bench.message(chains)?;
            let (before, begun) = (bench.bytes(), Instant::now());
            let (mut costs, mut log) = (Vec::new(), 0);
            while costs.len() < 20_000 && begun.elapsed() < Duration::from_secs(5) {
                costs.push(bench.message(chains)?);
                if costs.len() % 16 == 0 {
                    log = log.max(bench.log_bytes());
                }
            }
            let releases = (costs.len() * chains as usize) as f64;
            let path: Duration = costs.iter().map(|cost| cost.path).sum();
            let after: Duration = costs.iter().map(|cost| cost.after).sum();
            costs.sort_by_key(|cost| cost.path);
            let (median, most) = (costs[costs.len() / 2].path, costs[costs.len() - 1].path);
            let Bench { ledger, keeping, folder, .. } = bench;
            ledger.close()?;
            let bytes = keeping.ledger.metadata()?.len().saturating_sub(before) as f64 / releases;
            println!(
                "  {mode:7} {chains:2} chains: {:7.0} releases/s on the path, {:7.0} with what follows the reply; a message {:6.1} us \
                 (median; most {:6.1}); {bytes:.0} bytes a release, log at most {} KiB",
                releases / path.as_secs_f64(),
                releases / (path + after).as_secs_f64(),
                median.as_secs_f64() * 1e6,
                most.as_secs_f64() * 1e6,
                log >> 10,
            );
            drop(folder);
        }
    }
    println!("  fdatasync again: {:.3} ms", sync_time(at)?.as_secs_f64() * 1e3);
    Ok(())
}

fn measured(criterion: &mut Criterion, at: &Path) -> Result<(), Failure> {
    let mut group = criterion.benchmark_group("ledger");
    for (mode, durability) in [("strict", Durability::Strict), ("reserve", RESERVE)] {
        for chains in [1, 16] {
            group.throughput(Throughput::Elements(u64::from(chains)));
            let mut bench = Bench::new(at, durability)?;
            let mut failed = None;
            group.bench_function(BenchmarkId::new(mode, chains), |b| {
                b.iter_custom(|times| {
                    let mut path = Duration::ZERO;
                    for _ in 0..times {
                        match bench.message(chains) {
                            Ok(cost) => path += cost.path,
                            Err(e) => failed = Some(e),
                        }
                    }
                    path
                });
            });
            if let Some(e) = failed {
                return Err(e);
            }
        }
    }
    group.finish();
    Ok(())
}

fn main() -> Result<(), Failure> {
    let disk = std::env::var_os("CONCLAVE_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    // `cargo test --benches` only asks whether it runs.
    if std::env::args().any(|arg| arg == "--bench") {
        figures("disk", &disk)?;
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            figures("memory", memory)?;
        }
    }
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(2));
    measured(&mut criterion, &disk)?;
    criterion.final_summary();
    Ok(())
}
