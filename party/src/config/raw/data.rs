//! The table `[data]`: the file of records and the unit of privacy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conclave_common::settings;
use conclave_common::settings::{Fault, Value, one_of, within};
use conclave_privacy::accounting::{Adjacency, MAX_RECORDS_PER_PERSON, PrivacyUnit};

use conclave_vault::data::{BadRows, DataConfig, DateScale, Format, Memory, Precision};

settings! {
    pub(super) struct Data {
        path: String,
        bad_rows: BadRows = BadRows::Stop => one_of(&[("stop", BadRows::Stop), ("drop", BadRows::Drop)]),
        text: Vec<String>,
        delimiter: Option<u8> => separator(b",;\t|", r#"one of ",", ";", "\t" (a tab), "|""#),
        quotes: Option<bool>,
        decimal: Option<u8> => separator(b".,", r#""." or ",""#),
        missing: Vec<String>,
        dates: BTreeMap<String, String>,
        adjacency: Adjacency = Adjacency::Replace =>
            one_of(&[("replace", Adjacency::Replace), ("add-remove", Adjacency::AddRemove)]),
        person: Option<String>,
        max_records_per_person: Option<u32> => within(1..=MAX_RECORDS_PER_PERSON),
        memory: Memory = Memory::Copies =>
            one_of(&[("copies", Memory::Copies), ("lean", Memory::Lean), ("stream", Memory::Stream)]),
        snapshot: Option<String>,
        precision: Precision = Precision::Double => one_of(&[("f64", Precision::Double), ("f32", Precision::Single)]),
    }
}

/// Reads one of these characters.
fn separator(known: &'static [u8], named: &'static str) -> impl Fn(&Value) -> Result<u8, Fault> {
    move |value| match value.as_str().map(str::as_bytes) {
        Some([sign]) if known.contains(sign) => Ok(*sign),
        _ => Err(Fault::of(format!("is {value}: it must be {named}"))),
    }
}

impl Data {
    /// Checks the table of a configuration in `folder`. The snapshot is in the ledger's folder unless the table names another.
    pub(super) fn check(self, folder: &Path, ledger_folder: PathBuf) -> Result<DataConfig, String> {
        let unit = match (&self.person, self.max_records_per_person) {
            (None, None) => Some(PrivacyUnit::row(self.adjacency)),
            (Some(_), Some(limit)) => PrivacyUnit::person(self.adjacency, limit),
            (Some(_), None) => {
                return Err("`data.person` needs `data.max_records_per_person`: the maximum number of rows used per person; \
                            every charge grows with its square"
                    .into());
            }
            (None, Some(_)) => None,
        };
        let unit = unit.ok_or("`data.max_records_per_person` needs `data.person`: the column that identifies persons")?;
        let is_parquet = self.path.to_ascii_lowercase().ends_with(".parquet");
        if self.snapshot.is_some() && self.memory != Memory::Stream {
            return Err("`data.snapshot` is the folder of a streamed shard: write memory = \"stream\", or remove it".into());
        }
        let format = self.format(is_parquet)?;
        Ok(DataConfig {
            path: folder.join(self.path),
            format,
            bad_rows: self.bad_rows,
            text: self.text,
            person: self.person,
            unit,
            memory: self.memory,
            snapshot: self.snapshot.map_or(ledger_folder, |path| folder.join(path)),
        })
    }

    fn format(&self, is_parquet: bool) -> Result<Format, String> {
        let of_csv =
            [("delimiter", self.delimiter.is_some()), ("quotes", self.quotes.is_some()), ("decimal", self.decimal.is_some())];
        for (key, set) in of_csv {
            if set && is_parquet {
                return Err(format!("`data.{key}` describes a CSV file: a Parquet file needs none, remove it"));
            }
        }
        if self.missing.iter().any(|text| text.trim().is_empty()) {
            return Err("`data.missing` contains an empty text: an empty value is missing in any case".into());
        }
        let mut dates = BTreeMap::new();
        for (column, unit) in &self.dates {
            if self.text.contains(column) || self.person.as_ref() == Some(column) {
                return Err(format!(
                    "`data.dates` names {column:?}, which `data.text` or `data.person` uses for another purpose"
                ));
            }
            let scale = DateScale::parse(unit).map_err(|must| format!("`data.dates.{column}` is {unit:?}: {must}"))?;
            dates.insert(column.clone(), scale);
        }
        let (delimiter, decimal) = (self.delimiter.unwrap_or(b','), self.decimal.unwrap_or(b'.'));
        Ok(Format { delimiter, quotes: self.quotes.unwrap_or(true), decimal, missing: self.missing.clone(), dates })
    }
}
