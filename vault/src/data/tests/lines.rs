//! Lines of CSV files: blank ones, and quotation marks that join them.
#![allow(clippy::unwrap_used)]
use std::io::Write;

use flate2::write::GzEncoder;

use crate::data::*;
use crate::testing::data;

fn load(bytes: &[u8], bad_rows: BadRows, format: Format, needed: &[&str]) -> Result<Shard, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, bytes).unwrap();
    let needed: Vec<String> = needed.iter().map(|name| (*name).to_owned()).collect();
    let config = DataConfig { format, ..data(path, bad_rows) };
    let plain = Shard::load(&config, Some(&needed));
    let packed = folder.path().join("a.csv.gz");
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    let unpacked = Shard::load(&DataConfig { path: packed, ..config }, Some(&needed));
    match (&plain, &unpacked) {
        (Ok(plain), Ok(unpacked)) => assert_eq!((plain.records(), plain.inert()), (unpacked.records(), unpacked.inert())),
        (Err(plain), Err(unpacked)) => {
            assert_eq!(plain.to_string().replace("a.csv:", "a.csv.gz:").replace("a.csv,", "a.csv.gz,"), unpacked.to_string())
        }
        other => panic!("{other:?}"),
    }
    plain
}

fn values(shard: &Shard, name: &str) -> Vec<Option<f64>> {
    let column = shard.column(name).unwrap();
    column.values().iter().map(|value| (!value.is_nan()).then_some(*value)).collect()
}

/// The number of a file's rows is public where they are protected against replacement. So it is the same whichever values are missing.
#[test]
fn a_blank_line_of_a_file_of_one_column_is_a_row() {
    let read = |text: &str, bad_rows| load(text.as_bytes(), bad_rows, Format::default(), &["y"]);
    let expected = [Some(1.0), None, Some(0.0), None, Some(1.0)];
    for text in [
        "y\n1\n\n0\n\n1\n",
        "y\n1\n\n0\n\n1",
        "y\r\n1\r\n\r\n0\r\n\r\n1\r\n",
        "y\r1\r\r0\r\r1",
        "\u{feff}y\n1\n\n0\n\n1\n",
        "\n\r\n\"y\"\n1\n\n\"0\"\n \n1\n",
        "y\n1\n\"\"\n0\n\n1\n",
    ] {
        let shard = read(text, BadRows::Drop).unwrap();
        assert_eq!((values(&shard, "y"), shard.inert()), (expected.to_vec(), 2), "{text:?}");
        assert!(read(text, BadRows::Stop).is_err(), "{text:?}");
    }
    let said = read("y\n1\n\n0\n", BadRows::Stop).unwrap_err().to_string();
    assert!(said.contains("line 3, column \"y\": the value is missing"), "{said}");
    // The last value, too.
    assert_eq!(values(&read("y\n1\n\n", BadRows::Drop).unwrap(), "y"), [Some(1.0), None]);
    let unquoted = Format { quotes: false, ..Format::default() };
    assert_eq!(values(&load(b"y\n1\n\n0\n", BadRows::Drop, unquoted, &["y"]).unwrap(), "y"), [Some(1.0), None, Some(0.0)]);
    // Longer than the reader's buffer, and whatever stands at its end.
    for blanks in [1 << 19, (1 << 19) - 1, (1 << 20) + 1] {
        let shard = read(&format!("y\n{}5\n", "\n".repeat(blanks)), BadRows::Drop).unwrap();
        assert_eq!((shard.records(), shard.inert()), (blanks as u64 + 1, blanks as u64));
    }
    // Beside other columns a missing value has a delimiter, and a blank line is no row.
    let shard = load(b"y,x\n1,2\n\n3,\n\n", BadRows::Drop, Format::default(), &["y"]).unwrap();
    assert_eq!(values(&shard, "y"), [Some(1.0), Some(3.0)]);
}

#[test]
fn a_quotation_mark_that_nothing_closes_stops_the_start() {
    let read = |text: &str, bad_rows| load(text.as_bytes(), bad_rows, Format::default(), &["y"]);
    let rows = |from: usize, to: usize| (from..to).map(|at| format!("{},fine\n", at % 2)).collect::<String>();
    for (text, place) in [
        // The note stands last, and no job needs it.
        (format!("y,note\n{}1,\"open\n{}", rows(1, 10), rows(11, 5000)), "line 11:"),
        (format!("y,note\n{}1,\"open", rows(1, 2050)), "line 2051:"),
        (format!("y,note\n{}1,\"", rows(1, 2048)), "line 2049:"),
        ("y,note\n\"1\n\",\"a \"\"quoted\"\" word\n0,fine\n".into(), "line 3:"),
        ("y,note\n0,\"ends in a doubled mark\"\"\n".into(), "line 2:"),
        ("y\n1\n\"0\n1\n".into(), "line 3:"),
        ("y,\"note\n1,2\n".into(), "its header:"),
        ("\"y".into(), "its header:"),
        (format!("y,note\r\n{}1,\"open\r\n{}", rows(1, 10).replace('\n', "\r\n"), rows(1, 10).replace('\n', "\r\n")), "line 11:"),
    ] {
        for bad_rows in [BadRows::Stop, BadRows::Drop] {
            let said = read(&text, bad_rows).unwrap_err().to_string();
            assert!(said.contains(&format!("a.csv: {place} a quotation mark is opened here")), "{said}");
            assert!(said.contains("quotes = false"), "{said}");
        }
    }
    // Marks that are closed, or that stand within a field, join no lines.
    for text in ["y,note\n1,\"a\n\nb\"\n0,\"\"\n", "y,note\n1,5\" pipe\n0,\"\"\"a\"\"\"", "y,\"no\nte\"\n1,\"2\"\n0,3\n"] {
        assert_eq!(read(text, BadRows::Stop).unwrap().records(), 2, "{text:?}");
    }
    // The line that the reader gets behind the file is a row of a file as any other.
    let shard = read("y,note\n1,2\n\u{1}end of file\u{1}\n0,3\n", BadRows::Drop).unwrap();
    assert_eq!(values(&shard, "y"), [Some(1.0), None, Some(0.0)]);
    assert!(matches!(
        read("\u{1}end of file\u{1}", BadRows::Drop),
        Err(DataError::Empty { .. } | DataError::UnknownColumn { .. } | DataError::Unreadable { .. })
    ));
}

#[test]
fn files_without_quotation_are_read_as_they_are() {
    let text = "y\tnote\n1\t\"ward\n0\tb\n1\tc\"d\n0\t\"e\"\n";
    let format = |quotes| Format { delimiter: b'\t', quotes, ..Format::default() };
    // Two fields that begin with a mark join what stands between them.
    assert_eq!(load(text.as_bytes(), BadRows::Stop, format(true), &["y"]).unwrap().records(), 2);
    let shard = load(text.as_bytes(), BadRows::Stop, format(false), &["y"]).unwrap();
    assert_eq!(values(&shard, "y"), [Some(1.0), Some(0.0), Some(1.0), Some(0.0)]);
}

#[test]
fn a_field_of_more_than_a_hundred_lines_is_noted() {
    let text = |lines: usize| format!("y,note\n1,fine\n0,\"{}x\"\n1,fine\n", "0,fine\n".repeat(lines - 1));
    let noted = |text: String| load(text.as_bytes(), BadRows::Stop, Format::default(), &["y"]).unwrap().long_field();
    assert_eq!([noted(text(100)), noted(text(101))], [None, Some(3)]);
    assert_eq!(noted(text(101).replace('\n', "\r\n")), Some(3));
    // A long row of short lines is none.
    assert_eq!(noted(format!("y,note\n1,{}\n", "x".repeat(5000))), None);
}

#[test]
fn a_bad_value_is_named_by_its_line_whatever_ends_lines() {
    for end in ["\n", "\r\n"] {
        let text = "y,note\n1,\"a\nb\"\nx,c\n".replace('\n', end);
        let said = load(text.as_bytes(), BadRows::Stop, Format::default(), &["y"]).unwrap_err().to_string();
        assert!(said.contains("line 4, column \"y\""), "{end:?}: {said}");
    }
}

#[test]
fn files_of_spreadsheets_are_read_or_refused_with_the_remedy() {
    // Emptied columns have neither a name nor a value.
    let emptied = load(b"y,,\n1,,\n0,,\n", BadRows::Stop, Format::default(), &["y"]).unwrap();
    assert_eq!(emptied.records(), 2);
    let folder = tempfile::tempdir().unwrap();
    let path = crate::testing::write(folder.path(), "a.csv", "y,,\n1,,\n0,,\n");
    assert_eq!(Shard::load(&data(path, BadRows::Stop), None).unwrap().names(), ["y"]);
    // The one column without a name is that of row numbers, which is read as before.
    let path = crate::testing::write(folder.path(), "b.csv", ",y\n1,0\n2,1\n");
    assert_eq!(Shard::load(&data(path, BadRows::Stop), None).unwrap().names(), ["", "y"]);
    let semicolons = Format { delimiter: b';', ..Format::default() };
    let said = load(b"sep=;\ny;x\n1;2\n", BadRows::Stop, semicolons, &["y"]).unwrap_err().to_string();
    assert!(said.contains("remove its first line, sep="), "{said}");
    let said = load("y,e\u{301}\n1,2\n".as_bytes(), BadRows::Stop, Format::default(), &["\u{e9}"]).unwrap_err().to_string();
    assert!(said.contains("did you mean \"e\\u{301}\""), "{said}");
}
