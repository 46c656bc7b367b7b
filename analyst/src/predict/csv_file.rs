//! Predictions as a CSV file: one line per figure of a row, of a contrast, or of an average effect.

use std::path::Path;

use conclave_predict::Summary;
use conclave_proto::error::Fault;

use super::answer::Answer;
use crate::faults::internal;
use crate::files;

/// Writes the file and returns its number of lines below the header.
pub(super) fn write(path: &Path, answer: &Answer) -> Result<u64, Fault> {
    let (text, lines) = text(answer).map_err(|e| internal(format!("the predictions cannot be written: {e}")))?;
    files::write_new(path, &text).map(|()| lines)
}

/// Returns the file's text and its number of lines below the header.
pub(super) fn text(answer: &Answer) -> Result<(String, u64), csv::Error> {
    let columns = answer.columns();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["result", "row"];
    header.extend(&columns);
    header.extend(["quantity", "mean", "sd", "low", "median", "high", "outcome_low", "outcome_median", "outcome_high"]);
    writer.write_record(&header)?;
    let mut lines = 0;
    let mut line = |result: &str, row: Option<usize>, quantity: &str, of: &Summary, outcome: Option<&Summary>| {
        let mut cells = vec![result.to_owned(), row.map_or_else(String::new, |row| (row + 1).to_string())];
        cells.extend(columns.iter().map(|column| {
            let stated = row.and_then(|row| answer.rows[row].iter().find(|(name, _)| name == column));
            stated.map_or_else(String::new, |(_, value)| value.to_string())
        }));
        cells.push(quantity.to_owned());
        cells.extend([of.mean, of.sd, of.low, of.median, of.high].map(|x| x.to_string()));
        let outcome = outcome.map_or([const { String::new() }; 3], |of| [of.low, of.median, of.high].map(|x| x.to_string()));
        cells.extend(outcome);
        lines += 1;
        writer.write_record(&cells)
    };
    for (row, expected) in answer.expected.iter().enumerate() {
        for (quantity, of) in answer.quantities.iter().zip(expected) {
            line("prediction", Some(row), &quantity.name, of, answer.outcomes.get(row))?;
        }
    }
    for contrast in &answer.contrasts {
        for (quantity, of) in answer.quantities.iter().zip(&contrast.differences) {
            line("difference from row 1", Some(contrast.row), &quantity.name, of, None)?;
        }
        if let Some(ratio) = &contrast.ratio {
            line(&format!("{} to row 1", ratio.kind.replace('_', " ")), Some(contrast.row), "ratio", &ratio.summary, None)?;
        }
    }
    for average in &answer.averages {
        let result = format!("average effect of {}: {}", average.column, average.change);
        for (quantity, of) in answer.quantities.iter().zip(&average.effects) {
            line(&result, None, &quantity.name, of, None)?;
        }
    }
    let bytes = writer.into_inner().map_err(|e| csv::Error::from(e.into_error()))?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), lines))
}
