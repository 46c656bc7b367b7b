//! Errors of job files, each with the key at fault.

use crate::settings::Fault;
use crate::text::one_line;

/// An error in a job file, with the dotted key at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct JobError {
    /// Dotted path of the key, `job` for the file as a whole.
    pub key: String,
    /// The fault and its remedy.
    pub message: String,
}

impl JobError {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

impl From<Fault> for JobError {
    fn from(Fault { key, message, .. }: Fault) -> Self {
        if key.is_empty() { Self::new("job", message) } else { Self::new(one_line(&key), message) }
    }
}
