//! Time and memory to load a shard: `cargo bench -p conclave-vault --bench load -- [rows]`.
//!
//! Makes files of 10 predictors and an outcome in a temporary folder, loads each in a process of its own, on one thread and on all, and
//! prints a line of JSON for each. Rates are in 10^6 bytes a second of the file, and of the columns, 8 bytes a value; memory is in
//! multiples of the columns. The files have just been written, so they come from the system's cache and not from a disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use conclave_privacy::accounting::PrivacyUnit;
use conclave_vault::data::Shard;
use conclave_vault::data::{BadRows, DataConfig, Format, Memory};
use conclave_vault::ledger::Secret;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::DoubleType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

type Failure = Box<dyn std::error::Error>;
/// Writes a file.
type Make<'a> = dyn Fn(&Path) -> Result<(), Failure> + 'a;

const COLUMNS: usize = 11;
/// Rows of a row group, as other writers make them.
const GROUP: usize = 1 << 20;
/// Names a file to load to the process that does it.
const LOAD: &str = "CONCLAVE_BENCH_LOAD";

fn main() -> Result<(), Failure> {
    if let Some(file) = std::env::var_os(LOAD) {
        return load(Path::new(&file));
    }
    let rows = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    let folder = std::env::temp_dir().join(format!("conclave-bench-load-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let done = all(&folder, rows);
    std::fs::remove_dir_all(&folder)?;
    done
}

fn all(folder: &Path, rows: usize) -> Result<(), Failure> {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1)?);
    let kinds: [(&str, &Make); 5] = [
        ("three-decimals.csv", &|path| csv(path, rows, |to, value| write!(to, "{value:.3}"))),
        ("all-digits.csv", &|path| csv(path, rows, |to, value| write!(to, "{value}"))),
        ("plain.parquet", &|path| parquet(path, rows, Compression::UNCOMPRESSED)),
        ("snappy.parquet", &|path| parquet(path, rows, Compression::SNAPPY)),
        ("zstd.parquet", &|path| parquet(path, rows, zstd)),
    ];
    for (name, make) in kinds {
        let path = folder.join(name);
        make(&path)?;
        for threads in ["1", "0"] {
            let mut command = Command::new(std::env::current_exe()?);
            let status = command.env(LOAD, &path).env("RAYON_NUM_THREADS", threads).status()?;
            if !status.success() {
                return Err(format!("{name}: {status}").into());
            }
        }
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// Loads a file as a party does at its start.
fn load(path: &Path) -> Result<(), Failure> {
    let unit = PrivacyUnit::default();
    let config = DataConfig {
        path: path.to_owned(),
        format: Format::default(),
        bad_rows: BadRows::Stop,
        text: Vec::new(),
        person: None,
        unit,
        memory: Memory::default(),
        snapshot: std::env::temp_dir(),
    };
    let began = Instant::now();
    let shard = Shard::load(&config, None)?;
    let loaded = began.elapsed().as_secs_f64();
    let secret = Secret::load_or_make(&path.with_extension("key"))?;
    let began = Instant::now();
    std::hint::black_box(shard.fingerprints(&secret)?);
    let hashed = began.elapsed().as_secs_f64();
    let (file, columns) = (std::fs::metadata(path)?.len() as f64, (8 * COLUMNS) as f64 * shard.records() as f64);
    let line = serde_json::json!({
        "file": path.file_name().map(|name| name.to_string_lossy()),
        "rows": shard.records(),
        "threads": rayon::current_num_threads(),
        "seconds": loaded,
        "file_mb": file * 1e-6,
        "file_mb_per_s": file * 1e-6 / loaded,
        "columns_mb": columns * 1e-6,
        "columns_mb_per_s": columns * 1e-6 / loaded,
        "fingerprint_mb_per_s": columns * 1e-6 / hashed,
        "resident": memory("VmRSS:")?.map(|bytes| bytes / columns),
        "peak": memory("VmHWM:")?.map(|bytes| bytes / columns),
    });
    println!("{line}");
    Ok(())
}

/// Returns the bytes of memory of this process, if the system reports them.
fn memory(key: &str) -> Result<Option<f64>, Failure> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(None) };
    let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(Some(1024.0 * kib))
}

/// Marsaglia's xorshift over -100 to 100.
fn values() -> impl FnMut() -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        200.0 * (state as f64 / u64::MAX as f64) - 100.0
    }
}

fn csv(path: &Path, rows: usize, spell: impl Fn(&mut BufWriter<File>, f64) -> std::io::Result<()>) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    let names: Vec<String> = (1..COLUMNS).map(|at| format!("x{at}")).collect();
    writeln!(file, "y,{}", names.join(","))?;
    let mut value = values();
    for _ in 0..rows {
        spell(&mut file, value())?;
        for _ in 1..COLUMNS {
            file.write_all(b",")?;
            spell(&mut file, value())?;
        }
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

fn parquet(path: &Path, rows: usize, compression: Compression) -> Result<(), Failure> {
    let fields: Vec<String> = (0..COLUMNS).map(|at| format!("optional double x{at};")).collect();
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {} }}", fields.concat()))?);
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, properties)?;
    let mut value = values();
    for start in (0..rows).step_by(GROUP) {
        let count = GROUP.min(rows - start);
        let levels = vec![1; count];
        let mut group = writer.next_row_group()?;
        while let Some(mut column) = group.next_column()? {
            let values: Vec<f64> = (0..count).map(|_| value()).collect();
            column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}
