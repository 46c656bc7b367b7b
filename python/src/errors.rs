//! Faults as exceptions: the classes are those of `conclave.errors`.

use conclave::api::{ErrorCode, Fault};
use pyo3::prelude::*;

/// Returns the exception of a fault: the class of its code, with its message, its party and its remedy.
pub(crate) fn exception(py: Python<'_>, fault: &Fault) -> PyErr {
    let made = py.import("conclave.errors").and_then(|errors| {
        let message = Fault { remedy: None, ..fault.clone() }.to_string();
        errors.call_method1("_of_fault", (fault.code.as_str(), &fault.party, message, &fault.remedy))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Converts the result of a function of the API.
pub(crate) fn raised<T>(py: Python<'_>, result: Result<T, Fault>) -> PyResult<T> {
    result.map_err(|fault| exception(py, &fault))
}

/// Returns a fault of the caller's input.
pub(crate) fn input(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

/// Returns a fault of the program.
pub(crate) fn internal(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::Internal, message)
}
