//! Opening a job: every public constant is derived here, from the bytes that the job's digest covers.

use conclave_common::job::JobSpec;
use conclave_common::model;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::valid_name;
use conclave_proto::v1;
use sha2::{Digest, Sha256};

use super::{ActiveJob, Answerer};
use crate::data::bind;
use crate::ledger::{JobEntry, LedgerError};
use crate::policy::admit;

/// Each open job holds its own scaled copy of the shard.
const MAX_OPEN_JOBS: usize = 64;
/// Longer ids are nobody's; a UUID has 36 characters.
const MAX_JOB_ID: usize = 64;

impl Answerer {
    /// Opens a job, or opens it again, and gives the cleaned record count.
    ///
    /// # Errors
    /// A fault that names this party: [`ErrorCode::InvalidInput`], [`ErrorCode::Policy`], [`ErrorCode::Conflict`] where
    /// the id stands for another job, [`ErrorCode::Budget`] for a cap that can't be accounted for,
    /// [`ErrorCode::Internal`] once the ledger has failed.
    pub fn open(&mut self, request: &v1::OpenJob) -> Result<u64, Fault> {
        self.try_open(request).map_err(|fault| {
            tracing::warn!("job {:?} of analyst {:?} refused: {fault}", request.job, request.analyst);
            fault.at_party(self.party.clone())
        })
    }

    fn try_open(&mut self, request: &v1::OpenJob) -> Result<u64, Fault> {
        let digest = check_identity(request)?;
        let known = self.jobs.get(&request.job).is_some_and(|job| job.digest == digest);
        if !known && self.jobs.len() >= MAX_OPEN_JOBS {
            return Err(Fault::new(ErrorCode::Policy, format!("{MAX_OPEN_JOBS} jobs are open already; close one first")));
        }
        let spec = JobSpec::parse(&request.spec_toml).map_err(|e| invalid(e.to_string()))?;
        if !spec.parties.contains(&self.party) {
            return Err(invalid(format!("the job's `parties` do not name {:?}", self.party)));
        }
        admit(&self.policy, &self.budget, &self.shard, &request.analyst, &spec)?;
        let entry = JobEntry {
            job: &request.job,
            analyst: &request.analyst,
            spec_digest: &digest,
            spec_toml: &request.spec_toml,
            cap: spec.privacy.budget,
            records: self.shard.records(),
        };
        self.ledger.open_job(&entry).map_err(ledger_fault)?;
        if !known {
            let data = bind(&self.shard, &spec).map_err(|e| invalid(format!("the party {e}")))?;
            let model = model::build(&spec);
            tracing::info!("job {} ({:?}) of analyst {} is open", request.job, spec.name, request.analyst);
            self.jobs.insert(request.job.clone(), ActiveJob { spec, digest, model, data });
        }
        Ok(self.shard.records())
    }
}

fn check_identity(request: &v1::OpenJob) -> Result<[u8; 32], Fault> {
    let id = &request.job;
    if id.is_empty() || id.len() > MAX_JOB_ID || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(invalid("a job id is 1 to 64 letters, digits and -".into()));
    }
    if !valid_name(&request.analyst) {
        return Err(invalid(format!("{:?} is not an analyst's name", request.analyst)));
    }
    let digest: [u8; 32] = Sha256::digest(request.spec_toml.as_bytes()).into();
    if request.spec_digest != digest {
        return Err(invalid("the job's digest is not that of its text".into()));
    }
    Ok(digest)
}

fn ledger_fault(error: LedgerError) -> Fault {
    match error {
        LedgerError::Job(message) => Fault::new(ErrorCode::Conflict, message),
        LedgerError::Accounting(e) => Fault::new(ErrorCode::InvalidInput, format!("[privacy]: {e}")),
        // What failed is the owner's to know; the log has it.
        _ => Fault::new(ErrorCode::Internal, "the ledger has failed; the data owner must restart the party"),
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}
