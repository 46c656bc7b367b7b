//! Error codes with their names and exit codes, and the fault type that pairs a code with a message.

use std::error::Error as StdError;
use std::path::Path;
use std::{fmt, io};

/// The stable codes. Programs act on the code; the message beside it is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The user's input is invalid: a job, a configuration, a data file, an argument.
    InvalidInput,
    /// The job or file does not exist.
    NotFound,
    /// A data owner's policy forbids the request.
    Policy,
    /// A data owner has taken back what the request needs: its consent, or its trust in a member's certificate.
    Revoked,
    /// A privacy budget does not cover the request.
    Budget,
    /// The peer's certificate does not authorise the request.
    Unauthenticated,
    /// A party or the coordinator cannot be reached.
    Unreachable,
    /// The id was used before for different content.
    Conflict,
    /// Any other error: a fault of the software or of its machine.
    Internal,
}

/// Code, name on the wire and in JSON, exit code.
const TABLE: [(ErrorCode, &str, u8); 9] = [
    (ErrorCode::InvalidInput, "invalid_input", 2),
    (ErrorCode::NotFound, "not_found", 2),
    (ErrorCode::Policy, "policy", 3),
    (ErrorCode::Revoked, "revoked", 3),
    (ErrorCode::Budget, "budget", 3),
    (ErrorCode::Unauthenticated, "unauthenticated", 3),
    (ErrorCode::Unreachable, "unreachable", 4),
    (ErrorCode::Conflict, "conflict", 1),
    (ErrorCode::Internal, "internal", 1),
];

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 9] = [
        Self::InvalidInput,
        Self::NotFound,
        Self::Policy,
        Self::Revoked,
        Self::Budget,
        Self::Unauthenticated,
        Self::Unreachable,
        Self::Conflict,
        Self::Internal,
    ];

    fn row(self) -> &'static (Self, &'static str, u8) {
        // The discriminants index the table's rows; a test checks that they agree.
        &TABLE[self as usize]
    }

    /// Returns the stable name, as in metadata, JSON and logs.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// Returns the code with this name.
    pub fn parse(text: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == text).map(|row| row.0)
    }

    /// Returns the exit code of a command that fails with this code: 2 invalid input, 3 refused, 4 unreachable, 1 otherwise.
    pub fn exit_code(self) -> u8 {
        self.row().2
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with a stable code, the party at fault if there is one, and a message with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of error.
    pub code: ErrorCode,
    /// The name of the party at fault.
    pub party: Option<String>,
    /// A message for people that names key, column, file or party, and the remedy unless it stands in `remedy`.
    pub message: String,
    /// The next step, as a clause, where its words depend on the surface that shows it: a command of the command line.
    pub remedy: Option<String>,
}

impl Fault {
    /// Creates a fault without a party.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, party: None, message: message.into(), remedy: None }
    }

    /// Creates an invalid-input fault for a failed file operation: "PATH cannot WHAT: REASON".
    #[must_use]
    pub fn of_file(path: &Path, what: &str, error: &io::Error) -> Self {
        Self::new(ErrorCode::InvalidInput, format!("{} cannot {what}: {error}", path.display()))
    }

    /// Adds the next step.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Attributes the fault to a party.
    #[must_use]
    pub fn at_party(mut self, party: impl Into<String>) -> Self {
        self.party = Some(party.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.party {
            Some(party) if !self.message.contains(party.as_str()) => {
                write!(f, "{party}: {}", self.message)?;
            }
            _ => f.write_str(&self.message)?,
        }
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, ": {remedy}"))
    }
}

impl StdError for Fault {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table_is_complete_and_in_step() {
        assert_eq!(TABLE.len(), ErrorCode::ALL.len());
        for (row, code) in TABLE.iter().zip(ErrorCode::ALL) {
            assert_eq!(row.0, code);
            assert_eq!(code.row().0, code);
        }
    }

    #[test]
    fn names_are_distinct_and_round_trip() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(code));
            for other in ErrorCode::ALL {
                if other != code {
                    assert_ne!(code.as_str(), other.as_str());
                }
            }
        }
        assert_eq!(ErrorCode::parse("INTERNAL"), None);
    }

    #[test]
    fn exit_codes() {
        let codes: Vec<u8> = ErrorCode::ALL.iter().map(|c| c.exit_code()).collect();
        assert_eq!(codes, [2, 2, 3, 3, 3, 3, 4, 1, 1]);
    }

    #[test]
    fn the_party_is_named_once() {
        let fault = Fault::new(ErrorCode::Budget, "the budget is spent").at_party("a-1");
        assert_eq!(fault.to_string(), "a-1: the budget is spent");
        let fault = Fault::new(ErrorCode::Budget, "a-1 refused").at_party("a-1");
        assert_eq!(fault.to_string(), "a-1 refused");
        assert_eq!(fault.with_remedy("ask its owner").to_string(), "a-1 refused: ask its owner");
    }
}
