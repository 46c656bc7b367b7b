//! Tables by the Arrow C stream interface: of polars, pandas, pyarrow, duckdb and others.
//!
//! A column of doubles in one chunk without nulls is read where it is. Every other column is converted once.

mod convert;
mod stream;

use conclave::api::{Fault, Values};

pub(crate) use stream::Handed;

/// Returns the columns that were asked for, as far as the table has them.
pub(crate) fn columns(handed: &Handed) -> Result<Vec<(String, Values<'_>)>, Fault> {
    let column = |name: &String| Ok((name.clone(), convert::values(name, handed.chunks(name))?));
    handed.needed().map(column).collect()
}

/// Returns the columns that were asked for as texts: their names, and the rows.
pub(crate) fn texts(handed: &Handed) -> Result<(Vec<String>, Vec<Vec<String>>), Fault> {
    let (names, columns): (Vec<String>, Vec<Values<'_>>) = columns(handed)?.into_iter().unzip();
    let text = |column: &Values<'_>, row: usize| {
        let plain = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
        match column {
            Values::Lent(values) => plain(values[row]),
            Values::Numbers(values) => plain(values[row]),
            Values::Texts { codes, words } if !codes[row].is_nan() => words[codes[row] as usize].clone(),
            Values::Texts { .. } => String::new(),
        }
    };
    let row = |row| columns.iter().map(|column| text(column, row)).collect();
    Ok((names, (0..handed.rows()).map(row).collect()))
}
