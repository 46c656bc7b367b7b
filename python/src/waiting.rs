//! Waiting for work on another thread: the interpreter's lock is released, callbacks are called here, and signals are looked for.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use conclave::api::Fault;
use pyo3::prelude::*;

use crate::errors::{exception, internal};

/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// An event of the work.
pub(crate) enum Event<T> {
    /// A state, as a JSON text.
    State(String),
    /// The end.
    Done(Result<T, Fault>),
}

/// The end of the work, and the exception that interrupted it: a signal's, or a callback's.
pub(crate) struct Ended<T> {
    /// The answer of the work.
    pub(crate) result: PyResult<T>,
    /// The reason for an early end.
    pub(crate) interrupted: Option<PyErr>,
}

/// Waits for the end of the work. Each state is passed to `observe`. On a signal or an exception `stop` is called, once, and the
/// rest of the work is waited for while `finish` is true.
pub(crate) fn attend<T: Send>(
    py: Python<'_>,
    events: Receiver<Event<T>>,
    observe: Option<&Bound<'_, PyAny>>,
    stop: &dyn Fn(),
    finish: bool,
) -> Ended<T> {
    let mut events = events;
    let mut interrupted: Option<PyErr> = None;
    loop {
        let (event, rest) = py.detach(move || (events.recv_timeout(LOOK), events));
        events = rest;
        let seen = match event {
            Ok(Event::Done(result)) => {
                let result = result.map_err(|fault| exception(py, &fault));
                return Ended { result, interrupted };
            }
            Err(RecvTimeoutError::Disconnected) => {
                let result = Err(exception(py, &internal("the work ended without an answer")));
                return Ended { result, interrupted };
            }
            Ok(Event::State(json)) if interrupted.is_none() => observe.map_or(Ok(()), |call| call.call1((json,)).map(|_| ())),
            Ok(Event::State(_)) | Err(RecvTimeoutError::Timeout) => Ok(()),
        };
        if interrupted.is_some() {
            continue;
        }
        if let Err(error) = seen.and_then(|()| py.check_signals()) {
            stop();
            if !finish {
                return Ended { result: Err(error.clone_ref(py)), interrupted: Some(error) };
            }
            interrupted = Some(error);
        }
    }
}
