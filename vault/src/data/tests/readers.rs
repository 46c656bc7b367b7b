//! The same table by every reader is the same data: one fingerprint, whichever file holds it.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96, Int96Type,
};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use flate2::write::GzEncoder;
use num_bigint::BigInt;
use proptest::prelude::*;
use time::OffsetDateTime;

use crate::data::*;
use crate::ledger::Secret;
use crate::testing::{data, write};

/// Marks a missing value of a generated column: the number itself, or the date or text that stands for it.
const MARK: i64 = -99;
const MARKS: [&str; 3] = ["-99", "1999-12-31", "NA"];
const DAY: i128 = 86_400_000_000_000;

/// A type of column: its declaration in Parquet, its text in CSV, and its values in Parquet.
struct Type {
    name: &'static str,
    declared: &'static str,
    text: fn(i64) -> String,
    write: fn(&mut SerializedRowGroupWriter<'_, File>, &[Option<i64>]),
}

macro_rules! column {
    ($name:literal, $declared:literal, $kind:ty, $value:expr, $text:expr) => {
        Type {
            name: $name,
            declared: $declared,
            text: $text,
            write: |group, values| {
                let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                let convert: fn(i64) -> <$kind as DataType>::T = $value;
                let values: Vec<_> = values.iter().flatten().map(|value| convert(*value)).collect();
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<$kind>().write_batch(&values, Some(&levels), None).unwrap();
                column.close().unwrap();
            },
        }
    };
}

/// Writes a whole number of `10^-places` as a person would.
fn decimal(whole: impl Into<BigInt>, places: usize) -> String {
    let whole: BigInt = whole.into();
    let digits = format!("{:0>1$}", whole.magnitude().to_string(), places + 1);
    let (units, rest) = digits.split_at(digits.len() - places);
    format!("{}{units}.{rest}", if whole < BigInt::ZERO { "-" } else { "" })
}

/// The mark among decimals, or some number.
fn cents(v: i64, places: u32, digits: u32) -> i128 {
    if v == MARK { i128::from(MARK) * 10_i128.pow(places) } else { i128::from(v) * i128::from(v).abs() % 10_i128.pow(digits) }
}

fn day(v: i64) -> i64 {
    if v == MARK { 10_956 } else { v.rem_euclid(100_000) - 30_000 }
}

/// Returns a time, rounded down to a step in nanoseconds.
fn nanoseconds(v: i64, step: i64) -> i64 {
    if v == MARK { (10_956 * DAY) as i64 } else { (v / 4).div_euclid(step) * step }
}

fn time(nanoseconds: i128) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).unwrap();
    let (hour, minute, second, fraction) = time.time().as_hms_nano();
    // The same time by another clock, and no offset for UTC.
    if nanoseconds % 2 == 0 {
        return format!("{}T{hour:02}:{minute:02}:{second:02}.{fraction:09}", time.date());
    }
    let east = time.to_offset(time::UtcOffset::from_hms(5, 30, 0).unwrap());
    format!("{} {:02}:{:02}:{:02},{fraction:09}+05:30", east.date(), east.hour(), east.minute(), east.second())
}

fn date(day: i64) -> String {
    OffsetDateTime::from_unix_timestamp(day * 86_400).unwrap().date().to_string()
}

fn word(v: i64) -> &'static str {
    const WORDS: [&str; 9] = ["a", "é", "e\u{301}", "01", "1", "345.10", "345.1", "x y", "1E5"];
    if v == MARK { "NA" } else { WORDS[v.rem_euclid(9) as usize] }
}

/// Puts blanks around a text, ASCII's and others.
fn padded(text: &str, v: i64) -> String {
    let blanks = ["", " ", "\u{a0}", "\t", "\u{2003} ", "\u{b}", "\u{3000}"];
    let blank = |seed: i64| blanks[seed.rem_euclid(7) as usize];
    format!("{}{text}{}", blank(v / 9), blank(v / 63))
}

fn id(v: i64) -> String {
    if v == MARK { "-99".into() } else { v.rem_euclid(40).to_string() }
}

fn bytes(text: String) -> ByteArray {
    text.as_str().into()
}

fn wide(value: i128) -> FixedLenByteArray {
    value.to_be_bytes()[7..].to_vec().into()
}

fn types() -> Vec<Type> {
    vec![
        column!("flag", "boolean", BoolType, |v: i64| v % 2 == 0, |v| u8::from(v % 2 == 0).to_string()),
        column!("i8", "int32 (INT_8)", Int32Type, |v: i64| i32::from(v as i8), |v| (v as i8).to_string()),
        column!("i16", "int32 (INT_16)", Int32Type, |v: i64| i32::from(v as i16), |v| (v as i16).to_string()),
        column!("i32", "int32", Int32Type, |v: i64| v as i32, |v| format!("{:+}", v as i32)),
        column!("i64", "int64", Int64Type, |v: i64| v, |v| v.to_string()),
        column!("u8", "int32 (UINT_8)", Int32Type, |v: i64| i32::from(v as u8), |v| format!("{}.0", v as u8)),
        column!("u16", "int32 (UINT_16)", Int32Type, |v: i64| i32::from(v as u16), |v| format!("0{}", v as u16)),
        column!("u32", "int32 (UINT_32)", Int32Type, |v: i64| v as i32, |v| (v as u32).to_string()),
        column!("u64", "int64 (UINT_64)", Int64Type, |v: i64| v, |v| (v as u64).to_string()),
        column!("f32", "float", FloatType, |v: i64| v as f32, |v| format!("{}", f64::from(v as f32))),
        column!("f64", "double", DoubleType, |v: i64| v as f64 / if v == MARK { 1.0 } else { 7.0 }, |v| format!(
            "{:e}",
            v as f64 / if v == MARK { 1.0 } else { 7.0 }
        )),
        column!("d9", "int32 (DECIMAL(9,2))", Int32Type, |v| cents(v, 2, 9) as i32, |v| decimal(cents(v, 2, 9), 2)),
        column!("d18", "int64 (DECIMAL(18,4))", Int64Type, |v| cents(v, 4, 18) as i64, |v| decimal(cents(v, 4, 18), 4)),
        column!("d20", "fixed_len_byte_array(9) (DECIMAL(20,3))", FixedLenByteArrayType, |v| wide(cents(v, 3, 20)), |v| decimal(
            cents(v, 3, 20),
            3
        )),
        column!(
            "d38",
            "binary (DECIMAL(38,10))",
            ByteArrayType,
            |v| ByteArray::from(BigInt::from(cents(v, 10, 38)).to_signed_bytes_be()),
            |v| decimal(cents(v, 10, 38), 10)
        ),
        column!("day", "int32 (DATE)", Int32Type, |v| day(v) as i32, |v| date(day(v))),
        column!("ms", "int64 (TIMESTAMP_MILLIS)", Int64Type, |v| nanoseconds(v, 1_000_000) / 1_000_000, |v| time(
            nanoseconds(v, 1_000_000).into()
        )),
        column!("ms2", "int64 (TIMESTAMP(MILLIS,false))", Int64Type, |v| nanoseconds(v, 1_000_000) / 1_000_000, |v| time(
            nanoseconds(v, 1_000_000).into()
        )),
        column!("us", "int64 (TIMESTAMP_MICROS)", Int64Type, |v| nanoseconds(v, 1000) / 1000, |v| time(
            nanoseconds(v, 1000).into()
        )),
        column!("us2", "int64 (TIMESTAMP(MICROS,true))", Int64Type, |v| nanoseconds(v, 1000) / 1000, |v| time(
            nanoseconds(v, 1000).into()
        )),
        column!("ns", "int64 (TIMESTAMP(NANOS,true))", Int64Type, |v| nanoseconds(v, 1), |v| time(nanoseconds(v, 1).into())),
        column!(
            "old",
            "int96",
            Int96Type,
            |v| {
                let (at, mut value) = (i128::from(nanoseconds(v, 1)), Int96::new());
                let (day, rest) = (at.div_euclid(DAY), at.rem_euclid(DAY) as u64);
                value.set_data(rest as u32, (rest >> 32) as u32, (day + 2_440_588) as u32);
                value
            },
            |v| time(nanoseconds(v, 1).into())
        ),
        column!("said", "binary (UTF8)", ByteArrayType, |v| bytes(padded(&date(day(v)), v)), |v| padded(
            &time(i128::from(day(v)) * DAY),
            v / 2
        )),
        column!("word", "binary (UTF8)", ByteArrayType, |v| bytes(padded(word(v), v)), |v| padded(word(v), v / 3)),
        column!("plain", "binary", ByteArrayType, |v| bytes(padded(word(v), v / 5)), |v| padded(word(v), v)),
        column!("kind", "binary (ENUM)", ByteArrayType, |v| bytes(word(v).into()), |v| padded(word(v), v)),
        column!("who", "binary (UTF8)", ByteArrayType, |v| bytes(padded(&id(v), v)), |v| padded(&id(v), v / 2)),
        column!("id", "int64", Int64Type, |v| id(v).parse().unwrap(), |v| padded(&id(v), v)),
        column!("id32", "int32 (INT_32)", Int32Type, |v| id(v).parse().unwrap(), id),
        column!("wide", "fixed_len_byte_array(9) (DECIMAL(20,0))", FixedLenByteArrayType, |v| wide(id(v).parse().unwrap()), id),
        column!(
            "long",
            "binary (DECIMAL(38,0))",
            ByteArrayType,
            |v| ByteArray::from(id(v).parse::<BigInt>().unwrap().to_signed_bytes_be()),
            id
        ),
    ]
}

/// The columns that name persons, one at a time.
const PERSONS: [&str; 5] = ["who", "id", "id32", "wide", "long"];

/// A table: for each column its values, some missing.
type Table = Vec<Vec<Option<i64>>>;

fn csv_file(types: &[Type], table: &Table) -> String {
    let mut text = types.iter().map(|t| t.name).collect::<Vec<_>>().join(";") + "\n";
    for row in 0..table[0].len() {
        let cells: Vec<String> = types.iter().zip(table).map(|(t, column)| column[row].map_or(String::new(), t.text)).collect();
        text += &(cells.join(";") + "\n");
    }
    text
}

fn parquet_file(types: &[Type], table: &Table, path: &Path) {
    let named = |t: &Type| match t.declared.split_once(' ') {
        Some((physical, rest)) => format!("optional {physical} {} {rest};", t.name),
        None => format!("optional {} {};", t.declared, t.name),
    };
    let schema = format!("message m {{ {} }}", types.iter().map(named).collect::<Vec<_>>().join(" "));
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let half = table[0].len() / 2;
    for rows in [0..half, half..table[0].len()] {
        let mut group = writer.next_row_group().unwrap();
        types.iter().zip(table).for_each(|(t, column)| (t.write)(&mut group, &column[rows.clone()]));
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn config(path: PathBuf, person: Option<&str>, memory: Memory) -> DataConfig {
    let dates = ["day", "ms", "ms2", "us", "us2", "ns", "old", "said"];
    let scale = |at: usize| DateScale::parse(["days", "hours since 2000-01-01", "years since 1990-01-01"][at % 3]).unwrap();
    let dates: BTreeMap<String, DateScale> = dates.iter().enumerate().map(|(at, name)| ((*name).to_owned(), scale(at))).collect();
    let is_csv = !path.to_str().unwrap().ends_with(".parquet");
    let format = Format {
        delimiter: if is_csv { b';' } else { b',' },
        missing: MARKS.map(str::to_owned).to_vec(),
        dates,
        ..Format::default()
    };
    let unit = person.map_or(PrivacyUnit::default(), |_| PrivacyUnit::person(Adjacency::Replace, 2).unwrap());
    let text = if is_csv { ["word", "plain", "kind", "who"].map(str::to_owned).to_vec() } else { Vec::new() };
    DataConfig { format, text, person: person.map(str::to_owned), unit, memory, ..data(path, BadRows::Drop) }
}

fn table() -> impl Strategy<Value = Table> {
    let whole = prop_oneof![3 => any::<i64>(), 2 => -200_i64..200, 1 => Just(MARK)];
    let columns = types().len();
    (1_usize..12).prop_flat_map(move |rows| {
        let cell = prop::option::weighted(0.995, whole.clone());
        prop::collection::vec(prop::collection::vec(cell, rows), columns)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn the_same_table_has_one_fingerprint_by_every_reader(table in table()) {
        let (folder, types) = (tempfile::tempdir().unwrap(), types());
        let secret = Secret::load(&write(folder.path(), "secret", &"ab".repeat(32))).unwrap();
        let csv = csv_file(&types, &table);
        let (plain, packed, parquet) = (write(folder.path(), "a.csv", &csv), folder.path().join("a.csv.gz"), folder.path().join("a.parquet"));
        let mut gzip = GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
        gzip.write_all(csv.as_bytes()).unwrap();
        gzip.finish().unwrap();
        parquet_file(&types, &table, &parquet);
        // Each column by itself: a missing value takes its whole row out.
        let columns = types.iter().map(|t| (t.name, None));
        for (column, person) in columns.chain(PERSONS.map(|person| ("f64", Some(person)))) {
            let read = |path: &Path, memory| {
                let config = config(path.to_owned(), person, memory);
                let shard = Shard::load(&config, Some(&[column.to_owned()]));
                match shard {
                    Ok(shard) => Some((shard.records(), shard.units(), shard.inert(), shard.beyond_limit(), shard.fingerprints(&secret).unwrap())),
                    Err(DataError::Empty { .. }) => None,
                    Err(e) => panic!("{column}, {person:?}: {e}"),
                }
            };
            let first = read(&plain, Memory::Copies);
            prop_assert_eq!(&read(&packed, Memory::Copies), &first, "{} packed", column);
            for memory in [Memory::Copies, Memory::Lean, Memory::Stream] {
                for file in [&parquet, &plain] {
                    prop_assert_eq!(&read(file, memory), &first, "{} of {:?} in {:?}", column, person, memory);
                }
            }
        }
    }
}

/// Persons differ by their names without the blanks around them; a name of blanks is none, and a text is not a number.
#[test]
fn a_blank_makes_no_other_person() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["p1", "p1 ", "\u{a0}p1\u{2003}", "p2", "\tp2", "p3", " \u{a0}", "007", "7"];
    let csv = names.iter().map(|name| format!("{name},1\n")).collect::<String>();
    let csv = write(folder.path(), "a.csv", &format!("who,x\n{csv}"));
    let parquet = folder.path().join("a.parquet");
    let schema = Arc::new(parse_message_type("message m { required binary who (UTF8); required double x; }").unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(&parquet).unwrap(), schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&names.map(ByteArray::from), None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&names.map(|_| 1.0), None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    for path in [csv, parquet] {
        let unit = PrivacyUnit::person(Adjacency::Replace, 1).unwrap();
        let config = DataConfig { person: Some("who".into()), unit, ..data(path, BadRows::Drop) };
        let shard = Shard::load(&config, Some(&["x".to_owned()])).unwrap();
        // p1, p2, p3, one without a name, 007 and 7.
        assert_eq!((shard.units(), shard.beyond_limit(), shard.inert()), (6, 3, 1));
    }
}
