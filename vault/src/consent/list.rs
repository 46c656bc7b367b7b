//! Reads requests and decisions for the owner's commands.

use rusqlite::Row;

use super::error::ConsentError;
use super::standing::Standing;
use super::store::ConsentStore;

/// A job as it was requested, with the last decision on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Job id.
    pub job: String,
    /// The analyst, as the coordinator names them.
    pub analyst: String,
    /// SHA-256 of the text.
    pub digest: [u8; 32],
    /// The job as the analyst wrote it.
    pub spec_toml: String,
    /// First time of the request, UTC.
    pub asked: String,
    /// The last decision.
    pub decided: Option<Decided>,
    /// The owner's terms of the approval, a JSON object, also once the approval is withdrawn.
    pub permit: Option<String>,
    /// SHA-256 of the public key that signed the job; `None` for a request that an earlier version entered.
    pub signer: Option<[u8; 32]>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The decision.
    pub standing: Standing,
    /// Its time, UTC.
    pub time: String,
    /// `owner` or `policy`.
    pub decider: String,
    /// Reason; empty where none was given.
    pub reason: String,
}

impl Request {
    /// Returns the job's standing.
    pub fn standing(&self) -> Standing {
        self.decided.as_ref().map_or(Standing::Awaiting, |d| d.standing)
    }

    /// Returns the digest in hexadecimal.
    pub fn digest_hex(&self) -> String {
        self.digest.iter().map(|b| format!("{b:02x}")).collect()
    }
}

const SELECT: &str = "
SELECT r.job, r.analyst, r.spec_digest, r.spec_toml, r.asked, d.decision, d.time, d.decider, d.reason,
  (SELECT permit FROM decisions WHERE job = r.job AND decision = 'approved' AND permit IS NOT NULL ORDER BY number DESC LIMIT 1),
  r.signer
FROM requests r LEFT JOIN decisions d ON d.number = (SELECT max(number) FROM decisions WHERE job = r.job)";

impl ConsentStore {
    /// Returns every requested job, in the order of the requests.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn requests(&self) -> Result<Vec<Request>, ConsentError> {
        self.select(&format!("{SELECT} ORDER BY r.rowid"), [])
    }

    /// Returns the job of this id.
    ///
    /// # Errors
    /// [`ConsentError::Unknown`]; a failure of the database.
    pub fn request(&self, id: &str) -> Result<Request, ConsentError> {
        let found = self.select(&format!("{SELECT} WHERE r.job = ?1"), [id])?.pop();
        found.ok_or_else(|| ConsentError::Unknown(id.to_owned()))
    }

    fn select<P: rusqlite::Params>(&self, sql: &str, parameters: P) -> Result<Vec<Request>, ConsentError> {
        let read =
            || -> rusqlite::Result<Vec<Request>> { self.connection.prepare(sql)?.query_map(parameters, read_request)?.collect() };
        read().map_err(|e| ConsentError::failed(&self.path, &e))
    }
}

fn read_request(row: &Row<'_>) -> rusqlite::Result<Request> {
    let decision: Option<String> = row.get(5)?;
    let decided = match decision {
        None => None,
        Some(text) => Some(Decided {
            standing: Standing::parse(&text).unwrap_or(Standing::Rejected),
            time: row.get(6)?,
            decider: row.get(7)?,
            reason: row.get(8)?,
        }),
    };
    Ok(Request {
        job: row.get(0)?,
        analyst: row.get(1)?,
        digest: row.get(2)?,
        spec_toml: row.get(3)?,
        asked: row.get(4)?,
        decided,
        permit: row.get(9)?,
        signer: row.get(10)?,
    })
}
