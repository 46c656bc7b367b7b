#![allow(clippy::unwrap_used)]
use std::fs::File;
use std::sync::Arc;

use ::parquet::data_type::{BoolType, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::pass::Persons;

use std::path::PathBuf;

use crate::data::*;
use crate::testing::{data, write};

fn numbers<'a>(shard: &'a Shard, column: &str) -> &'a [f64] {
    match shard.column(column) {
        Some(Column::Numbers(values)) => values,
        other => panic!("{column}: {other:?}"),
    }
}

fn texts<'a>(shard: &'a Shard, column: &str) -> Vec<&'a str> {
    match shard.column(column) {
        Some(Column::Texts { codes, words }) => {
            codes.iter().map(|code| if code.is_nan() { "" } else { words[*code as usize].as_str() }).collect()
        }
        other => panic!("{column}: {other:?}"),
    }
}

fn csv(text: &str, needed: Option<&[&str]>, bad_rows: BadRows) -> Result<Shard, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", text);
    load(path, needed, bad_rows)
}

fn csv_with(file: &str, text: &[&str], bad_rows: BadRows) -> Result<Shard, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", file);
    let text = text.iter().map(|c| (*c).to_owned()).collect();
    Shard::load(&DataConfig { text, ..data(path, bad_rows) }, None)
}

fn load(path: PathBuf, needed: Option<&[&str]>, bad_rows: BadRows) -> Result<Shard, DataError> {
    let needed: Option<Vec<String>> = needed.map(|n| n.iter().map(|c| (*c).to_owned()).collect());
    Shard::load(&data(path, bad_rows), needed.as_deref())
}

#[test]
fn reads_needed_columns_in_any_order() {
    let text = "\u{feff}age , name,\"bmi\"\r\n30,\"Ann, \"\"A\"\"\", 22.5 \r\n4e1,Bob,-1\r\n";
    let shard = csv(text, Some(&["bmi", "age"]), BadRows::Stop).unwrap();
    assert_eq!(numbers(&shard, "age"), [30.0, 40.0]);
    assert_eq!(numbers(&shard, "bmi"), [22.5, -1.0]);
    assert_eq!(shard.column("name"), None);
    assert_eq!(shard.header(), ["age", "name", "bmi"]);
    assert_eq!((shard.records(), shard.inert()), (2, 0));
}

#[test]
fn a_bad_value_is_named_by_file_line_and_column() {
    for (cell, flaw) in [
        ("", "is missing"),
        ("  ", "is missing"),
        ("high", "is not a number"),
        ("1,5", "is not a number"),
        ("NaN", "is not finite"),
        ("-inf", "is not finite"),
        ("1e999", "is not finite"),
    ] {
        // The quoted newline makes line and row numbers differ.
        let text = format!("name,age\n\"A\nnn\",30\nSecretName,\"{cell}\"\n");
        let error = csv(&text, Some(&["age"]), BadRows::Stop).unwrap_err().to_string();
        assert!(error.contains("a.csv, line 4, column \"age\"") && error.contains(flaw), "{error}");
        assert!(error.contains("bad_rows = \"drop\""), "{error}");
        assert!(!error.contains("SecretName") && (cell.trim().is_empty() || cell == "inf" || !error.contains(cell)));
        // In an unused column it does no harm.
        assert_eq!(csv(&format!("name,age\n\"{cell}\",30\n"), Some(&["age"]), BadRows::Stop).unwrap().records(), 1);
    }
}

#[test]
fn bad_rows_can_be_made_inert_whole() {
    let text = "a,b\n1,2\n3\n5,6,7\n,8\n9,x\n10,11\n";
    let shard = csv(text, None, BadRows::Drop).unwrap();
    for (name, [first, last]) in [("a", [1.0, 10.0]), ("b", [2.0, 11.0])] {
        let column = numbers(&shard, name);
        assert!(column[0] == first && column[5] == last && column[1..5].iter().all(|x| x.is_nan()), "{column:?}");
    }
    // The number of the file's rows is public, whatever they contain.
    assert_eq!((shard.records(), shard.metadata().records(), shard.inert()), (6, Some(6), 4));
    let whole = csv("a,b\n1,2\n3,4\n5,6\n7,8\n9,9\n10,11\n", None, BadRows::Drop).unwrap();
    assert_eq!(whole.metadata(), shard.metadata());
    let error = csv(text, None, BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("line 3, column \"b\""), "{error}");
    let error = csv("a,b\n5,6,7\n", None, BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("line 2 with 3 fields under a header of 2"), "{error}");
    let error = csv("a,b\n1,2\n3,4\n,\n".replace(['1', '3'], "").as_str(), None, BadRows::Drop).unwrap_err().to_string();
    assert!(error.contains("no usable row: all 3"), "{error}");
    let error = csv("a,b\n1,2\n1,x\n", None, BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("[policy] columns"), "{error}");
}

#[test]
fn columns_of_texts_are_read_as_texts() {
    let text = "ward,age,note\nb,30,1\n a ,40,?\nb,50,x\n7,60,y\n";
    let shard = csv_with(text, &["ward", "note"], BadRows::Stop).unwrap();
    assert_eq!((texts(&shard, "ward"), numbers(&shard, "age")), (vec!["b", "a", "b", "7"], &[30.0, 40.0, 50.0, 60.0][..]));
    assert_eq!(texts(&shard, "note"), ["1", "?", "x", "y"]);
    // A row without a text is a bad row, and its other texts are ignored.
    let shard = csv_with("ward,unit\na,q\n,r\nb,q\n", &["ward", "unit"], BadRows::Drop).unwrap();
    assert_eq!((texts(&shard, "ward"), shard.records(), shard.inert()), (vec!["a", "", "b"], 3, 1));
    assert!(matches!(shard.column("unit"), Some(Column::Texts { words, .. }) if words == ["q"]));
    let error = csv_with("ward\na\n \nb\n", &["ward"], BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("is missing"), "{error}");
    // A column not declared as text holds numbers, however many of its values are not numbers: no record decides it.
    let error = csv("age\n1\n2\nSecretName\n", None, BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("line 4") && error.contains("is not a number") && !error.contains("SecretName"), "{error}");
    // Persons' texts are gathered as their numbers are.
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", "who,ward\nann,x\nbob,y\nann,z\n");
    let unit = PrivacyUnit::person(Adjacency::Replace, 2).unwrap();
    let config = DataConfig { person: Some("who".into()), unit, text: vec!["ward".into()], ..data(path, BadRows::Stop) };
    assert_eq!(texts(&Shard::load(&config, None).unwrap(), "ward"), ["x", "z", "y"]);
    let error = csv_with("ward\na\n", &["wart"], BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("\"wart\"") && error.contains("\"ward\""), "{error}");
}

const WARD_JOB: &str = r#"
name = "ward"
parties = ["a"]
[model]
kind = "linear"
outcome = "y"
predictors = ["age", "ward", "age:ward"]
offset = "base"
[columns]
y = { min = 0, max = 10 }
age = { min = 20, max = 80 }
base = { min = -4, max = 4 }
ward = { levels = ["a", "b", 7] }
[privacy]
epsilon = 1.0
delta = 1e-6
"#;

#[test]
fn levels_interactions_and_offsets_are_bound() {
    let spec = JobSpec::parse(WARD_JOB).unwrap();
    let shard = csv_with("age,ward,y,base\n35,b,10,1\n80,a,5,9\n50,c,5,0\n20,7.0,0,-2\n", &["ward"], BadRows::Stop).unwrap();
    let data = bind(&shard, &spec).unwrap();
    let good = |column: &[f64]| {
        assert!(column[2].is_nan(), "a record with a value that is no level is left out whole");
        [column[0], column[1], column[3]]
    };
    assert_eq!(good(&data.outcome), [1.0, 0.0, -1.0]);
    let predictors: Vec<_> = data.predictors.iter().map(|c| good(c)).collect();
    assert_eq!(predictors, [[-0.5, 1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [-0.5, 0.0, 0.0], [0.0, 0.0, -1.0]]);
    assert_eq!(good(&data.auxiliary[0]), [1.0, 4.0, -2.0], "offsets are in the data's units, clamped");
    let data = bind(&csv("age,ward,y,base\n35,7,10,1\n", None, BadRows::Stop).unwrap(), &spec).unwrap();
    assert_eq!(data.predictors[2], [1.0], "a column of numbers has levels too");
    // A column of texts cannot serve as numbers: the shard has no numbers for it, and the party reports this.
    let worded = csv_with("age,ward,y,base\nx,a,1,1\n30,b,1,1\n", &["age", "ward"], BadRows::Stop).unwrap();
    assert_eq!(bind(&worded, &spec).err(), Some(BindError::Texts("age".into())));
    let missing = bind(&csv("age,y,base\n35,10,1\n", None, BadRows::Stop).unwrap(), &spec);
    assert_eq!(missing.err(), Some(BindError::Missing("ward".into())));
}

/// A code is a text: two codes that read as one number are two levels.
#[test]
fn codes_are_compared_as_texts() {
    let job = |levels: &str| {
        let text = "name = \"x\"\nparties = [\"a\"]\n[model]\nkind = \"multinomial\"\noutcome = \"w\"\n[columns]\nw = { levels = LEVELS }\n\
                    [privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        JobSpec::parse(&text.replace("LEVELS", levels))
    };
    let file = "w\n345.1\n345.10\n0345.1\n1E5\n100000\n9007199254740993\n9007199254740992\n";
    let shard = csv_with(file, &["w"], BadRows::Stop).unwrap();
    let bound = |levels: &str| {
        let values = bind(&shard, &job(levels).unwrap()).unwrap().outcome;
        values.iter().map(|value| (!value.is_nan()).then_some(*value as usize)).collect::<Vec<_>>()
    };
    let (none, some) = (None, Some);
    assert_eq!(bound(r#"["345.1", "345.10", "1E5"]"#), [some(0), some(1), none, some(2), none, none, none]);
    assert_eq!(bound(r#"["9007199254740993", "9007199254740992"]"#), [none, none, none, none, none, some(0), some(1)]);
    assert_eq!(bound("[345.1, 100000]"), [some(0), some(0), some(0), some(1), some(1), none, none]);
    // A column of numbers has no texts.
    let numbers = csv_with(file, &[], BadRows::Stop).unwrap();
    let values = bind(&numbers, &job(r#"["345.1", "100000"]"#).unwrap()).unwrap().outcome;
    assert_eq!(values[..5], [0.0, 0.0, 0.0, 1.0, 1.0]);
    let refused = bind(&numbers, &job(r#"["345.1", "345.10"]"#).unwrap());
    assert_eq!(refused.err(), Some(BindError::Numbers("w".into())));
    assert!(job(r#"["01", 1]"#).is_err() && job(r#"["1", "1"]"#).is_err() && job(r#"["01", "1"]"#).is_ok());
}

#[test]
fn another_text_shows_in_the_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let secret = crate::ledger::Secret::load_or_make(&folder.path().join("secret")).unwrap();
    let print = |text: &str| csv_with(text, &["ward"], BadRows::Stop).unwrap().fingerprints(&secret).unwrap();
    let whole = print("ward,x\na,1\nbc,2\n");
    assert_eq!(whole, print("ward,x\na,1\n bc,2\n"));
    for other in ["ward,x\nab,1\nc,2\n", "ward,x\nbc,1\na,2\n", "ward,x\na,1\nbd,2\n"] {
        assert!(whole["ward"] != print(other)["ward"] && whole["x"] == print(other)["x"], "{other}");
    }
}

#[test]
fn unknown_and_repeated_columns_and_empty_files_are_named() {
    let error = csv("age,bmi\n1,2\n", Some(&["agee"]), BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("\"agee\"") && error.contains("did you mean \"age\"") && error.contains("age, bmi"), "{error}");
    let error = csv("age,bmi,age\n1,2,3\n", Some(&["bmi"]), BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("\"age\" twice"), "{error}");
    for (text, said) in [("", "is empty"), ("\n", "is empty"), ("age\n", "no rows")] {
        let error = csv(text, Some(&["age"]), BadRows::Stop).unwrap_err().to_string();
        assert!(error.contains(said), "{text:?}: {error}");
    }
    let error = load("/nowhere/a.csv".into(), None, BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("/nowhere/a.csv") && error.contains("data.path"), "{error}");
    let error = load("/nowhere/a.xlsx".into(), None, BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains(".parquet"), "{error}");
}

#[test]
fn text_that_is_not_utf8_is_a_bad_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, b"age,name\n1,\xff\n\xff,x\n").unwrap();
    let error = load(path, Some(&["age"]), BadRows::Stop).unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("is not a number"), "{error}");
}

/// Writes two row groups of every type; the nullable column lacks its second value.
fn parquet_file(folder: &TempDir) -> PathBuf {
    let schema = "message m { required boolean flag; required int32 small (UINT_32); required int64 money (DECIMAL(9,2));
        required float f; optional double d; optional binary name (UTF8); repeated int32 many; }";
    let path = folder.path().join("a.parquet");
    let properties = Arc::new(WriterProperties::builder().build());
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let levels = [1, 0, 1];
        macro_rules! column {
            ($kind:ty, $values:expr, $levels:expr, $repeats:expr) => {{
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<$kind>().write_batch($values, $levels, $repeats).unwrap();
                column.close().unwrap();
            }};
        }
        column!(BoolType, &[true, false, true], None, None);
        column!(Int32Type, &[1, -1, 3], None, None);
        column!(Int64Type, &[150, -25, 0], None, None);
        column!(FloatType, &[0.5, 1.5, f32::NAN], None, None);
        column!(DoubleType, &[2.5, 3.5], Some(&levels), None);
        column!(ByteArrayType, &["x".into(), "y".into()], Some(&levels), None);
        column!(Int32Type, &[1, 2, 3], Some(&[1, 1, 1]), Some(&[0, 0, 0]));
        group.close().unwrap();
    }
    writer.close().unwrap();
    path
}

#[test]
fn parquet_reads_every_numeric_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = parquet_file(&folder);
    let shard = load(path.clone(), Some(&["money", "flag", "small"]), BadRows::Stop).unwrap();
    assert_eq!(numbers(&shard, "flag"), [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    assert_eq!(numbers(&shard, "small")[..3], [1.0, f64::from(u32::MAX), 3.0]);
    assert_eq!(numbers(&shard, "money")[3..], [1.5, -0.25, 0.0]);
    let shard = load(path.clone(), Some(&["name"]), BadRows::Drop).unwrap();
    assert_eq!((texts(&shard, "name"), shard.inert()), (vec!["x", "", "y", "x", "", "y"], 2));
    let shard = load(path, Some(&["f", "d"]), BadRows::Drop).unwrap();
    for (name, value) in [("f", 0.5), ("d", 2.5)] {
        let expected = [value, f64::NAN, f64::NAN, value, f64::NAN, f64::NAN].map(f64::to_bits);
        assert_eq!(numbers(&shard, name).iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected, "{name}");
    }
    assert_eq!((shard.records(), shard.inert()), (6, 4));
}

#[test]
fn parquet_errors_name_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = parquet_file(&folder);
    for (column, said) in [
        ("d", "row 2, column \"d\": the value is missing"),
        ("f", "row 3, column \"f\": the value is not finite"),
        ("name", "row 2, column \"name\": the value is missing"),
        ("many", "column \"many\" is nested"),
        ("smal", "did you mean \"small\""),
    ] {
        let error = load(path.clone(), Some(&[column]), BadRows::Stop).unwrap_err().to_string();
        assert!(error.contains("a.parquet") && error.contains(said), "{error}");
    }
}

#[test]
fn a_damaged_parquet_file_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(parquet_file(&folder)).unwrap();
    let path = folder.path().join("b.parquet");
    for length in [0, 4, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = load(path.clone(), Some(&["money"]), BadRows::Stop).unwrap_err().to_string();
        assert!(error.contains("b.parquet"), "{error}");
    }
    // Whatever byte is flipped, reading returns a result.
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        std::fs::write(&path, &flipped).unwrap();
        let _ = load(path.clone(), Some(&["money", "d", "name"]), BadRows::Stop);
    }
}

#[test]
fn a_shard_shows_no_value() {
    let shard = csv("age\n123456\n", None, BadRows::Stop).unwrap();
    assert!(!format!("{shard:?}").contains("123456"));
}

fn by_person(text: &str, limit: u32, bad_rows: BadRows) -> Result<Shard, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", text);
    let unit = PrivacyUnit::person(Adjacency::Replace, limit).unwrap();
    Shard::load(&DataConfig { person: Some("who".into()), unit, ..data(path, bad_rows) }, None)
}

#[test]
fn rows_are_gathered_by_person_and_those_beyond_the_limit_left_out() {
    let text = "who,x\nann,1\nbob,2\nann,3\n007,4\nann,5\nbob,6\n7,7\n";
    let shard = by_person(text, 2, BadRows::Stop).unwrap();
    // In the order in which persons appear, and in file order within a person; `7` and `007` are two persons.
    assert_eq!(numbers(&shard, "x"), [1.0, 3.0, 2.0, 6.0, 4.0, 7.0]);
    assert_eq!((shard.records(), shard.units(), shard.beyond_limit(), shard.inert()), (6, 4, 1, 0));
    assert_eq!(shard.names(), ["x"], "the person is no number");
    assert!(shard.persons().unwrap() == &Persons::new(vec![2, 4, 5, 6], 2).unwrap());
    assert_eq!((shard.metadata().persons(), shard.metadata().records()), (Some(4), None));
    // A bad row takes no place of a usable one.
    let shard = by_person("who,x\nann,\nann,1\nann,2\n", 2, BadRows::Drop).unwrap();
    assert_eq!((numbers(&shard, "x"), shard.inert()), (&[1.0, 2.0][..], 1));
    // A person counts whatever the rows contain: the number is that of a file without a bad value.
    let shard = by_person("who,x\nann,\nbob,3\nann,\ncai,4\n", 2, BadRows::Drop).unwrap();
    assert_eq!((shard.metadata().persons(), shard.records(), shard.inert()), (Some(3), 3, 2));
    let x = numbers(&shard, "x");
    assert!(x[0].is_nan() && x[1..] == [3.0, 4.0], "{x:?}");
}

#[test]
fn a_row_without_a_person_is_a_bad_row() {
    let e = by_person("who,x\nann,1\n ,2\n", 2, BadRows::Stop).unwrap_err().to_string();
    assert!(e.contains("line 3") && e.contains("\"who\"") && e.contains("is missing"), "{e}");
    // A row without a name is a person of its own, who is inert: the count does not reveal whether a row lost its name.
    let shard = by_person("who,x\nann,1\n,2\n,3\n", 2, BadRows::Drop).unwrap();
    assert_eq!((shard.inert(), shard.metadata().persons()), (2, Some(3)));
    let e = by_person("name,x\nann,1\n", 2, BadRows::Stop).unwrap_err().to_string();
    assert!(e.contains("no column \"who\""), "{e}");
}

#[test]
fn parquet_persons_are_text_or_whole_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "message m { optional binary who (UTF8); required int64 id; required double x; }";
    let path = folder.path().join("p.parquet");
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let names = ["ann".into(), "bob".into(), "ann".into()];
    column.typed::<ByteArrayType>().write_batch(&names, Some(&[1, 1, 1, 0]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[7, 7, -7, 7], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[1.0, 2.0, 3.0, 4.0], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let load = |person: &str, bad_rows| {
        let unit = PrivacyUnit::person(Adjacency::Replace, 2).unwrap();
        let config = DataConfig { person: Some(person.into()), unit, ..data(path.clone(), bad_rows) };
        Shard::load(&config, Some(&["x".to_owned()]))
    };
    let shard = load("who", BadRows::Drop).unwrap();
    let x = numbers(&shard, "x");
    assert!(x[..3] == [1.0, 3.0, 2.0] && x[3].is_nan() && shard.inert() == 1, "{x:?}");
    assert!(load("who", BadRows::Stop).unwrap_err().to_string().contains("row 4"));
    let shard = load("id", BadRows::Stop).unwrap();
    assert_eq!((numbers(&shard, "x"), shard.beyond_limit()), (&[1.0, 2.0, 3.0][..], 1));
    assert!(load("x", BadRows::Stop).unwrap_err().to_string().contains("text or whole numbers"));
}
