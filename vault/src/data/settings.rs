//! Defines the data settings of a configuration: the file, its reading, and the part kept in memory.

use std::path::PathBuf;

use conclave_privacy::accounting::PrivacyUnit;

use super::format::Format;

/// The file of records and the treatment of bad rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataConfig {
    /// A `.csv`, `.csv.gz` or `.parquet` file.
    pub path: PathBuf,
    /// Conversion of its texts to values.
    pub format: Format,
    /// Treatment of a missing, non-numeric or non-finite value in a needed column.
    pub bad_rows: BadRows,
    /// Columns of a CSV file that hold texts.
    pub text: Vec<String>,
    /// The column that names persons, where a person is the unit of privacy; never a column of a model.
    pub person: Option<String>,
    /// Unit of privacy of the data's guarantee.
    pub unit: PrivacyUnit,
    /// Part of the records that is kept in memory.
    pub memory: Memory,
    /// Folder for the columns of a streamed shard.
    pub snapshot: PathBuf,
}

/// The part of the records that is kept in memory. Answers are the same, bit for bit; their delays are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// The columns, and every open job's own columns on its model's scale.
    #[default]
    Copies,
    /// The columns; every pass scales them block by block.
    Lean,
    /// Only the current blocks: every pass reads the snapshot of the columns, and scales them block by block.
    Stream,
}

/// The precision of the numbers in a job's scaled copy of the records. Arithmetic on them is in doubles in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 64 bits.
    #[default]
    Double,
    /// 32 bits: half the memory, and each number rounded to 24 significant bits.
    Single,
}

impl Precision {
    /// Returns the bytes of a number.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Double => 8,
            Self::Single => 4,
        }
    }
}

/// The treatment of a row with a missing, non-numeric or non-finite value in a needed column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRows {
    /// It stops the start, named by file, line and column.
    Stop,
    /// It stays as an inert row: counted, and contributing exactly zero to any answer. Only the owner learns their number.
    Drop,
}
