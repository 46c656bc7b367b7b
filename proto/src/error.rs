//! The one table between error codes, gRPC status codes and exit codes.
//!
//! An error travels as a gRPC status whose message is a sentence for a person and whose metadata carry the stable code
//! and, where a party is at fault, its name.

use std::error::Error as StdError;
use std::fmt;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status};

use crate::tls::explain_in_chain;

/// Metadata key of the stable code.
const CODE_KEY: &str = "conclave-code";
/// Metadata key of the party at fault.
const PARTY_KEY: &str = "conclave-party";
/// A message longer than this is cut: it travels in a header, and headers have a limit.
const MAX_MESSAGE_BYTES: usize = 2048;

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

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        to_status(&fault)
    }
}

/// The status that a fault travels as.
pub fn to_status(fault: &Fault) -> Status {
    let mut status = Status::new(fault.code.grpc(), shorten(&fault.message));
    let metadata = status.metadata_mut();
    metadata.insert(CODE_KEY, MetadataValue::from_static(fault.code.as_str()));
    // A name that is not ASCII is not a valid name and is left out rather than mangled.
    if let Some(party) = fault.party.as_deref()
        && let Ok(value) = party.parse::<MetadataValue<Ascii>>()
    {
        metadata.insert(PARTY_KEY, value);
    }
    status
}

/// The fault that a status carries; for a status that is not ours (from the transport, or from another server), what
/// it amounts to.
///
/// A foreign `ResourceExhausted` is *not* read as a budget refusal, nor a foreign `AlreadyExists` as a conflict:
/// only our own mark says so, because a budget refusal ends a job.
pub fn from_status(status: &Status) -> Fault {
    let text = |key| status.metadata().get(key).and_then(|value| value.to_str().ok());
    if let Some(code) = text(CODE_KEY).and_then(ErrorCode::parse) {
        return Fault { code, party: text(PARTY_KEY).map(str::to_owned), message: status.message().to_owned() };
    }
    if let Some(fault) = explain_in_chain(status) {
        return fault;
    }
    // How tonic reports a connection that broke under a call.
    let broken = status.code() == Code::Unknown && StdError::source(status).is_some();
    let message = match status.message() {
        "" => format!("the other end answered {:?} without a reason", status.code()),
        message if broken => format!("the connection to the coordinator broke ({message})"),
        message => message.to_owned(),
    };
    let code = match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => ErrorCode::Unreachable,
        Code::Unknown if broken => ErrorCode::Unreachable,
        Code::InvalidArgument => ErrorCode::InvalidInput,
        Code::NotFound => ErrorCode::NotFound,
        Code::PermissionDenied => ErrorCode::Policy,
        Code::Unauthenticated => ErrorCode::Unauthenticated,
        _ => ErrorCode::Internal,
    };
    Fault::new(code, message)
}

fn shorten(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let mut end = MAX_MESSAGE_BYTES;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} …", &message[..end])
}

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
    fn faults_round_trip_through_a_status() {
        for code in ErrorCode::ALL {
            for party in [None, Some("hospital-a".to_owned())] {
                let fault = Fault { code, party, message: "column `age`: größer als 100 % — see the job".to_owned() };
                let status = to_status(&fault);
                assert_eq!(status.code(), code.grpc());
                assert_eq!(from_status(&status), fault);
                // And through the headers that really carry it.
                let response = status.into_http::<tonic::body::Body>();
                let read = Status::from_header_map(response.headers()).unwrap();
                assert_eq!(from_status(&read), fault);
            }
        }
    }

    #[test]
    fn foreign_statuses_never_read_as_budget_or_conflict() {
        for (code, expected) in [
            (Code::ResourceExhausted, ErrorCode::Internal),
            (Code::AlreadyExists, ErrorCode::Internal),
            (Code::Unavailable, ErrorCode::Unreachable),
            (Code::DeadlineExceeded, ErrorCode::Unreachable),
            (Code::Unauthenticated, ErrorCode::Unauthenticated),
            (Code::Unimplemented, ErrorCode::Internal),
        ] {
            assert_eq!(from_status(&Status::new(code, "x")).code, expected);
        }
    }

    #[test]
    fn a_very_long_message_is_cut_at_a_character() {
        let fault = Fault::new(ErrorCode::InvalidInput, "é".repeat(5000));
        let read = from_status(&to_status(&fault));
        assert!(read.message.len() < MAX_MESSAGE_BYTES + 8);
        assert!(read.message.ends_with('…'));
    }

    #[test]
    fn the_party_is_named_once() {
        let fault = Fault::new(ErrorCode::Budget, "the budget is spent").at_party("a-1");
        assert_eq!(fault.to_string(), "a-1: the budget is spent");
        let fault = Fault::new(ErrorCode::Budget, "a-1 refused").at_party("a-1");
        assert_eq!(fault.to_string(), "a-1 refused");
    }
}
