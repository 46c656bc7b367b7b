//! The owner's permits in an export: charges after the last day, and differences from the file of decisions.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use crate::ledger_views::approvals::{Approval, differences};
use crate::ledger_views::moment::to_milliseconds;
use crate::ledger_views::permit::Permit;

/// Charges of one job after the last day of its permit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Late {
    /// The job's id.
    pub job: String,
    /// The last day, UTC.
    pub last_day: String,
    /// Number of charges after it.
    pub charges: u64,
    /// Time of the first of them, UTC.
    pub first: String,
}

/// The approvals of a ledger and the charges after their last day.
#[derive(Debug, Default)]
pub struct Permits {
    of_job: BTreeMap<u64, (Approval, Option<Permit>)>,
    /// Number of charges after the last day, and the time of the first, Unix time in milliseconds.
    late: BTreeMap<u64, (u64, i64)>,
}

impl Permits {
    /// Notes the body of an event `approve` of the job with this number.
    pub(super) fn approve(&mut self, job: u64, body: &str) {
        let approval = Approval::read(body);
        let permit = approval.permit.as_deref().and_then(|stored| Permit::read(stored).ok());
        self.of_job.entry(job).or_insert((approval, permit));
    }

    /// Notes a charge of the job with this number.
    pub(super) fn charge(&mut self, job: u64, time_ms: i64) {
        if self.of_job.get(&job).is_some_and(|(_, permit)| permit.as_ref().is_some_and(|permit| permit.check(time_ms).is_err())) {
            self.late.entry(job).or_insert((0, time_ms)).0 += 1;
        }
    }

    /// Returns the jobs that were charged after the last day of their permit; `id` returns the id of a job's number.
    pub fn late(&self, id: impl Fn(u64) -> String) -> Vec<Late> {
        let late = |(job, (charges, first)): (&u64, &(u64, i64))| {
            let last_day = self.of_job.get(job)?.1.as_ref()?.last_day()?.to_string();
            Some(Late { job: id(*job), last_day, charges: *charges, first: to_milliseconds(*first) })
        };
        self.late.iter().filter_map(late).collect()
    }

    /// Compares the approvals with a copy of the owner's file of decisions, and names every difference.
    ///
    /// # Errors
    /// A sentence: the file can't be read as one of decisions.
    pub fn differences(&self, decisions: &Path, id: impl Fn(u64) -> String) -> Result<Vec<String>, String> {
        let decided =
            read(decisions).map_err(|e| format!("{}: can't be read as a file of decisions: {e}", decisions.display()))?;
        let mut found = Vec::new();
        for (job, (approval, _)) in &self.of_job {
            let job = id(*job);
            match decided.get(&job) {
                Some((permit, signer)) => {
                    found.extend(
                        differences(permit.as_deref(), *signer, approval).into_iter().map(|why| format!("job {job}: {why}")),
                    );
                }
                None => found.push(format!("job {job}: the ledger has an approval, and the file of decisions has none")),
            }
        }
        Ok(found)
    }
}

type Decided = (Option<String>, Option<[u8; 32]>);

/// Reads the permit and the signer's key of every job that was approved.
fn read(decisions: &Path) -> rusqlite::Result<BTreeMap<String, Decided>> {
    let connection = Connection::open_with_flags(decisions, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let signer = if connection.prepare("SELECT signer FROM requests").is_ok() { "r.signer" } else { "NULL" };
    let mut select = connection.prepare(&format!(
        "SELECT r.job, d.permit, {signer} FROM requests r JOIN decisions d ON d.job = r.job WHERE d.decision = 'approved' ORDER BY d.number"
    ))?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2027-04-01T00:00:00Z, the first moment after the permit.
    const END: i64 = 1_806_451_200_000 + 86_400_000;
    const BODY: &str = "{\"by\":\"owner\",\"permit\":{\"until\":\"2027-03-31\"},\"signer\":\"0101010101010101010101010101010101010101010101010101010101010101\"}";

    fn id(job: u64) -> String {
        format!("job-{job}")
    }

    #[test]
    fn charges_after_the_last_day_are_counted() {
        let mut permits = Permits::default();
        permits.approve(2, BODY);
        permits.approve(3, "{\"by\":\"owner\"}");
        for (job, time) in [(2, END - 1), (3, END + 5), (7, END + 5)] {
            permits.charge(job, time);
        }
        assert!(permits.late(id).is_empty());
        permits.charge(2, END);
        permits.charge(2, END + 1);
        let late = permits.late(id);
        assert_eq!((late.len(), late[0].job.as_str(), late[0].last_day.as_str(), late[0].charges), (1, "job-2", "2027-03-31", 2));
        assert_eq!(late[0].first, "2027-04-01T00:00:00.000Z");
    }

    #[test]
    fn a_file_of_decisions_is_compared_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("d.consent");
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE requests (job TEXT, signer BLOB); CREATE TABLE decisions (number INTEGER, job TEXT, decision TEXT, permit TEXT);
                 INSERT INTO requests VALUES ('job-2', NULL);
                 INSERT INTO decisions VALUES (1, 'job-2', 'approved', '{\"until\":\"2027-03-31\"}'), (2, 'job-2', 'revoked', NULL);",
            )
            .unwrap();
        let mut permits = Permits::default();
        permits.approve(2, BODY);
        assert!(permits.differences(&file, id).unwrap().is_empty());
        connection.execute("UPDATE decisions SET permit = '{\"until\":\"2029-03-31\"}' WHERE number = 1", []).unwrap();
        let named = permits.differences(&file, id).unwrap();
        assert!(
            named.len() == 1 && named[0].starts_with("job job-2: permit_differs: ") && named[0].contains("2029"),
            "{named:?}"
        );
        permits.approve(5, "{}");
        assert!(permits.differences(&file, id).unwrap()[1].starts_with("job job-5: "));
        assert!(permits.differences(&folder.path().join("none"), id).is_err());
    }
}
