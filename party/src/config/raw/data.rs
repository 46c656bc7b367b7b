//! The table `[data]`: the file of records and the unit of privacy.

use std::collections::BTreeMap;
use std::path::Path;

use conclave_privacy::accounting::{Adjacency, MAX_RECORDS_PER_PERSON, PrivacyUnit};
use serde::Deserialize;

use super::unknown::unknown;
use conclave_vault::data::{BadRows, DataConfig, DateScale, Format, Memory, NOT_STREAMED, Precision};

#[derive(Deserialize)]
pub(super) struct Data {
    path: String,
    bad_rows: Option<String>,
    #[serde(default)]
    text: Vec<String>,
    delimiter: Option<String>,
    quotes: Option<bool>,
    decimal: Option<String>,
    #[serde(default)]
    missing: Vec<String>,
    #[serde(default)]
    dates: BTreeMap<String, String>,
    adjacency: Option<String>,
    person: Option<String>,
    max_records_per_person: Option<i64>,
    memory: Option<String>,
    precision: Option<String>,
}

impl Data {
    pub(super) fn precision(&self) -> Result<Precision, String> {
        match self.precision.as_deref() {
            None | Some("f64") => Ok(Precision::Double),
            Some("f32") => Ok(Precision::Single),
            Some(other) => Err(unknown("data.precision", other, &["f64", "f32"])),
        }
    }

    pub(super) fn check(self, folder: &Path) -> Result<DataConfig, String> {
        let adjacency = match self.adjacency.as_deref() {
            None | Some("replace") => Adjacency::Replace,
            Some("add-remove") => Adjacency::AddRemove,
            Some(other) => return Err(unknown("data.adjacency", other, &["replace", "add-remove"])),
        };
        let unit = match (&self.person, self.max_records_per_person) {
            (None, None) => PrivacyUnit::row(adjacency),
            (Some(_), Some(limit)) => {
                let unit = u32::try_from(limit).ok().and_then(|limit| PrivacyUnit::person(adjacency, limit));
                unit.ok_or_else(|| {
                    format!("`data.max_records_per_person` is {limit}: it must be from 1 to {MAX_RECORDS_PER_PERSON}")
                })?
            }
            (Some(_), None) => {
                return Err("`data.person` needs `data.max_records_per_person`: the maximum number of rows used per person; \
                            every charge grows with its square"
                    .into());
            }
            (None, Some(_)) => {
                return Err("`data.max_records_per_person` needs `data.person`: the column that identifies persons".into());
            }
        };
        let bad_rows = match self.bad_rows.as_deref() {
            None | Some("stop") => BadRows::Stop,
            Some("drop") => BadRows::Drop,
            Some(other) => return Err(unknown("data.bad_rows", other, &["stop", "drop"])),
        };
        let format = self.format()?;
        let memory = memory(self.memory.as_deref(), &self.path, self.person.is_some())?;
        Ok(DataConfig { path: folder.join(self.path), format, bad_rows, text: self.text, person: self.person, unit, memory })
    }
}

impl Data {
    fn format(&self) -> Result<Format, String> {
        let is_parquet = self.path.to_ascii_lowercase().ends_with(".parquet");
        let of_csv =
            [("delimiter", self.delimiter.is_some()), ("quotes", self.quotes.is_some()), ("decimal", self.decimal.is_some())];
        for (key, set) in of_csv {
            if set && is_parquet {
                return Err(format!("`data.{key}` describes a CSV file: a Parquet file needs none, remove it"));
            }
        }
        let delimiter = match self.delimiter.as_deref().unwrap_or(",") {
            "," => b',',
            ";" => b';',
            "\t" => b'\t',
            "|" => b'|',
            other => {
                return Err(format!("`data.delimiter` is {other:?}: it must be one of \",\", \";\", \"\\t\" (a tab), \"|\""));
            }
        };
        let decimal = match self.decimal.as_deref().unwrap_or(".") {
            "." => b'.',
            "," => b',',
            other => return Err(format!("`data.decimal` is {other:?}: it must be \".\" or \",\"")),
        };
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
        Ok(Format { delimiter, quotes: self.quotes.unwrap_or(true), decimal, missing: self.missing.clone(), dates })
    }
}

fn memory(word: Option<&str>, path: &str, persons: bool) -> Result<Memory, String> {
    match word {
        None | Some("copies") => Ok(Memory::Copies),
        Some("lean") => Ok(Memory::Lean),
        Some("stream") if persons || !path.to_ascii_lowercase().ends_with(".parquet") => Err(NOT_STREAMED.into()),
        Some("stream") => Ok(Memory::Stream),
        Some(other) => Err(unknown("data.memory", other, &["copies", "lean", "stream"])),
    }
}
