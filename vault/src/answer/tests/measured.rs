//! Memory and processor time of a job on a large file. For each memory mode:
//!
//! ```sh
//! ROWS=10000000 MEMORY=lean cargo test --release -p conclave-vault --lib a_large_file -- --ignored --nocapture
//! ```
#![allow(clippy::unwrap_used)]
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::data_type::DoubleType;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::{Step, Threads};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::memory::step_sums;
use super::*;
use crate::data::{BadRows, DataConfig, Memory};
use crate::members::Members;
use crate::testing::{JOB, budget, data, open_policy, open_request};

/// The outcome and nine predictors.
const COLUMNS: usize = 10;
const GROUP: usize = 1_000_000;

fn job() -> String {
    let names: Vec<String> = (1..COLUMNS).map(|at| format!("\"x{at}\"")).collect();
    let columns: String = (0..COLUMNS).map(|at| format!("x{at} = {{ min = -3, max = 3 }}\n")).collect();
    format!(
        "name = \"large\"\nparties = [\"hospital-a\"]\n[model]\nkind = \"linear\"\noutcome = \"x0\"\npredictors = [{}]\nsd = 1.0\n\
         [columns]\n{columns}[privacy]\nepsilon = 3.0\ndelta = 1e-6\nnoise_sd = 1.0\n",
        names.join(", ")
    )
}

/// Writes numbers of six decimals, column by column, compressed as most programs do.
fn large_file(path: &Path, rows: usize) {
    let columns: String = (0..COLUMNS).map(|at| format!("optional double x{at}; ")).collect();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {columns} }}")).unwrap());
    let snappy = ::parquet::basic::Compression::SNAPPY;
    let properties = Arc::new(WriterProperties::builder().set_compression(snappy).set_dictionary_enabled(false).build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for start in (0..rows).step_by(GROUP) {
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            let values: Vec<f64> =
                (start..rows.min(start + GROUP)).map(|_| (rng.random::<f64>() * 6e6).round() / 1e6 - 3.0).collect();
            column.typed::<DoubleType>().write_batch(&values, Some(&vec![1; values.len()]), None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Returns the greatest resident memory so far, in bytes.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    1024.0 * line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
}

/// Returns the processor seconds so far.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

#[test]
#[ignore = "a measurement"]
fn a_large_file_takes_its_memory_and_time() {
    let set = |key: &str, default: &str| std::env::var(key).unwrap_or(default.to_owned());
    let rows: usize = set("ROWS", "1000000").parse().unwrap();
    let memory = match set("MEMORY", "copies").as_str() {
        "lean" => Memory::Lean,
        "stream" => Memory::Stream,
        _ => Memory::Copies,
    };
    let folder = tempfile::tempdir().unwrap();
    let file = std::env::var("FILE").map_or(folder.path().join("large.parquet"), PathBuf::from);
    if !file.exists() {
        large_file(&file, rows);
    }
    let columns = 8.0 * (rows * COLUMNS) as f64;
    let (empty, began) = (peak(), seconds());
    let shard = Shard::load(&DataConfig { memory, ..data(file, BadRows::Stop) }, None).unwrap();
    let (loaded, read) = (peak(), seconds());
    let ledger = folder.path().join("ledger.sqlite");
    Ledger::init(&ledger, "hospital-a", &budget()).unwrap();
    let ledger = Ledger::open(&ledger, "hospital-a", &budget()).unwrap();
    let policy = Policy { max_memory_mib: Some(1 << 16), ..open_policy() };
    let noise = Noise::from_os().unwrap();
    let mut answerer = Answerer::new("hospital-a".into(), policy, budget(), shard, ledger, noise).with_members(Members::anyone());
    assert!(matches!(answerer.open(&open_request(&job())).unwrap(), Opening::Opened(..)));
    let (opened, bound) = (peak(), seconds());
    println!(
        "{rows} rows, {memory:?}: peak {:.2} of the columns when read, {:.2} when open, above {empty} bytes",
        loaded / columns,
        opened / columns
    );
    println!("read in {:.2}, opened in {:.2} processor seconds", read - began, bound - read);
    let job = &answerer.jobs[JOB];
    let (from, to) = (vec![0.0; COLUMNS], vec![0.01; COLUMNS]);
    let step = [Step::new(&from, &to, Sensitivity::from_units(1 << 33).unwrap())];
    for threads in [1, 2] {
        let threads = Threads::new(NonZeroUsize::new(threads).unwrap()).unwrap();
        let began = seconds();
        for _ in 0..3 {
            step_sums(job, &threads, &step).unwrap();
        }
        println!("{} threads: {:.2} processor seconds a pass", threads.count(), (seconds() - began) / 3.0);
    }
}
