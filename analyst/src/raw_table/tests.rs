#![allow(clippy::unwrap_used)]
use conclave_privacy::accounting::PrivacyUnit;
use conclave_vault::data::{BadRows, Column, Format, Memory};

use super::*;

/// Numbers that a decimal text of 15 digits does not hold.
const NUMBERS: [f64; 4] = [0.1 + 0.2, -0.0, 1.0 / 3.0, 5e-324];

fn folder(description: &str, files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("columns.json"), description).unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
    folder
}

fn numbers(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn places(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn loaded(path: &Path, bad_rows: BadRows) -> Result<Shard, Fault> {
    let config = DataConfig {
        path: path.to_owned(),
        format: Format::default(),
        bad_rows,
        text: vec!["ward".to_owned()],
        person: None,
        unit: PrivacyUnit::default(),
        memory: Memory::default(),
        snapshot: std::env::temp_dir(),
    };
    load(&config, None)
}

const DESCRIPTION: &str = r#"{"rows": 4, "columns": [
    {"name": "age", "type": "float64", "file": "0", "nulls": "0n"},
    {"name": "ward", "type": "category", "categories": ["east", "unused", "w\"e,st"], "file": "1"}]}"#;

#[test]
fn a_folder_is_the_same_records_as_a_file() {
    let raw = folder(DESCRIPTION, &[("0", numbers(&NUMBERS)), ("0n", vec![0, 0, 1, 0]), ("1", places(&[2, 0, 0, 2]))]);
    let csv = raw.path().join("same.csv");
    std::fs::write(&csv, "age,ward\n0.30000000000000004,\"w\"\"e,st\"\n-0.0,east\n,east\n5e-324,\"w\"\"e,st\"\n").unwrap();
    let (shard, same) = (loaded(raw.path(), BadRows::Drop).unwrap(), loaded(&csv, BadRows::Drop).unwrap());
    let bits = |shard: &Shard, name: &str| match shard.column(name).unwrap() {
        Column::Numbers(values) => (values.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), Vec::new()),
        Column::Texts { codes, words } => (codes.iter().map(|x| x.to_bits()).collect(), words.to_vec()),
    };
    for name in ["age", "ward"] {
        assert_eq!(bits(&shard, name), bits(&same, name), "{name}");
    }
    assert_eq!((shard.inert(), shard.records()), (1, 4));
    // The error names the folder and the row.
    let said = loaded(raw.path(), BadRows::Stop).unwrap_err().message;
    assert!(said.starts_with(&format!("{}, row 3, column \"age\"", raw.path().display())), "{said}");
}

#[test]
fn a_missing_text_and_a_nan_are_bad_values() {
    let raw = folder(DESCRIPTION, &[("0", numbers(&[1.0; 4])), ("0n", vec![0; 4]), ("1", places(&[2, -1, 0, 2]))]);
    assert!(loaded(raw.path(), BadRows::Stop).unwrap_err().message.contains("row 2, column \"ward\": the value is missing"));
    let nan = [1.0, 1.0, 1.0, f64::NAN];
    let raw = folder(DESCRIPTION, &[("0", numbers(&nan)), ("0n", vec![0; 4]), ("1", places(&[2, 1, 0, 2]))]);
    assert!(loaded(raw.path(), BadRows::Stop).unwrap_err().message.contains("row 4, column \"age\": the value is not finite"));
}

#[test]
fn a_folder_that_contradicts_itself_is_named() {
    let whole = || vec![("0", numbers(&NUMBERS)), ("0n", vec![0; 4]), ("1", places(&[0; 4]))];
    let with = |at: usize, bytes: Vec<u8>| {
        let mut files = whole();
        files[at].1 = bytes;
        loaded(folder(DESCRIPTION, &files).path(), BadRows::Stop).unwrap_err().message
    };
    assert!(with(0, vec![0; 31]).contains("column \"age\": 0 has 31 bytes, and 4 rows of 8 bytes"));
    assert!(with(1, vec![0, 2, 0, 0]).contains("hold 2 in row 2"));
    assert!(with(2, places(&[0, 3, 0, 0])).contains("row 2 holds 3, and it has 3 categories"));
    let described = |text: &str| loaded(folder(text, &whole()).path(), BadRows::Stop).unwrap_err().message;
    assert!(described(&DESCRIPTION.replace("\"0\"", "\"../0\"")).contains("is not the name of a file in the folder"));
    assert!(described(&DESCRIPTION.replace("float64", "int8")).contains("columns.json"));
    assert!(described(&DESCRIPTION.replace("\"ward\"", "\"age\"")).contains("twice"));
    let none = tempfile::tempdir().unwrap();
    assert!(loaded(none.path(), BadRows::Stop).unwrap_err().message.contains("columns.json cannot be read"));
}

#[test]
fn cells_are_texts_that_read_back() {
    let raw = folder(DESCRIPTION, &[("0", numbers(&NUMBERS)), ("0n", vec![0, 0, 0, 1]), ("1", places(&[2, -1, 0, 0]))]);
    let table = RawTable::read(raw.path()).unwrap();
    let read: Vec<f64> = (0..3).map(|row| table.columns[0].text(row).parse().unwrap()).collect();
    assert_eq!(
        read.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        NUMBERS[..3].iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    );
    assert_eq!(
        (table.columns[0].text(3), table.columns[1].text(0), table.columns[1].text(1)),
        (String::new(), "w\"e,st".to_owned(), String::new())
    );
}
