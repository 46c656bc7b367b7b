//! The data settings of a configuration: where the records are, how they are read and what of them is kept.

use std::path::PathBuf;

use conclave_privacy::accounting::PrivacyUnit;

use super::format::Format;

/// Where the records are and what becomes of bad rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataConfig {
    /// A `.csv`, `.csv.gz` or `.parquet` file.
    pub path: PathBuf,
    /// How what is written in it becomes values.
    pub format: Format,
    /// What a missing, non-numeric or non-finite value in a needed column does.
    pub bad_rows: BadRows,
    /// Columns of a CSV file that hold texts.
    pub text: Vec<String>,
    /// The column that names persons, where a person is the unit of privacy; never a column of a model.
    pub person: Option<String>,
    /// What the data's guarantee protects.
    pub unit: PrivacyUnit,
    /// What of the records is kept in memory.
    pub memory: Memory,
}

/// What of the records is kept in memory. Answers are the same, bit for bit; their delays are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// The columns, and every open job's own columns on its model's scale.
    #[default]
    Copies,
    /// The columns; every pass scales them block by block.
    Lean,
    /// Nothing but the blocks at hand: every pass reads the file.
    Stream,
}

/// How the numbers of a job's scaled copy of the records are held. Arithmetic on them is in doubles in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 64 bits.
    #[default]
    Double,
    /// 32 bits: half the memory, and each number rounded to 24 significant bits.
    Single,
}

impl Precision {
    /// Bytes of a number.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Double => 8,
            Self::Single => 4,
        }
    }
}

/// What a row with a missing, non-numeric or non-finite value in a needed column does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRows {
    /// It stops the start, named by file, line and column.
    Stop,
    /// It stays as an inert row: counted, and adding exactly nothing to any answer. How many there are is the owner's alone.
    Drop,
}

/// What a file that can't be streamed has to be told.
pub const NOT_STREAMED: &str = "data.memory = \"stream\" takes a Parquet file without `data.person`: convert the file, or write \
                                       memory = \"lean\"";
