//! Missing or existing ledger files, and data files of other formats.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conclave_tests::books::charges;
use conclave_tests::study::{self, Record};
use parquet::data_type::{DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::{cluster, stderr};

/// Writes records as Parquet, with another column order than the CSV, other types, and two row groups.
pub(crate) fn write_parquet(path: &Path, records: &[Record]) {
    let schema = "message records { required double age; optional int32 readmitted; required int32 treated; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = fs::File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::builder().build())).expect("a writer");
    for part in records.chunks(records.len().div_ceil(2)) {
        let whole = |column: usize| part.iter().map(|r| r[column] as i32).collect::<Vec<_>>();
        let ages: Vec<f64> = part.iter().map(|r| r[2]).collect();
        let mut group = writer.next_row_group().expect("a row group");
        let mut age = group.next_column().expect("a column").expect("a column");
        age.typed::<DoubleType>().write_batch(&ages, None, None).expect("ages");
        age.close().expect("ages");
        for (values, levels) in [(whole(0), Some(vec![1; part.len()])), (whole(1), None)] {
            let mut column = group.next_column().expect("a column").expect("a column");
            column.typed::<Int32Type>().write_batch(&values, levels.as_deref(), None).expect("whole numbers");
            column.close().expect("whole numbers");
        }
        group.close().expect("a row group");
    }
    writer.close().expect("a file");
}

/// A missing ledger is not an empty one, and a ledger is never replaced: either would erase charges.
#[test]
fn a_ledger_is_neither_invented_nor_replaced() {
    let mut cluster = cluster(&["a"], 100, 50.0);
    let run = ["__party", "run", "--config", "a/party.toml"];
    let init = ["__party", "init", "--yes", "--config", "a/party.toml"];
    cluster.submit(&study::job(&["a"], "chains = 1\ndraws = 20\nwarmup = 1", "epsilon = 40\ndelta = 1e-6"));
    let spent = charges(&cluster.ledger(0));
    assert!(spent > 20);

    let second = cluster.run(&run);
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert!(stderr(&second).contains("another process holds this ledger"), "{}", stderr(&second));
    cluster.kill_party(0);

    let again = cluster.run(&init);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).contains("ledger.sqlite") && stderr(&again).contains("never replaced"), "{}", stderr(&again));
    assert_eq!(charges(&cluster.ledger(0)), spent);

    // Moves the whole ledger away, together with its write-ahead log.
    fs::create_dir(cluster.path("elsewhere")).expect("a folder");
    let moved = |name: &str| (cluster.path("a").join(name), cluster.path("elsewhere").join(name));
    for name in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"] {
        let (from, to) = moved(name);
        if from.exists() {
            fs::rename(from, to).expect("moved");
        }
    }
    let missing = cluster.run(&run);
    let said = stderr(&missing);
    assert_eq!(missing.status.code(), Some(2), "{said}");
    assert!(said.contains("ledger.sqlite") && said.contains("restore it") && said.contains("init"), "{said}");
    assert!(!moved("ledger.sqlite").0.exists(), "a start never creates a ledger");
}
