//! Checks the job's signature, and whether it is the job to which this party consented.

use std::time::{Duration, UNIX_EPOCH};

use conclave_common::query::PartyMetadata;
use conclave_proto::convert::opened_from_wire;
use conclave_proto::submission;
use conclave_proto::v1::LogHeader;
use sha2::{Digest, Sha256};

use super::authorities::Authorities;
use super::check::{Check, MAX_TEXT};
use crate::config::PartyConfig;
use crate::ledger_views::Entered;
use conclave_vault::consent::Request;
use conclave_vault::text::clip;

/// Maximum length of a reason that names files of this party's.
const MAX_CAUSE: usize = 600;

/// Checks the analyst's signature over the job, and the id derived from it.
pub(super) fn signature(authorities: &Authorities, header: &LogHeader, id: &str, entered: Option<&Entered>) -> Check {
    const NAME: &str = "signature";
    let signed = match submission::check(header.submission.as_ref(), &header.analyst, &header.spec_toml) {
        Err(fault) => return Check::fails(NAME, clip(&fault.message, MAX_TEXT)),
        Ok(signed) if signed != id || header.job != id => {
            return Check::fails(NAME, "the job's id is not the one signed by its analyst: another job was substituted");
        }
        Ok(_) => header.submission.as_ref(),
    };
    // Checked as of the time when this party admitted the job: a certificate that has since expired was valid then.
    let moment = entered.and_then(|e| u64::try_from(e.time_ms).ok()).map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
    let checked = match signed {
        Some(signed) => authorities.check(signed, moment),
        None => Err("the job is not signed".to_owned()),
    };
    let signed = format!("analyst {} signed this job", header.analyst);
    match checked {
        Ok(None) => Check::holds(NAME, signed),
        Ok(Some(retired)) => {
            Check::holds(NAME, format!("{signed}, with a certificate of the retired CA in {}", retired.display()))
        }
        Err(why) => Check::fails(NAME, clip(&why, MAX_CAUSE)),
    }
}

/// Compares the job in the log with the one that this party received, consented to and entered.
pub(super) fn consent(config: &PartyConfig, header: &LogHeader, request: &Request, entered: Option<&Entered>) -> Check {
    let digest: [u8; 32] = Sha256::digest(header.spec_toml.as_bytes()).into();
    let other = |whose: &str| Some(format!("the job file in the log is not the one that {whose}: it was changed afterwards"));
    let wrong = if digest != request.digest || header.analyst != request.analyst {
        other("this party received for consent")
    } else if entered.is_some_and(|e| digest != e.spec_digest || header.analyst != e.analyst) {
        other("this party's ledger recorded")
    } else {
        entered.and_then(|entered| own_metadata(config, header, entered))
    };
    Check::of("consent", wrong, format!("the job file has SHA-256 {}", request.digest_hex()))
}

/// Compares the public metadata of this party's data with its report.
fn own_metadata(config: &PartyConfig, header: &LogHeader, entered: &Entered) -> Option<String> {
    let own = header.parties.iter().find(|party| party.name == config.name);
    let reported = own.and_then(|party| party.opened.as_ref()).map(opened_from_wire);
    let expected = PartyMetadata::new(config.budget.unit, entered.records);
    match reported {
        Some(Ok(reported)) if reported == expected => None,
        // The reply that this party has opened the job may not have arrived yet.
        None if own.is_some() => None,
        _ => Some("the log has another number of this party's records, or another unit of privacy, than it reported".to_owned()),
    }
}
