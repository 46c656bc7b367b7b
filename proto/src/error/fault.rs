//! Error codes with their names, gRPC codes and exit codes in one table, and the fault that carries a code with a sentence.

use std::error::Error as StdError;
use std::path::Path;
use std::{fmt, io};

use tonic::Code;

/// The stable codes. Programs act on them; the sentence beside them is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// What the user wrote is wrong: a job, a config, a data file, an argument.
    InvalidInput,
    /// There is no such job or file.
    NotFound,
    /// A data owner's policy does not admit this.
    Policy,
    /// A privacy budget does not admit this.
    Budget,
    /// The peer's certificate does not entitle it to this.
    Unauthenticated,
    /// A party or the coordinator cannot be reached.
    Unreachable,
    /// The same id was used before for something else.
    Conflict,
    /// Anything else: a fault of the software or of the machine it runs on.
    Internal,
}

/// Code, its name on the wire and in JSON, its gRPC code, its exit code.
const TABLE: [(ErrorCode, &str, Code, u8); 8] = [
    (ErrorCode::InvalidInput, "invalid_input", Code::InvalidArgument, 2),
    (ErrorCode::NotFound, "not_found", Code::NotFound, 2),
    (ErrorCode::Policy, "policy", Code::PermissionDenied, 3),
    (ErrorCode::Budget, "budget", Code::ResourceExhausted, 3),
    (ErrorCode::Unauthenticated, "unauthenticated", Code::Unauthenticated, 3),
    (ErrorCode::Unreachable, "unreachable", Code::Unavailable, 4),
    (ErrorCode::Conflict, "conflict", Code::AlreadyExists, 1),
    (ErrorCode::Internal, "internal", Code::Internal, 1),
];

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 8] = [
        Self::InvalidInput,
        Self::NotFound,
        Self::Policy,
        Self::Budget,
        Self::Unauthenticated,
        Self::Unreachable,
        Self::Conflict,
        Self::Internal,
    ];

    fn row(self) -> &'static (Self, &'static str, Code, u8) {
        // The discriminants count the table's rows; a test holds the two in step.
        &TABLE[self as usize]
    }

    /// The stable name, as in metadata, JSON and logs.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The code of that name.
    pub fn parse(text: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == text).map(|row| row.0)
    }

    /// The gRPC status code it travels under.
    pub fn grpc(self) -> Code {
        self.row().2
    }

    /// The exit code of a command that ends with it: 2 the user's input, 3 refused, 4 unreachable, 1 anything else.
    pub fn exit_code(self) -> u8 {
        self.row().3
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with a stable code, the party at fault where there is one, and a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of error.
    pub code: ErrorCode,
    /// The party at fault, by name.
    pub party: Option<String>,
    /// A sentence for a person, naming key, column, file or party, and the remedy.
    pub message: String,
}

impl Fault {
    /// A fault that is no single party's.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, party: None, message: message.into() }
    }

    /// The fault of a file operation, of whoever named the file: "PATH cannot WHAT: REASON".
    #[must_use]
    pub fn of_file(path: &Path, what: &str, error: &io::Error) -> Self {
        Self::new(ErrorCode::InvalidInput, format!("{} cannot {what}: {error}", path.display()))
    }

    /// The same fault, laid at a party's door.
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
                write!(f, "{party}: {}", self.message)
            }
            _ => f.write_str(&self.message),
        }
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
    fn names_and_grpc_codes_are_distinct_and_round_trip() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(code));
            for other in ErrorCode::ALL {
                if other != code {
                    assert_ne!(code.as_str(), other.as_str());
                    assert_ne!(code.grpc(), other.grpc());
                }
            }
        }
        assert_eq!(ErrorCode::parse("INTERNAL"), None);
    }

    #[test]
    fn exit_codes() {
        let codes: Vec<u8> = ErrorCode::ALL.iter().map(|c| c.exit_code()).collect();
        assert_eq!(codes, [2, 2, 3, 3, 3, 4, 1, 1]);
    }

    #[test]
    fn the_party_is_named_once() {
        let fault = Fault::new(ErrorCode::Budget, "the budget is spent").at_party("a-1");
        assert_eq!(fault.to_string(), "a-1: the budget is spent");
        let fault = Fault::new(ErrorCode::Budget, "a-1 refused").at_party("a-1");
        assert_eq!(fault.to_string(), "a-1 refused");
    }
}
