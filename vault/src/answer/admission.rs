//! Decides whether a job may be opened: a pure function of named facts, without effects.
//!
//! [`admit`] makes the decisions in a fixed order, which is their precedence, and asks for each fact only after the decisions before it.
//! No fact depends on a record, so no refusal does. [`super::open`] gathers the facts and carries the decision out.

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Adjacency, Budget, Honest, Spent};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::valid_name;
use conclave_proto::v1;
use conclave_proto::version::check_protocol;
use sha2::{Digest, Sha256};

use super::faults::{MAX_JOB_ID, ledger_fault};
use super::remaining_budget::RoomTerms;
use super::secrecy::NOT_ADMITTED;
use crate::config::{Approve, Policy, SiteParameters};
use crate::consent::Standing;
use crate::data::{MAX_UNPUBLISHED_UNITS, Memory, Precision};
use crate::ledger::{LedgerError, ReserveLeft, Room};
use crate::members::NotAdmitted;
use crate::policy::{self, Applicant, ShardFacts};
use crate::secure::SecureSettings;
use crate::text::clip;

/// Each open job holds its own scaled copy of the shard, or the means to scale it.
pub(super) const MAX_OPEN_JOBS: usize = 64;
/// Mebibytes that the open jobs' copies may take together unless the owner sets another limit.
const MEMORY_MIB: u64 = 4096;

/// A fact that is looked up at most once, and only if the decisions before it did not end the matter.
pub(super) type Later<'a, T> = Box<dyn FnOnce() -> T + 'a>;

/// The facts that an admission rests on.
pub(super) struct Facts<'a> {
    pub(super) request: &'a v1::OpenJob,
    /// The party's own name.
    pub(super) party: &'a str,
    /// The protocol that is spoken with the coordinator.
    pub(super) spoken: u32,
    /// The analyst's signature, against the consortium's certificates and the list of revoked ones.
    pub(super) signature: Later<'a, Result<(), NotAdmitted>>,
    pub(super) policy: &'a Policy,
    pub(super) budget: &'a Budget,
    pub(super) shard: ShardFacts<'a>,
    /// Precision in which open jobs hold their records.
    pub(super) precision: Precision,
    /// The owner's `[secure]` settings, where the party has any.
    pub(super) secure: Option<&'a SecureSettings>,
    pub(super) open_jobs: OpenJobs,
    pub(super) ledger: LedgerFacts<'a>,
}

/// The jobs that are open at the party.
pub(super) struct OpenJobs {
    pub(super) number: usize,
    /// The job of the request is among them, with the same text.
    pub(super) has_this: bool,
    /// Columns that they hold together.
    pub(super) columns: u64,
}

/// The facts that the ledger knows.
pub(super) struct LedgerFacts<'a> {
    /// The job is entered.
    pub(super) has_job: bool,
    /// The job is entered, and has not been closed since: its cap is reserved.
    pub(super) is_open: bool,
    /// The job is entered and its answers leave masked.
    pub(super) is_masked: bool,
    /// The limit on jobs that are opened and ask nothing.
    pub(super) idle: Later<'a, Result<(), LedgerError>>,
    /// The budget available to the job, by the number of parties whose noise its answers are priced by.
    pub(super) room: Box<dyn FnOnce(Honest) -> Result<Room, LedgerError> + 'a>,
    /// The remaining reserve of delta.
    pub(super) reserve: ReserveLeft,
}

/// The decision on a request to open a job, before the owner's consent.
#[derive(Debug)]
pub(super) enum Decision {
    /// The job is refused.
    Refused(Fault),
    /// The job is refused, and closed if it is open: its analyst's certificate is revoked.
    Revoked(Fault),
    /// There is no room for the job before others have ended; the text gives the reason.
    Full(String),
    /// The job is within all limits, and the owner's consent decides.
    AskOwner(Box<Admitted>),
}

/// A job within all limits.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) spec: JobSpec,
    /// SHA-256 of the job's text.
    pub(super) digest: [u8; 32],
    /// Number of parties whose noise protects its answers, as the owner sees it.
    pub(super) trusted: Honest,
    /// The policy consents in the owner's place.
    pub(super) is_automatic: bool,
    /// The ledger has the job already.
    pub(super) is_entered: bool,
    /// The job is open already, under the same text.
    pub(super) is_open: bool,
    /// Limit on the budget that the job may spend from now on, beside its cap.
    pub(super) room: Option<Spent>,
    is_masked: bool,
}

/// The course of an admitted job, given the owner's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// The owner has yet to decide.
    Pending,
    /// The owner decided against the job.
    Closed {
        /// The owner's decision.
        standing: Standing,
        /// The job is closed first: its masked answers left a key that has lain here since.
        has_key: bool,
    },
    /// The job is open already: its entry is confirmed, and no record is read.
    Reopened,
    /// The job is entered, its reply delay measured, its records bound and its fixed sums computed.
    Open,
}

impl Admitted {
    /// Decides by the owner's consent.
    pub(super) fn course(&self, standing: Standing) -> Course {
        match standing {
            Standing::Awaiting => Course::Pending,
            Standing::Rejected | Standing::Revoked => Course::Closed { standing, has_key: self.is_masked },
            Standing::Approved if self.is_open => Course::Reopened,
            Standing::Approved => Course::Open,
        }
    }
}

/// Decides on a request to open a job. The first decision that applies is the one that counts.
pub(super) fn admit(facts: Facts<'_>) -> Decision {
    decide(facts).unwrap_or_else(|decision| decision)
}

/// The decisions in their order; one that ends the matter is an error.
fn decide(facts: Facts<'_>) -> Result<Decision, Decision> {
    let Facts { request, party, policy, budget, shard, open_jobs, ledger, .. } = facts;
    let digest = check_identity(request)?;
    (facts.signature)().map_err(|why| match why {
        NotAdmitted::Unsigned(fault) => Decision::Refused(fault),
        NotAdmitted::Revoked(fault) => Decision::Revoked(fault),
    })?;
    if !open_jobs.has_this && open_jobs.number >= MAX_OPEN_JOBS {
        return Err(Decision::Full(format!("{MAX_OPEN_JOBS} jobs are open there already")));
    }
    let spec = JobSpec::parse(&request.spec_toml).map_err(|e| invalid(e.to_string()))?;
    if !spec.parties.iter().any(|name| name == party) {
        return Err(invalid(format!("the job's `parties` do not name {party:?}")).into());
    }
    check_protocol(&spec, facts.spoken, party)?;
    if !open_jobs.has_this {
        check_memory(&spec, policy, &shard, facts.precision, open_jobs.columns)?;
        (ledger.idle)().map_err(ledger_fault)?;
    }
    let trusted = facts.secure.map_or(Honest::ALONE, |settings| settings.trusted(party, &spec));
    policy::admit(policy, budget, &shard, &Applicant { analyst: &request.analyst, spec: &spec, trusted })?;
    let members_known = check_masked(facts.secure, party, &spec)?;
    let terms = RoomTerms::new((&request.analyst, &spec), policy, budget.unit, (ledger.room)(spec.honest()))?;
    if !ledger.is_open {
        terms.admit_remaining()?;
        // No job that ends gives its part of the reserve back: nothing can be waited for.
        let admitted = ledger.reserve.admit(terms.cost.reserve_units, &spec.privacy.budget);
        admitted.map_err(|why| Fault::new(ErrorCode::Policy, why))?;
    }
    if !ledger.has_job {
        // A job already in the ledger is bound to the data version it was opened on: should bad rows have become inert ones since, the
        // data have changed.
        policy::admit_inert(&shard, &spec)?;
    }
    let room = terms.reserve(ledger.is_open).map_err(Decision::Full)?;
    // The policy consents to no masked job with a member whom the owner does not know: anyone who invents members is paid for numbers
    // that hide no other party's.
    let asked_of_owner = spec.sites.is_some() && policy.site_parameters != SiteParameters::Allow;
    let is_automatic = policy.approve == Approve::Automatic && members_known && !asked_of_owner;
    let (is_entered, is_open, is_masked) = (ledger.has_job, open_jobs.has_this, ledger.is_masked);
    Ok(Decision::AskOwner(Box::new(Admitted { spec, digest, trusted, is_automatic, is_entered, is_open, room, is_masked })))
}

/// A fault refuses the job.
impl From<Fault> for Decision {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

/// Checks the job's id, the analyst's name and the digest of the job's text, and returns the digest.
fn check_identity(request: &v1::OpenJob) -> Result<[u8; 32], Fault> {
    let id = &request.job;
    if id.is_empty() || id.len() > MAX_JOB_ID || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(invalid("a job id is 1 to 64 letters, digits and -".into()));
    }
    if !valid_name(&request.analyst) {
        return Err(invalid(format!("{:?} is not an analyst's name", clip(&request.analyst, MAX_JOB_ID))));
    }
    let digest: [u8; 32] = Sha256::digest(request.spec_toml.as_bytes()).into();
    if request.spec_digest != digest {
        return Err(invalid("the job's digest is not that of its text".into()));
    }
    Ok(digest)
}

/// Checks that the open jobs' scaled copies of the data fit in memory beside this one's. Counted from public figures: neither the refusal
/// nor its words depend on the number of rows where that is secret.
///
/// # Errors
/// A refusal, [`ErrorCode::Policy`], for a job that does not fit even alone; [`Decision::Full`] where others have to end first.
fn check_memory(
    spec: &JobSpec,
    policy: &Policy,
    shard: &ShardFacts<'_>,
    precision: Precision,
    open_columns: u64,
) -> Result<(), Decision> {
    if shard.memory != Memory::Copies {
        return Ok(());
    }
    let limit = policy.max_memory_mib.unwrap_or(MEMORY_MIB);
    let rows = match shard.unit {
        unit if unit.adjacency == Adjacency::AddRemove => MAX_UNPUBLISHED_UNITS,
        unit => shard.units.saturating_mul(u64::from(unit.records_per_person().unwrap_or(1))),
    };
    // A job's columns are scaled as doubles before they are held in the owner's precision.
    let opening = rows.saturating_mul(Precision::Double.bytes() * columns_held(spec));
    let open = rows.saturating_mul(precision.bytes().saturating_mul(open_columns));
    let most = limit.saturating_mul(1 << 20);
    if opening > most {
        let message = format!(
            "the job's columns would take more memory than the owner's max_memory_mib of {limit}: ask the owner to raise it"
        );
        return Err(Fault::new(ErrorCode::Policy, message).into());
    }
    if opening.saturating_add(open) > most {
        let why = format!("the open jobs' columns take what the owner's max_memory_mib of {limit} leaves room for");
        return Err(Decision::Full(why));
    }
    Ok(())
}

/// Counts the columns that a job's copy has: the outcome, every feature of the design, and the model's other columns.
pub(super) fn columns_held(spec: &JobSpec) -> u64 {
    let features = spec.model.design().map_or(0, |design| design.features.len());
    (1 + features + spec.model.auxiliary().len()) as u64
}

/// Applies [`policy::admit_masked`] by the owner's settings; a party without any admits no masked job.
fn check_masked(secure: Option<&SecureSettings>, party: &str, spec: &JobSpec) -> Result<bool, Fault> {
    match secure.filter(|settings| settings.allow) {
        None if spec.aggregation.is_secure() => Err(Fault::new(ErrorCode::Policy, NOT_ADMITTED)),
        None => Ok(true),
        Some(settings) => policy::admit_masked(settings, party, spec),
    }
}

/// Returns the fault of an invalid request.
pub(super) fn invalid(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
#[path = "tests/admission.rs"]
mod tests;
