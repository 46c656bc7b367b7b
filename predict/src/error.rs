//! Errors in the input of a prediction.

/// An input that no prediction can be made from, as a sentence that names the column, the value and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PredictError(String);

impl PredictError {
    /// Creates an error with its sentence.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
