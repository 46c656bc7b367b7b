//! The approvals of jobs, as the ledger's chain of hashes keeps them.

use std::collections::HashMap;
use std::path::Path;

use conclave_vault::ledger::error::LedgerError;
use conclave_vault::ledger::events::unhex;
use conclave_vault::ledger::schema;
use conclave_vault::secure::Fingerprint;
use serde_json::Value;

use super::permit::Permit;

/// An approval in a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approval {
    /// The owner's terms, a JSON object.
    pub(crate) permit: Option<String>,
    /// SHA-256 of the public key that signed the job; `None` in an entry of an earlier version.
    pub(crate) signer: Option<[u8; 32]>,
    /// Time of the decision.
    pub(crate) decided: Option<String>,
    /// True if a later decision revoked it.
    pub(crate) is_revoked: bool,
}

impl Approval {
    /// Reads the body of an event `approve`. A body that is no JSON object is an approval under terms that cannot be read.
    pub(crate) fn read(body: &str) -> Self {
        let Ok(Value::Object(body)) = body.parse() else {
            return Self { permit: Some(String::new()), signer: None, decided: None, is_revoked: false };
        };
        let signer = body.get("signer").and_then(Value::as_str).and_then(unhex);
        let permit = body.get("permit").map(|permit| permit.as_str().map_or_else(|| permit.to_string(), str::to_owned));
        let decided = body.get("decided").and_then(Value::as_str).map(str::to_owned);
        Self { permit, signer, decided, is_revoked: false }
    }

    /// Notes the body of an event `revoke`. Without another decision than the approval it states that the decisions could not be read.
    fn revoke(&mut self, body: &str) {
        let body: Value = body.parse().unwrap_or_default();
        let decided = body.get("decided").and_then(Value::as_str);
        self.is_revoked |= decided.is_some() && decided != self.decided.as_deref();
    }
}

/// Names each difference between the terms of a decision and those in the ledger, as a sentence without its full stop.
pub(crate) fn differences(permit: Option<&str>, signer: Option<[u8; 32]>, entered: &Approval) -> Vec<String> {
    let value = |stored: Option<&str>| stored.map(|text| text.parse::<Value>().map_err(|_| text.to_owned()));
    let mut found = Vec::new();
    if value(permit) != value(entered.permit.as_deref()) {
        let (decided, entered) = (words(permit), words(entered.permit.as_deref()));
        found.push(format!("permit_differs: the file of decisions has {decided}, the ledger has {entered}; the stricter holds"));
    }
    if let (Some(decided), Some(entered)) = (signer, entered.signer)
        && decided != entered
    {
        let (decided, entered) = (Fingerprint(decided), Fingerprint(entered));
        found.push(format!("signer_differs: the file of decisions names the analyst's key {decided}, the ledger {entered}"));
    }
    found
}

fn words(stored: Option<&str>) -> String {
    match stored.map(Permit::read) {
        None => "no permit".to_owned(),
        Some(Ok(permit)) if permit.is_empty() => "a permit without terms".to_owned(),
        Some(Ok(permit)) => format!("a permit ({})", permit.words()),
        Some(Err(_)) => "a permit that can't be read".to_owned(),
    }
}

/// Returns the approval of every job that has one in the ledger, by the job's id. Takes no lock.
///
/// # Errors
/// [`LedgerError::Missing`]; a failure of the database.
pub(crate) fn approvals(ledger: &Path) -> Result<HashMap<String, Approval>, LedgerError> {
    let connection = schema::connect_read_only(ledger)?;
    let mut select = connection.prepare(
        "SELECT j.job, e.kind, e.body FROM events e JOIN jobs j ON j.seq = e.job WHERE e.kind IN ('approve', 'revoke') ORDER BY e.seq",
    )?;
    let mut approvals: HashMap<String, Approval> = HashMap::new();
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (job, kind, body): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if kind == "approve" {
            approvals.entry(job).or_insert_with(|| Approval::read(&body));
        } else if let Some(approval) = approvals.get_mut(&job) {
            approval.revoke(&body);
        }
    }
    Ok(approvals)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A revocation has a decision of its own; one that follows from decisions that could not be read has none, or the approval's.
    #[test]
    fn a_revocation_is_known_by_its_decision() {
        let revoked = |body: &str| {
            let mut approval = Approval::read("{\"by\":\"owner\",\"decided\":\"2026-03-01T00:00:00Z\"}");
            approval.revoke(body);
            approval.is_revoked
        };
        assert!(revoked("{\"by\":\"owner\",\"decided\":\"2026-03-02T00:00:00Z\",\"reason\":\"over\"}"));
        assert!(!revoked("{}") && !revoked("{\"by\":\"owner\",\"decided\":\"2026-03-01T00:00:00Z\"}") && !revoked("x"));
    }
}
