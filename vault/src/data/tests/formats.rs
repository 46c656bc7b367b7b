//! Files as written by spreadsheets, registries and warehouses, and format settings that change the data read from a file.
#![allow(clippy::unwrap_used)]
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type, Int96, Int96Type,
};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::row_by_row::{csv_file, rows};
use crate::data::*;
use crate::ledger::Secret;
use crate::testing::{data, write};

fn numbers(shard: &Shard, column: &str) -> Vec<f64> {
    match shard.column(column) {
        Some(Column::Numbers(values)) => values.to_vec(),
        other => panic!("{column}: {other:?}"),
    }
}

fn format(dates: &[(&str, &str)], missing: &[&str]) -> Format {
    let dates = dates.iter().map(|(name, scale)| ((*name).to_owned(), DateScale::parse(scale).unwrap())).collect();
    Format { dates, missing: missing.iter().map(|text| (*text).to_owned()).collect(), ..Format::default() }
}

fn load(path: &Path, bad_rows: BadRows, format: Format) -> Result<Shard, DataError> {
    Shard::load(&DataConfig { format, ..data(path.to_owned(), bad_rows) }, None)
}

fn gz(folder: &Path, name: &str, members: &[&[u8]]) -> PathBuf {
    let path = folder.join(name);
    let mut file = File::create(&path).unwrap();
    for member in members {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(member).unwrap();
        file.write_all(&packed.finish().unwrap()).unwrap();
    }
    path
}

#[test]
fn semicolons_tabs_and_decimal_commas_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let comma = |delimiter| Format { delimiter, decimal: b',', ..Format::default() };
    let path = write(folder.path(), "a.csv", "age;bmi\n30;22,5\n40;-1\n");
    let shard = load(&path, BadRows::Stop, comma(b';')).unwrap();
    assert_eq!((numbers(&shard, "age"), numbers(&shard, "bmi")), (vec![30.0, 40.0], vec![22.5, -1.0]));
    let path = write(folder.path(), "b.csv", "age\tbmi\n30\t22,5\n");
    assert_eq!(numbers(&load(&path, BadRows::Stop, comma(b'\t')).unwrap(), "bmi"), [22.5]);
    // A thousands separator is not accepted in a number, since it could be taken for a decimal point.
    let path = write(folder.path(), "c.csv", "bmi\n1.234\n");
    let said = load(&path, BadRows::Stop, comma(b';')).unwrap_err().to_string();
    assert!(said.contains("line 2") && said.contains("is not a number"), "{said}");
    let path = write(folder.path(), "d.csv", "age;bmi\n30;22\n");
    let said = Shard::load(&data(path, BadRows::Stop), Some(&["age".to_owned()])).unwrap_err().to_string();
    assert!(said.contains("write delimiter = \";\""), "{said}");
}

#[test]
fn texts_that_the_owner_declares_as_missing_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let text = "age,ward,who\n30,a,p1\n-99,b,p1\n40,NA,p2\n50,c,NA\n60,d,-99\n-99.0,e,p5\n";
    let path = write(folder.path(), "a.csv", text);
    let person = PrivacyUnit::person(Adjacency::Replace, 5).unwrap();
    let load = |missing: &[&str], bad_rows, unit: Option<PrivacyUnit>| {
        let config = DataConfig {
            format: format(&[], missing),
            text: vec!["ward".into()],
            person: unit.map(|_| "who".into()),
            unit: unit.unwrap_or_default(),
            ..data(path.clone(), bad_rows)
        };
        Shard::load(&config, Some(&["age".to_owned(), "ward".to_owned()]))
    };
    let said = load(&["NA", "-99"], BadRows::Stop, None).unwrap_err().to_string();
    assert!(said.contains("line 3, column \"age\": the value is missing"), "{said}");
    let shard = load(&["NA", "-99"], BadRows::Drop, None).unwrap();
    let age: Vec<f64> = numbers(&shard, "age");
    assert_eq!((age.len(), shard.inert()), (6, 3));
    assert_eq!([age[0], age[3], age[4]], [30.0, 50.0, 60.0]);
    assert!([1, 2, 5].iter().all(|row| age[*row].is_nan()), "{age:?}");
    // "-99" is a person's name unless it is declared as missing. Rows without a name are each a person of their own.
    let with = load(&["NA", "-99"], BadRows::Drop, Some(person)).unwrap();
    assert_eq!((with.units(), load(&["NA"], BadRows::Drop, Some(person)).unwrap().units()), (5, 5));
    let nobody = load(&["NA", "-99", "p1", "p2", "p5"], BadRows::Drop, Some(person));
    assert!(matches!(nobody, Err(DataError::Empty { .. })));
}

#[test]
fn dates_of_a_csv_file_are_read_in_the_declared_unit() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", "when,x\n2020-01-31,1\n\"2020-02-01T12:00:00Z\",2\n");
    let since = format(&[("when", "days since 2020-01-01")], &[]);
    assert_eq!(numbers(&load(&path, BadRows::Stop, since.clone()).unwrap(), "when"), [30.0, 31.5]);
    let said = load(&path, BadRows::Stop, Format::default()).unwrap_err().to_string();
    assert!(said.contains("is not a number") && said.contains("`dates`"), "{said}");
    let path = write(folder.path(), "b.csv", "when\n31.01.2020\n");
    let said = load(&path, BadRows::Stop, since).unwrap_err().to_string();
    assert!(said.contains("is not a date"), "{said}");
    let said = load(&path, BadRows::Stop, format(&[("wehn", "days")], &[])).unwrap_err().to_string();
    assert!(said.contains("did you mean \"when\""), "{said}");
}

#[test]
fn a_damaged_gzip_file_is_an_error_and_a_bomb_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(gz(folder.path(), "a.csv.gz", &[b"a,b\n1,2\n3,4\n"])).unwrap();
    let path = folder.path().join("b.csv.gz");
    for length in [0, 5, whole.len() - 9] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let said = load(&path, BadRows::Stop, Format::default()).unwrap_err().to_string();
        assert!(said.contains("b.csv.gz"), "{said}");
    }
    let bomb = gz(folder.path(), "c.csv.gz", &[b"a,b\n\"", &vec![b'0'; 64 << 20]]);
    let said = load(&bomb, BadRows::Stop, Format::default()).unwrap_err().to_string();
    assert!(said.contains("longer than 16 MiB"), "{said}");
}

/// Writes decimals of both kinds of byte array and dates of all types, packed as by older programs.
fn parquet_file(folder: &Path) -> PathBuf {
    let schema = "message m {
        optional fixed_len_byte_array(9) wide (DECIMAL(20,3)); required binary long (DECIMAL(40,2)); required int32 day (DATE);
        required int64 milli (TIMESTAMP(MILLIS,true)); required int64 micro (TIMESTAMP_MICROS); required int96 old;
        required binary said (UTF8); required int32 plain; }";
    let path = folder.join("a.parquet");
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::GZIP(Default::default())).build());
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! column {
        ($kind:ty, $values:expr, $levels:expr) => {{
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<$kind>().write_batch($values, $levels, None).unwrap();
            column.close().unwrap();
        }};
    }
    let wide = |value: i128| FixedLenByteArray::from(value.to_be_bytes()[7..].to_vec());
    column!(FixedLenByteArrayType, &[wide(-1500), wide(12_345_678_901_234_567_891)], Some(&[1, 0, 1]));
    let long = |digits: &str| ByteArray::from(digits.parse::<num_bigint::BigInt>().unwrap().to_signed_bytes_be());
    column!(ByteArrayType, &[long("-99"), long("125"), long("1234567890123456789012345678901234567890")], None);
    column!(Int32Type, &[0, -1, 18_262], None);
    column!(Int64Type, &[0, 3_600_000, 1_577_836_800_000], None);
    column!(Int64Type, &[0, 3_600_000_000, 1_577_836_800_000_000], None);
    let old = |day: u32, nanoseconds: u64| {
        let mut value = Int96::new();
        value.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, day);
        value
    };
    column!(Int96Type, &[old(2_440_588, 0), old(2_440_588, 3_600_000_000_000), old(2_458_850, 0)], None);
    column!(ByteArrayType, &["1970-01-01".into(), "1970-01-01T01:00".into(), "2020-01-01".into()], None);
    column!(Int32Type, &[1, 2, -99], None);
    group.close().unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn parquet_decimals_and_dates_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = parquet_file(folder.path());
    let hours = ["day", "milli", "micro", "old", "said"].map(|name| (name, "hours"));
    let needed = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let load = |format: Format, memory, names: &[&str]| {
        let config = DataConfig { format, memory, ..data(path.clone(), BadRows::Drop) };
        Shard::load(&config, needed(names).as_deref())
    };
    let shard = load(format(&hours, &[]), Memory::Copies, &["wide", "long"]).unwrap();
    assert_eq!(shard.inert(), 1);
    assert_eq!([numbers(&shard, "wide")[0], numbers(&shard, "wide")[2]], [-1.5, 12_345_678_901_234_567.891]);
    assert_eq!(
        [numbers(&shard, "long")[0], numbers(&shard, "long")[2]],
        [-0.99, 12_345_678_901_234_567_890_123_456_789_012_345_678.90]
    );
    let shard = load(format(&hours, &[]), Memory::Copies, &["day", "milli", "micro", "old", "said"]).unwrap();
    assert_eq!(numbers(&shard, "day"), [0.0, -24.0, 18_262.0 * 24.0]);
    for name in ["milli", "micro", "old", "said"] {
        assert_eq!(numbers(&shard, name), [0.0, 1.0, 18_262.0 * 24.0], "{name}");
    }
    assert!(shard.undeclared_dates().is_empty());
    // As they were read before dates were supported, and the note about it.
    let shard = load(Format::default(), Memory::Copies, &["day", "milli"]).unwrap();
    assert_eq!(
        (numbers(&shard, "day"), shard.undeclared_dates()),
        (vec![0.0, -1.0, 18_262.0], &["day".to_owned(), "milli".to_owned()][..])
    );
    for (dates, names, said) in [
        (&[("plain", "days")][..], &["plain"][..], "holds numbers"),
        (&[("wide", "days")], &["wide"], "holds numbers"),
        (&[], &["old"], "holds times"),
    ] {
        let e = load(format(dates, &[]), Memory::Copies, names).unwrap_err().to_string();
        assert!(e.contains(said), "{e}");
    }
    for missing in [&["-99"][..], &["-99", "-0.99"]] {
        let columns = ["plain", "long"];
        let (copies, stream) =
            (load(format(&[], missing), Memory::Copies, &columns), load(format(&[], missing), Memory::Stream, &columns));
        let (copies, stream) = (copies.unwrap(), stream.unwrap());
        assert_eq!((copies.inert(), stream.inert()), (missing.len() as u64, missing.len() as u64));
        for name in columns {
            let mut read = Vec::new();
            stream.look(name, |values| read.extend_from_slice(values)).unwrap();
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&numbers(&copies, name)), bits(&read), "{name}");
        }
    }
}

/// The fingerprint is of the values read: a setting that changes values changes the data, and another compression does not.
#[test]
fn settings_that_change_the_values_read_change_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let secret = Secret::load(&write(folder.path(), "secret", &"ab".repeat(32))).unwrap();
    let prints = |shard: Result<Shard, DataError>| shard.unwrap().fingerprints(&secret).unwrap();
    let text = "when;x;y\n2020-01-01;1,5;2\n2020-01-02;-99;3\n";
    let plain = write(folder.path(), "a.csv", text);
    let own = |scale: &str, missing: &[&str]| Format { delimiter: b';', decimal: b',', ..format(&[("when", scale)], missing) };
    let first = prints(load(&plain, BadRows::Drop, own("days", &[])));
    let packed = gz(folder.path(), "a.csv.gz", &[&text.as_bytes()[..13], &text.as_bytes()[13..]]);
    assert_eq!(prints(load(&packed, BadRows::Drop, own("days", &[]))), first, "packed or not");
    let points = write(folder.path(), "b.csv", &text.replace(',', ".").replace(';', ","));
    let otherwise = Format { ..format(&[("when", "days")], &["999"]) };
    assert_eq!(prints(load(&points, BadRows::Drop, otherwise)), first, "with points, and a word for missing that is not met");
    let changed = |format: Format| {
        let found = prints(load(&plain, BadRows::Drop, format));
        first.iter().filter(|(name, print)| found[*name] != **print).map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(changed(own("hours", &[])), ["when"]);
    assert_eq!(changed(own("days since 2020-01-01", &[])), ["when"]);
    // An unusable row adds nothing in any column.
    assert_eq!(changed(own("days", &["-99"])), ["when", "x", "y"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn a_packed_file_is_the_file(rows in rows(), cut in 0.0..1.0) {
        let folder = tempfile::tempdir().unwrap();
        let text = csv_file(&rows);
        let (first, second) = text.split_at((cut * text.len() as f64) as usize);
        let packed = gz(folder.path(), "a.csv.gz", &[first, second]);
        let plain = folder.path().join("a.csv");
        std::fs::write(&plain, &text).unwrap();
        let load = |path: PathBuf| {
            let config = DataConfig { text: vec!["ward".into()], ..data(path, BadRows::Drop) };
            Shard::load(&config, Some(&["a".to_owned(), "ward".to_owned(), "n".to_owned()]))
        };
        match (load(packed), load(plain)) {
            (Ok(packed), Ok(plain)) => {
                let bits = |shard: &Shard, name: &str| shard.column(name).unwrap().values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                for name in ["a", "ward", "n"] {
                    prop_assert_eq!(bits(&packed, name), bits(&plain, name));
                }
                prop_assert_eq!(packed.inert(), plain.inert());
            }
            (Err(DataError::Empty { .. }), Err(DataError::Empty { .. })) => {}
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
