//! A row of covariates written on one line: `age=60, ward="a, b"`.

use crate::error::PredictError;
use crate::table::{Table, TableRow};

/// Parses a row: `NAME=VALUE` separated by commas. A name or a value that contains a comma, an equals sign or blanks at its ends stands
/// between double quotes; within them `""` is a quote. Every name must be a column of the model.
///
/// # Errors
/// A text of another form, with the part that does not fit.
pub fn parse_at(text: &str) -> Result<Table, PredictError> {
    let fault = |why: String| PredictError::new(format!("{text:?}: {why}; write a row as \"age=60, treated=1\""));
    let mut rest = text.trim();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (name, after) = word(rest, '=').map_err(&fault)?;
        let Some(after) = after.strip_prefix('=') else { return Err(fault(format!("`{name}` has no value"))) };
        let (value, after) = word(after, ',').map_err(&fault)?;
        if name.is_empty() || value.is_empty() {
            return Err(fault("a name or a value is empty".to_owned()));
        }
        names.push(name);
        values.push(value);
        rest = match after.strip_prefix(',') {
            Some(next) if next.trim().is_empty() => return Err(fault("nothing follows the last comma".to_owned())),
            Some(next) => next.trim_start(),
            None => after,
        };
    }
    if names.is_empty() {
        return Err(fault("it is empty".to_owned()));
    }
    Ok(Table {
        place: format!("{text:?}"),
        names,
        rows: vec![TableRow { place: String::new(), texts: values }],
        only_columns: true,
    })
}

/// Reads a word up to `end` or the end of the text; returns it with what follows, which is empty or begins with `end`.
fn word(text: &str, end: char) -> Result<(String, &str), String> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let at = text.find(end).unwrap_or(text.len());
        let word = text[..at].trim();
        return match word.find(['=', ',']) {
            Some(_) => Err(format!("`{word}` is not a name with one value")),
            None => Ok((word.to_owned(), &text[at..])),
        };
    };
    let mut word = String::new();
    let mut rest = quoted;
    loop {
        let Some((part, after)) = rest.split_once('"') else { return Err("a quote is not closed".to_owned()) };
        word.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                word.push('"');
                rest = more;
            }
            None => {
                let after = after.trim_start();
                let ends = after.is_empty() || after.starts_with(end);
                return if ends { Ok((word, after)) } else { Err(format!("text follows the quoted {word:?}")) };
            }
        }
    }
}
