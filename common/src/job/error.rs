//! Errors of job files, each with the key at fault.

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
