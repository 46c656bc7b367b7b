//! The description of a folder of raw columns, `columns.json`.

use serde::Deserialize;

/// The object in `columns.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    /// Number of rows of every column.
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
}

/// A column and its files, which lie in the folder itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) name: String,
    /// The file of its values.
    pub(super) file: String,
    /// The file of its nulls, one byte per row: 1 where the value is missing, else 0.
    #[serde(default)]
    pub(super) nulls: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    /// The texts of a column of texts.
    #[serde(default)]
    pub(super) categories: Vec<String>,
}

/// The type of a column's values.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Doubles of eight bytes.
    Float64,
    /// Texts: whole numbers of four bytes, each the place of a text in `categories` from 0, or -1 for a missing value.
    Category,
}
