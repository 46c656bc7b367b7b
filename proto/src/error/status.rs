//! Conversion between faults and gRPC statuses. The message is for people; the metadata carry the stable code and, if a party
//! is at fault, its name.

use std::error::Error as StdError;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status};

use super::fault::{ErrorCode, Fault};
use crate::tls::explain_in_chain;

/// Metadata key of the stable code.
const CODE_KEY: &str = "conclave-code";
/// Metadata key of the party at fault.
const PARTY_KEY: &str = "conclave-party";
/// Longest message in bytes. A longer one is truncated, since it travels in a header and headers have a limit.
const MAX_MESSAGE_BYTES: usize = 2048;

impl ErrorCode {
    /// Returns the gRPC status code.
    pub fn grpc(self) -> Code {
        match self {
            Self::InvalidInput => Code::InvalidArgument,
            Self::NotFound => Code::NotFound,
            Self::Policy => Code::PermissionDenied,
            Self::Revoked => Code::FailedPrecondition,
            Self::Budget => Code::ResourceExhausted,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::Unreachable => Code::Unavailable,
            Self::Conflict => Code::AlreadyExists,
            Self::Internal => Code::Internal,
        }
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        to_status(&fault)
    }
}

/// Returns the status that carries a fault.
pub fn to_status(fault: &Fault) -> Status {
    let text = Fault { party: None, ..fault.clone() }.to_string();
    let mut status = Status::new(fault.code.grpc(), shorten(&text));
    let metadata = status.metadata_mut();
    metadata.insert(CODE_KEY, MetadataValue::from_static(fault.code.as_str()));
    // A name that is not ASCII is invalid, and is omitted rather than mangled.
    if let Some(party) = fault.party.as_deref()
        && let Ok(value) = party.parse::<MetadataValue<Ascii>>()
    {
        metadata.insert(PARTY_KEY, value);
    }
    status
}

/// Returns the fault that a status carries. A foreign status (from the transport or from another server) is mapped to the
/// closest fault.
///
/// A foreign `ResourceExhausted` is *not* read as a budget refusal, nor a foreign `AlreadyExists` as a conflict: only our own
/// metadata count, because a budget refusal ends a job.
pub fn from_status(status: &Status) -> Fault {
    let text = |key| status.metadata().get(key).and_then(|value| value.to_str().ok());
    if let Some(code) = text(CODE_KEY).and_then(ErrorCode::parse) {
        return Fault { code, party: text(PARTY_KEY).map(str::to_owned), message: status.message().to_owned(), remedy: None };
    }
    if let Some(fault) = explain_in_chain(status) {
        return fault;
    }
    // tonic reports a connection that broke during a call in this form.
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
    fn grpc_codes_are_distinct() {
        for (at, code) in (1..).zip(ErrorCode::ALL) {
            assert!(ErrorCode::ALL.iter().skip(at).all(|other| other.grpc() != code.grpc()), "{code}");
        }
    }

    #[test]
    fn faults_round_trip_through_a_status() {
        for code in ErrorCode::ALL {
            for party in [None, Some("hospital-a".to_owned())] {
                let fault =
                    Fault { code, party, message: "column `age`: größer als 100 % — see the job".to_owned(), remedy: None };
                let status = to_status(&fault);
                assert_eq!(status.code(), code.grpc());
                assert_eq!(from_status(&status), fault);
                // The headers that carry it preserve it too.
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
}
