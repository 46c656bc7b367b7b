//! Compares the log's roster, with each key's signature, with the roster that this party has entered.

use conclave_common::job::JobSpec;
use conclave_proto::error::Fault;
use conclave_proto::v1::{self, LogHeader};
use prost::Message;
use sha2::{Digest, Sha256};

use super::check::{Check, MAX_TEXT};
use crate::ledger_views::Entered;
use conclave_vault::ledger::events::hex;
use conclave_vault::text::clip;

const NAME: &str = "roster";

/// The log's roster.
pub(super) struct LoggedRoster {
    /// Digest of the roster; `None` if the log has no readable one.
    pub(super) digest: Option<[u8; 32]>,
    /// Result of the comparison; `None` for a job whose answers are opened separately.
    pub(super) check: Option<Check>,
}

/// Reads the log's roster and compares it with this party's.
pub(super) fn read(header: &LogHeader, spec: &JobSpec, entered: Option<&Entered>) -> LoggedRoster {
    let Some(secure) = spec.aggregation.secure() else { return LoggedRoster { digest: None, check: None } };
    let own = entered.and_then(|entered| entered.roster.as_ref()).map(|roster| roster.digest.as_str());
    let read = || {
        let whole = v1::Roster::decode(header.roster.as_slice()).map_err(|_| "the log's roster can't be decoded".to_owned())?;
        let digest: [u8; 32] = Sha256::digest(header.spec_toml.as_bytes()).into();
        let roster = conclave_proto::roster::read(&whole.entries, &header.job, &digest, secure.colluders);
        roster.map(|roster| roster.digest()).map_err(|fault: Fault| clip(&fault.message, MAX_TEXT))
    };
    let logged = if header.roster.is_empty() { None } else { Some(read()) };
    let check = match (&logged, own) {
        (None, None) => Check::skipped(NAME, "there is none yet"),
        (Some(Err(why)), _) => Check::fails(NAME, why.clone()),
        (Some(Ok(_)), None) => Check::skipped(NAME, "this party has not entered one yet"),
        (None, Some(_)) => Check::fails(NAME, "the log has no roster, but this party has entered one"),
        (Some(Ok(digest)), Some(own)) => {
            let wrong =
                (hex(digest) != own).then(|| "the log's roster differs from the one that this party has entered".to_owned());
            Check::of(NAME, wrong, format!("the roster of {} mask keys has SHA-256 {own}", spec.parties.len()))
        }
    };
    LoggedRoster { digest: logged.and_then(Result::ok), check: Some(check) }
}
