//! A table that another library hands over as a stream of record batches.

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use conclave::api::Fault;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{exception, input};

/// A table in the memory of another library, held while this lives.
pub(crate) struct Handed {
    /// The names of all columns.
    pub(crate) names: Vec<String>,
    needed: Vec<String>,
    batches: Vec<RecordBatch>,
}

impl Handed {
    /// Takes a table over; `needed` names the columns that will be read. The others are not converted.
    ///
    /// # Errors
    /// An object that is no table; a stream that breaks off.
    pub(crate) fn of(table: &Bound<'_, PyAny>, needed: &[String]) -> PyResult<Self> {
        let py = table.py();
        let reader = stream(table)?;
        let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        let twice = needed.iter().find(|name| names.iter().filter(|known| known == name).count() > 1);
        if let Some(name) = twice {
            return Err(exception(
                py,
                &input(format!("the table has column {name:?} twice: every column needs a name of its own")),
            ));
        }
        let batches: Result<Vec<RecordBatch>, ArrowError> = reader.collect();
        let batches = batches.map_err(|e| exception(py, &unreadable(&e)))?;
        let batches = batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        Ok(Self { needed: needed.iter().filter(|name| names.contains(name)).cloned().collect(), names, batches })
    }

    /// Returns the needed columns that the table has.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &String> {
        self.needed.iter()
    }

    /// Returns the chunks of a column, none of them empty.
    pub(crate) fn chunks(&self, name: &str) -> Vec<&ArrayRef> {
        self.batches.iter().filter_map(|batch| batch.column_by_name(name)).collect()
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn unreadable(error: &ArrowError) -> Fault {
    input(format!("the table can't be read: {error}"))
}

/// Asks an object for its stream and takes it out of its capsule.
fn stream(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    const METHOD: &str = "__arrow_c_stream__";
    let py = table.py();
    let refused = |reason: String| exception(py, &input(reason));
    // A capsule may be handed over by itself.
    let handed = match table.cast::<PyCapsule>() {
        Ok(capsule) => capsule.clone().into_any(),
        Err(_) if !table.hasattr(METHOD)? => {
            let kind = table.get_type().name()?;
            return Err(refused(format!(
                "{kind} is no table: give a DataFrame of pandas or polars, a pyarrow.Table, or another object with {METHOD}"
            )));
        }
        Err(_) => table.call_method0(METHOD).map_err(|error| match error.is_instance_of::<PyImportError>(py) {
            true => {
                refused(format!("pandas hands its tables over by pyarrow, which can't be imported ({error}): install pyarrow"))
            }
            false => error,
        })?,
    };
    let capsule = handed.cast::<PyCapsule>().map_err(|_| refused(format!("{METHOD} returned no capsule")))?;
    let pointer = capsule
        .pointer_checked(Some(c"arrow_array_stream"))
        .map_err(|_| refused("the capsule holds no Arrow stream".to_owned()))?
        .cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to an `ArrowArrayStream` of the Arrow C stream interface, which lives as long as the
    // capsule, and the interpreter's lock is held. The stream is moved out and a released one left in its place, so the capsule's
    // destructor releases nothing and a second use finds a released stream.
    #[allow(unsafe_code)]
    let moved = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    moved.map_err(|e| match e.to_string().contains("released") {
        true => refused("this Arrow stream was read before: hand the table over again".to_owned()),
        false => exception(py, &unreadable(&e)),
    })
}
