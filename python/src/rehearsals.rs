//! Rehearsals on tables that Python hands over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use conclave::api::{self, Party, Rehearsal};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrow::{Handed, columns};
use crate::errors::raised;
use crate::process::threads;
use crate::runs::Run;
use crate::waiting::{Ended, Event, attend};

/// Rehearses a job on one table for each party, in the job's order. `observe` is given each state as JSON, and `warn` each warning.
///
/// The run is appended to `kept`, in which it outlives a signal that is handled on the way back to the caller. Returns the
/// exception that ended it early, if any: without a run in `kept`, it was stopped before its first draw.
#[pyfunction]
#[pyo3(signature = (job, tables, seed, drop_bad_rows, anyway, observe, warn, kept))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn rehearse(
    py: Python<'_>,
    job: &str,
    tables: Vec<Bound<'_, PyAny>>,
    seed: Option<u64>,
    drop_bad_rows: bool,
    anyway: bool,
    observe: Option<&Bound<'_, PyAny>>,
    warn: &Bound<'_, PyAny>,
    kept: &Bound<'_, PyList>,
) -> PyResult<Option<Py<PyAny>>> {
    let threads = raised(py, threads())?;
    let mut rehearsal = raised(py, Rehearsal::new(job, drop_bad_rows, anyway))?;
    let needed = rehearsal.columns();
    for table in &tables {
        let handed = Handed::of(table, &needed)?;
        let added = py.detach(|| {
            threads.install(|| {
                let columns = columns(&handed)?;
                rehearsal.add(Party { names: &handed.names, columns })
            })
        });
        for warning in raised(py, added)? {
            warn.call1((warning,))?;
        }
        py.check_signals()?;
    }
    let (send, events) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, work) = (Arc::clone(&stop), Arc::clone(&threads));
    std::thread::spawn(move || {
        // The waiting thread may have gone.
        let observe = |state: &_| drop(send.send(Event::State(serde_json::Value::to_string(state))));
        let run = work.install(|| rehearsal.run(seed, &stopped, observe));
        let _ = send.send(Event::Done(run));
    });
    let Ended { result, interrupted } = attend(py, events, observe, &|| stop.store(true, Ordering::Relaxed), true);
    let interrupted = interrupted.map(|error| error.into_value(py).into_any());
    match result {
        Ok(run) => kept.append(Run::new(run)).map(|()| interrupted),
        Err(_) if interrupted.is_some() => Ok(interrupted),
        Err(error) => Err(error),
    }
}

/// Screens a table for a job: a JSON array of concerns.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, job: &str, table: &Bound<'_, PyAny>) -> PyResult<String> {
    let needed = raised(py, api::columns(job))?;
    let (threads, handed) = (raised(py, threads())?, Handed::of(table, &needed)?);
    let found = py.detach(|| threads.install(|| api::screen(job, Party { names: &handed.names, columns: columns(&handed)? })));
    raised(py, found).map(|concerns| concerns.to_string())
}
