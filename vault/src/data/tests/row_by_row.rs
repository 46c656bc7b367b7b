//! Files of every kind give the same data as reading row by row, and fingerprints never change.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use proptest::prelude::*;

use std::path::{Path, PathBuf};

use crate::data::*;
use crate::ledger::Secret;
use crate::testing::{data, write};

/// A value of a generated file: usable, or with its flaw.
pub(crate) type Cell<T> = Result<T, Flaw>;

/// A row of the columns `a`, `ward`, `n` and `who`: a number, a text, a whole number and a person.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) a: Cell<f64>,
    pub(crate) ward: Cell<String>,
    pub(crate) n: Cell<i64>,
    pub(crate) who: Option<String>,
    /// True for a CSV row with an extra field.
    pub(crate) torn: bool,
}

/// The expected contents of a shard.
#[derive(Debug, PartialEq, Default)]
struct Expected {
    a: Vec<u64>,
    ward: Vec<String>,
    words: Vec<String>,
    n: Vec<u64>,
    inert: u64,
    beyond: u64,
    ends: Option<Vec<usize>>,
}

/// A person in the expected result: name, if any, usable rows, and whether there are others.
type Person<'a> = (Option<&'a str>, Vec<&'a Row>);

/// Builds the expected result row by row. `limit` is the limit of rows per person, where there are persons.
fn by_hand(rows: &[Row], bad_rows: BadRows, limit: Option<usize>) -> Result<Expected, (usize, &'static str, Flaw)> {
    let mut expected = Expected::default();
    // Without persons every row is one of its own.
    let mut persons: Vec<Person<'_>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let torn = row.torn.then_some(("a", Flaw::NotNumeric));
        let flaw = |column, flaw: Option<Flaw>| flaw.map(|flaw| (column, flaw));
        let bad = torn
            .or(flaw("a", row.a.err()))
            .or(flaw("ward", row.ward.as_ref().err().copied()))
            .or(flaw("n", row.n.err()))
            .or(flaw("who", (limit.is_some() && row.who.is_none()).then_some(Flaw::Missing)));
        let who = row.who.as_deref().filter(|_| limit.is_some());
        let known = who.and_then(|who| persons.iter().position(|(name, _)| *name == Some(who)));
        let person = known.unwrap_or_else(|| {
            persons.push((who, Vec::new()));
            persons.len() - 1
        });
        if let Some((column, flaw)) = bad {
            if bad_rows == BadRows::Stop {
                return Err((at, column, flaw));
            }
            expected.inert += 1;
            continue;
        }
        if persons[person].1.len() >= limit.unwrap_or(1) {
            expected.beyond += 1;
            continue;
        }
        let word = row.ward.as_ref().unwrap();
        if !expected.words.contains(word) {
            expected.words.push(word.clone());
        }
        persons[person].1.push(row);
    }
    for (_, rows) in &persons {
        // A person without usable rows has one row that is not a number, and no text.
        let inert = rows.is_empty().then_some(None);
        for row in rows.iter().map(|row| Some(*row)).chain(inert) {
            expected.a.push(row.map_or(f64::NAN, |row| row.a.unwrap()).to_bits());
            expected.ward.push(row.map_or(String::new(), |row| row.ward.clone().unwrap()));
            expected.n.push(row.map_or(f64::NAN, |row| row.n.unwrap() as f64).to_bits());
        }
        if limit.is_some() {
            expected.ends.get_or_insert_default().push(expected.a.len());
        }
    }
    if limit.is_some() {
        expected.ends.get_or_insert_default();
    }
    Ok(expected)
}

fn found(shard: &Shard) -> Expected {
    let bits = |name| match shard.column(name) {
        Some(Column::Numbers(values)) => values.iter().map(|v| v.to_bits()).collect(),
        other => panic!("{name}: {other:?}"),
    };
    let (ward, words) = match shard.column("ward") {
        Some(Column::Texts { codes, words }) => {
            let word = |code: &f64| if code.is_nan() { String::new() } else { words[*code as usize].clone() };
            (codes.iter().map(word).collect(), words.to_vec())
        }
        other => panic!("ward: {other:?}"),
    };
    let ends = shard.persons().map(|persons| persons.ends().to_vec());
    Expected { a: bits("a"), ward, words, n: bits("n"), inert: shard.inert, beyond: shard.beyond_limit, ends }
}

pub(crate) fn config(path: PathBuf, bad_rows: BadRows, limit: Option<usize>) -> DataConfig {
    let unit = limit.map_or(PrivacyUnit::default(), |k| PrivacyUnit::person(Adjacency::Replace, k as u32).unwrap());
    let person = limit.map(|_| "who".to_owned());
    DataConfig { text: vec!["ward".into()], person, unit, ..data(path, bad_rows) }
}

fn compare(rows: &[Row], path: PathBuf, place: &str, first: usize, bad_rows: BadRows, limit: Option<usize>) {
    let needed = ["a", "ward", "n"].map(str::to_owned);
    let loaded = Shard::load(&config(path, bad_rows, limit), Some(&needed));
    match (loaded, by_hand(rows, bad_rows, limit)) {
        (Ok(shard), Ok(expected)) => assert!(found(&shard) == expected, "{rows:?}"),
        (Err(DataError::Empty { .. }), Ok(expected)) => assert!(expected.a.iter().all(|bits| f64::from_bits(*bits).is_nan())),
        (Err(DataError::BadValue { place: at, column, flaw, .. }), Err((row, expected, why))) => {
            let at = at.split(" with ").next().unwrap().to_owned();
            assert_eq!((at, column.as_str(), flaw), (format!("{place} {}", row + first), expected, why), "{rows:?}");
        }
        (loaded, expected) => panic!("{loaded:?} instead of {expected:?} of {rows:?}"),
    }
}

pub(crate) fn csv_file(rows: &[Row]) -> Vec<u8> {
    let mut file = b"note,a,who, ward ,n\n".to_vec();
    for (at, row) in rows.iter().enumerate() {
        let number = |value: Cell<String>| match value {
            Ok(value) => value.into_bytes(),
            Err(Flaw::NotFinite) => [&b"-inf"[..], b"NaN", b"1e999"][at % 3].to_vec(),
            Err(Flaw::NotNumeric) => [&b"high"[..], b"1;5", b"\"\"\"1\"", b"\xff"][at % 4].to_vec(),
            Err(_) => [&b""[..], b"  "][at % 2].to_vec(),
        };
        let ward = match &row.ward {
            Ok(word) => format!(" \"{word}\"").replace(" \"", ["\"", ""][at % 2]).replace('"', ["\"", ""][at % 2]).into_bytes(),
            Err(Flaw::NotText) => b"\xff".to_vec(),
            Err(_) => b" ".to_vec(),
        };
        let who = row.who.as_deref().unwrap_or("\t").as_bytes();
        // The note is an unused column, with quotes of its own.
        let fields =
            [&b"\"x, y\""[..], &number(row.a.map(|a| format!(" {a:?} "))), who, &ward, &number(row.n.map(|n| n.to_string()))];
        file.extend(fields.join(&b','));
        file.extend(if row.torn { &b",1\r\n"[..] } else { b"\n" });
    }
    file
}

pub(crate) fn parquet_file(path: &Path, groups: &[&[Row]]) {
    let schema = "message m { optional binary who (UTF8); optional double a; required int64 unread; optional binary ward; optional int64 n; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_data_page_row_count_limit(1000).build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        macro_rules! column {
            ($kind:ty, $value:expr) => {{
                let values: Vec<Option<_>> = rows.iter().map($value).collect();
                let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                let values: Vec<_> = values.into_iter().flatten().collect();
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<$kind>().write_batch(&values, Some(&levels), None).unwrap();
                column.close().unwrap();
            }};
        }
        column!(ByteArrayType, |row: &Row| row.who.as_deref().map(ByteArray::from));
        column!(DoubleType, |row: &Row| match row.a {
            Err(Flaw::Missing) => None,
            other => Some(other.unwrap_or(f64::NEG_INFINITY)),
        });
        column!(Int64Type, |_: &Row| Some(7));
        column!(ByteArrayType, |row: &Row| match &row.ward {
            Ok(word) => Some(ByteArray::from(format!(" {word}\t").as_str())),
            Err(Flaw::NotText) => Some(ByteArray::from(vec![0xff])),
            Err(_) => None,
        });
        column!(Int64Type, |row: &Row| row.n.ok());
        group.close().unwrap();
    }
    writer.close().unwrap();
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let a = prop_oneof![20 => (-1e9..1e9).prop_map(Ok), 1 => Just(Err(Flaw::Missing)), 1 => Just(Err(Flaw::NotFinite)), 1 => Just(Err(Flaw::NotNumeric))];
    let word = "[a-c]{1,2}".prop_map(Ok);
    let ward = prop_oneof![20 => word, 1 => Just(Err(Flaw::Missing)), 1 => Just(Err(Flaw::NotText))];
    let n = prop_oneof![20 => any::<i64>().prop_map(Ok), 1 => Just(Err(Flaw::Missing))];
    let row = (a, ward, n, prop::option::weighted(0.9, "[a-e]"), prop::bool::weighted(0.05));
    let row = row.prop_map(|(a, ward, n, who, torn)| Row { a, ward, n, who, torn });
    // The repeated rows span several batches.
    (prop::collection::vec(row, 1..20), prop_oneof![3 => Just(1_usize), 1 => 100_usize..400])
        .prop_map(|(rows, times)| (0..times).flat_map(|_| rows.clone()).collect())
}

fn shape() -> impl Strategy<Value = (BadRows, Option<usize>)> {
    (prop_oneof![Just(BadRows::Stop), Just(BadRows::Drop), Just(BadRows::Drop)], prop::option::of(1_usize..4))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn csv_equals_the_expected_result(rows in rows(), (bad_rows, limit) in shape()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        File::create(&path).unwrap().write_all(&csv_file(&rows)).unwrap();
        compare(&rows, path, "line", 2, bad_rows, limit);
    }

    #[test]
    fn parquet_equals_the_expected_result(rows in rows(), (bad_rows, limit) in shape(), cut in 0.0..1.0) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        // Its numbers are numbers, and no row has an extra field.
        let numeric = |row: &Row| Row { a: row.a.map_err(|flaw| if flaw == Flaw::NotNumeric { Flaw::NotFinite } else { flaw }), torn: false, ..row.clone() };
        let rows: Vec<Row> = rows.iter().map(numeric).collect();
        let (first, second) = rows.split_at((cut * rows.len() as f64) as usize);
        parquet_file(&path, &[first, second]);
        compare(&rows, path, "row", 1, bad_rows, limit);
    }
}

/// More rows than are decoded at a time, in row groups that end anywhere.
#[test]
fn long_files_are_read_whole() {
    let rows: Vec<Row> = (0..150_000_u32)
        .map(|at| Row {
            a: if at % 40_009 == 7 { Err(Flaw::Missing) } else { Ok(f64::from(at) * 0.1) },
            ward: if at % 65_536 == 65_535 { Err(Flaw::NotText) } else { Ok(format!("w{}", at / 10_000)) },
            n: Ok(-i64::from(at)),
            who: None,
            torn: false,
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let (parquet, csv) = (folder.path().join("a.parquet"), folder.path().join("a.csv"));
    parquet_file(&parquet, &[&rows[..70_000], &[], &rows[70_000..]]);
    std::fs::write(&csv, csv_file(&rows)).unwrap();
    for bad_rows in [BadRows::Stop, BadRows::Drop] {
        compare(&rows, parquet.clone(), "row", 1, bad_rows, None);
        compare(&rows, csv.clone(), "line", 2, bad_rows, None);
    }
}

/// A row longer than a batch, and a file with old line endings.
#[test]
fn odd_lines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(3 << 20);
    let path = write(folder.path(), "a.csv", &format!("a,note\n1,{long}\n2,\n3,{long}\n"));
    let shard = Shard::load(&data(path, BadRows::Stop), Some(&["a".to_owned()])).unwrap();
    assert!(shard.column("a") == Some(Column::Numbers(&[1.0, 2.0, 3.0])));
    let path = write(folder.path(), "b.csv", "a,b\r1,2\r\r3,4");
    let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
    assert!(shard.column("b") == Some(Column::Numbers(&[2.0, 4.0])));
}

/// The ledger stores fingerprints, so other versions of this program must compute the same. Computed with Python's `hmac`.
#[test]
fn fingerprints_never_change() {
    let folder = tempfile::tempdir().unwrap();
    let key: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
    let secret = Secret::load(&write(folder.path(), "secret", &key)).unwrap();
    let words = ["a", "bc", "é"];
    let lines: Vec<String> =
        (0..3000).map(|i| format!("{},{},p{}\n", f64::from(i) * 0.5 - 7.0, words[i as usize % 3], i / 2)).collect();
    let path = write(folder.path(), "a.csv", &format!("x,ward,who\n{}", lines.concat()));
    let config = config(path, BadRows::Stop, Some(2));
    let prints = Shard::load(&config, None).unwrap().fingerprints(&secret).unwrap();
    let hex = |bytes: &[u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let prints: BTreeMap<&str, String> = prints.iter().map(|(name, print)| (name.as_str(), hex(print))).collect();
    assert_eq!(prints["x"], "ca079e002c2984b0ec7b1b30642ba07324c54ee1f65b47d4b288a6c364812a32");
    assert_eq!(prints["ward"], "da7c38599c6f2a480ec96cc0ff417e555c8c970b93686150ebdb7cd55e7aaa18");
    assert_eq!(prints["(persons)"], "f3a76805182757618d059a6406aacd5351d2d6b6b0d874d0c7d18fb6cd9ee3d6");
}
