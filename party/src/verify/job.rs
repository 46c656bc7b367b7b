//! Whose job it is, and whether it is the one that this party consented to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conclave_common::query::PartyMetadata;
use conclave_proto::convert::opened_from_wire;
use conclave_proto::submission;
use conclave_proto::v1::LogHeader;
use sha2::{Digest, Sha256};

use super::check::{Check, LONGEST_WORD};
use crate::config::PartyConfig;
use crate::ledger_views::Entered;
use conclave_vault::consent::Request;
use conclave_vault::text::clip;

/// The analyst's signature over the job, and the id that follows from it.
pub(super) fn signature(config: &PartyConfig, header: &LogHeader, id: &str, entered: Option<&Entered>) -> Check {
    const NAME: &str = "signature";
    let signed = match submission::check(header.submission.as_ref(), &header.analyst, &header.spec_toml) {
        Err(fault) => return Check::fails(NAME, clip(&fault.message, LONGEST_WORD)),
        Ok(signed) if signed != id || header.job != id => {
            return Check::fails(NAME, "the job's id is not the one that its analyst signed: another job stands in its place");
        }
        Ok(_) => header.submission.as_ref(),
    };
    // As of when this party let the job in: a certificate that has run out since was good then.
    let moment = entered.and_then(|e| u64::try_from(e.time_ms).ok()).map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
    let path = config.identity.join("ca.pem");
    let checked = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display())).and_then(|ca| match signed {
        Some(signed) => {
            submission::check_signer(signed, &ca, moment.unwrap_or_else(SystemTime::now)).map_err(|fault| fault.message)
        }
        None => Err("the job is not signed".to_owned()),
    });
    Check::of(NAME, checked.err().map(|why| clip(&why, LONGEST_WORD)), format!("analyst {} signed this job", header.analyst))
}

/// The job in the log against the one that this party was shown, consented to and entered.
pub(super) fn consent(config: &PartyConfig, header: &LogHeader, asked: &Request, entered: Option<&Entered>) -> Check {
    let digest: [u8; 32] = Sha256::digest(header.spec_toml.as_bytes()).into();
    let other = |whose: &str| Some(format!("the job file in the log is not the one that {whose}: it was changed since"));
    let wrong = if digest != asked.digest || header.analyst != asked.analyst {
        other("this party was asked to consent to")
    } else if entered.is_some_and(|e| digest != e.spec_digest || header.analyst != e.analyst) {
        other("this party's ledger has entered")
    } else {
        entered.and_then(|entered| own_metadata(config, header, entered))
    };
    Check::of("consent", wrong, format!("the job file has SHA-256 {}", asked.digest_hex()))
}

/// What this party reported of its data.
fn own_metadata(config: &PartyConfig, header: &LogHeader, entered: &Entered) -> Option<String> {
    let own = header.parties.iter().find(|party| party.name == config.name);
    let reported = own.and_then(|party| party.opened.as_ref()).map(opened_from_wire);
    let expected = PartyMetadata::new(config.budget.unit, entered.records);
    match reported {
        Some(Ok(reported)) if reported == expected => None,
        // The answer that this party has opened the job may not have arrived yet.
        None if own.is_some() => None,
        _ => {
            Some("the log names another number of this party's records, or another unit of privacy, than it reported".to_owned())
        }
    }
}
