//! Configurations, data files, and exported ledgers.

use std::path::Path;

use conclave_party::PartyConfig;
use conclave_party::ledger_views::export;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_vault::data::Shard;
use conclave_vault::data::{BadRows, DataConfig, Format, Memory};

use crate::harness::{Target, fuzz};

const WORDS: &[&str] = &[
    "= ",
    "\n",
    "[",
    "]",
    "\"",
    "nan",
    "inf",
    "-1",
    "0",
    "1e308",
    "18446744073709551616",
    "\"auto\"",
    "[policy]",
    "[data]",
    "[budget]",
    "[data.person]",
    "person = \"x\"",
    "max_records_per_person = 0",
    "adjacency = \"add-remove\"",
    "reply_delay_ms = -1",
    "min_noise_sd = nan",
    "durability = \"reserve\"",
    "max_memory_mib = 0",
    "revoked = \"r\"",
    "\u{0}",
    ",",
    ";",
    "\r\n",
    "\"\"\"",
    "1e400",
    "é",
];

fn words() -> Vec<Vec<u8>> {
    WORDS.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn party_configurations() {
    fuzz(&Target {
        name: "party-toml",
        seeds: vec![include_bytes!("../../../deploy/sample/a/party.toml").to_vec()],
        words: words(),
        run: Box::new(|bytes| {
            let parsed = std::str::from_utf8(bytes).ok().and_then(|text| PartyConfig::parse(text, Path::new("/x")).ok());
            let Some(config) = parsed else { return false };
            assert!(config.budget.epsilon.is_finite() && config.budget.epsilon > 0.0);
            assert!(config.budget.delta > 0.0 && config.budget.delta < 1.0);
            assert!(config.policy.min_noise_sd >= 0.0);
            true
        }),
    });
}

#[test]
fn coordinator_configurations() {
    fuzz(&Target {
        name: "coordinator-toml",
        seeds: vec![include_bytes!("../../../deploy/sample/coordinator/coordinator.toml").to_vec()],
        words: words(),
        run: Box::new(|bytes| {
            std::str::from_utf8(bytes).is_ok_and(|text| conclave_coordinator::Config::parse(text, Path::new("/x")).is_ok())
        }),
    });
}

fn load(name: &'static str, extension: &str, seeds: Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("rows.{extension}"));
    fuzz(&Target {
        name,
        seeds,
        words: words(),
        run: Box::new(move |bytes| {
            std::fs::write(&path, bytes).expect("a file");
            let data = DataConfig {
                path: path.clone(),
                format: Format::default(),
                bad_rows: BadRows::Drop,
                text: Vec::new(),
                person: None,
                unit: PrivacyUnit::default(),
                memory: Memory::default(),
                snapshot: std::env::temp_dir(),
            };
            Shard::load(&data, None).is_ok()
        }),
    });
    drop(folder);
}

#[test]
fn csv_records() {
    load(
        "csv",
        "csv",
        vec![b"age,bmi,ward\n40,22.5,1\n\"51\",1e1,2\n-0,3,0\n".to_vec(), b"age,ward\n40,a\n,b\ninf,c\n".to_vec()],
    );
}

#[test]
fn parquet_records() {
    load("parquet", "parquet", vec![parquet_file()]);
}

fn parquet_file() -> Vec<u8> {
    use std::sync::Arc;

    use parquet::data_type::{ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let schema = "message rows { REQUIRED DOUBLE age; OPTIONAL INT64 visits; REQUIRED BYTE_ARRAY ward (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(WriterProperties::default())).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let mut column = group.next_column().expect("a column").expect("age");
    column.typed::<DoubleType>().write_batch(&[40.0, 51.5, f64::NAN], None, None).expect("values");
    column.close().expect("a column");
    let mut column = group.next_column().expect("a column").expect("visits");
    column.typed::<Int64Type>().write_batch(&[1, 2], Some(&[1, 0, 1]), None).expect("values");
    column.close().expect("a column");
    let mut column = group.next_column().expect("a column").expect("ward");
    column.typed::<ByteArrayType>().write_batch(&["a".into(), "b".into(), "a".into()], None, None).expect("values");
    column.close().expect("a column");
    group.close().expect("a group");
    writer.close().expect("a file");
    file
}

/// An exported ledger, as auditors receive it. The corpus holds examples, since only a party can create one.
#[test]
fn exported_ledgers() {
    fuzz(&Target {
        name: "ledger-export",
        seeds: vec![b"{}\n".to_vec()],
        words: words(),
        run: Box::new(|bytes| export::check(bytes).is_ok()),
    });
}
