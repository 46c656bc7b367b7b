//! Opening a job: every public constant is derived here, from the bytes that the job's digest covers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Adjacency, Honest};
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::valid_name;
use conclave_proto::v1;
use conclave_proto::version::suits;
use sha2::{Digest, Sha256};

use super::active_job::{ActiveJob, NewJob};
use super::answerer::{Answerer, LONGEST_WORD};
use super::delay::JobDelay;
use super::measure::measure;
use super::records::Records;
use super::rehearsal::{Rehearsal, Unmeasured};
use super::secrecy::NOT_ADMITTED;
use super::sums::NoSum;
use crate::config::ReplyDelay;
use crate::consent::Standing;
use crate::data::{BindError, Binding, MAX_UNPUBLISHED_UNITS, Scaled, Streamed, bind};
use crate::data::{Memory, Precision};
use crate::ledger::{JobEntry, LedgerError};
use crate::members::NotAdmitted;
use crate::policy::{admit, admit_inert, admit_masked};
use crate::text::clip;

/// Each open job holds its own scaled copy of the shard, or what it takes to scale it.
const MAX_OPEN_JOBS: usize = 64;
/// Mebibytes that the open jobs' copies may take together unless the owner says otherwise.
const MEMORY_MIB: u64 = 4096;
/// Delay of opening a job where the number of records is not public: enough for the largest shard that is admitted then.
const UNPUBLISHED_OPENING: Duration = Duration::from_secs(1);
/// Longer ids are nobody's; a UUID has 36 characters.
pub const MAX_JOB_ID: usize = 64;

/// What becomes of a coordinator's wish to open a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Opening {
    /// It is open, on this, and with this key for its masks, where its answers leave masked.
    Opened(PartyMetadata, Option<Box<v1::MaskKey>>),
    /// Its owner has yet to decide.
    Pending,
    /// There is no room for it before other jobs have ended; why.
    Full(String),
}

impl Answerer {
    /// Opens a job, or opens it again, unless its owner has yet to decide.
    ///
    /// # Errors
    /// A fault that names this party: [`ErrorCode::InvalidInput`], [`ErrorCode::Policy`], [`ErrorCode::Conflict`] where
    /// the id stands for another job, [`ErrorCode::Budget`] for a cap that can't be accounted for,
    /// [`ErrorCode::Unreachable`] where nothing is wrong with the job and its owner has to mend something first, as once the ledger has
    /// failed.
    pub fn open(&mut self, request: &v1::OpenJob) -> Result<Opening, Fault> {
        self.try_open(request).map_err(|fault| {
            let (job, analyst) = (clip(&request.job, MAX_JOB_ID), clip(&request.analyst, MAX_JOB_ID));
            tracing::warn!(%job, %analyst, "job refused: {}", clip(&fault.to_string(), LONGEST_WORD));
            fault.at_party(self.party.clone())
        })
    }

    fn try_open(&mut self, request: &v1::OpenJob) -> Result<Opening, Fault> {
        let digest = check_identity(request)?;
        self.signed(request)?;
        let known = self.jobs.get(&request.job).is_some_and(|job| job.digest == digest);
        if !known && self.jobs.len() >= MAX_OPEN_JOBS {
            return Ok(Opening::Full(format!("{MAX_OPEN_JOBS} jobs are open there already")));
        }
        let spec = JobSpec::parse(&request.spec_toml).map_err(|e| invalid(e.to_string()))?;
        if !spec.parties.contains(&self.party) {
            return Err(invalid(format!("the job's `parties` do not name {:?}", self.party)));
        }
        suits(&spec, self.spoken, &self.party)?;
        if !known {
            if let Some(why) = self.lacks_memory(&spec)? {
                return Ok(Opening::Full(why));
            }
            self.ledger.admit_idle(&request.job, &request.analyst).map_err(ledger_fault)?;
        }
        let trusted = self.secure_settings().map_or(Honest::ALONE, |settings| settings.trusted(&self.party, &spec));
        admit(&self.policy, &self.budget, &self.shard, &request.analyst, (&spec, trusted))?;
        let all_known = self.admit_masked(&spec)?;
        let entered = self.ledger.state().job(&request.job).is_some();
        if !entered {
            self.admit_left(&request.analyst, &spec)?;
            self.ledger.admit_reserve(&spec.privacy.budget).map_err(|why| Fault::new(ErrorCode::Policy, why))?;
            // A job of before has the records that it was entered on: should bad rows have become inert ones since, the data have changed.
            admit_inert(&self.shard, &spec)?;
        }
        match self.consented(request, &digest, all_known)? {
            Standing::Approved => {}
            Standing::Awaiting => return Ok(Opening::Pending),
            decided => {
                // Decided while the party was away, perhaps: the key of the job's masks has lain there since.
                if self.ledger.is_masked(&request.job) {
                    // A failure has been logged, and the ledger answers no more.
                    drop(self.close(&request.job, "consent withdrawn"));
                }
                return Err(self.decided_against(&request.job, decided));
            }
        }
        // After every break of the connection, so also when this machine was copied or set back.
        self.noise.renew();
        let metadata = self.shard.metadata();
        let entry = JobEntry {
            job: &request.job,
            analyst: &request.analyst,
            spec_digest: &digest,
            spec_toml: &request.spec_toml,
            cap: spec.privacy.budget.of(self.budget.unit),
            records: metadata.records().or(metadata.persons()).unwrap_or(0),
        };
        self.ledger.open_job(&entry).map_err(ledger_fault)?;
        if !entered {
            self.enter_decision(&request.job, "approve").map_err(ledger_fault)?;
        }
        let (masking, mask_key) = self.masking_of(&request.job, &spec, digest)?;
        if !known {
            // Public constants first, from made-up records; then the real ones are read.
            let delay = self.delay_of_job(&request.job, &spec)?;
            self.noise.keep(self.jobs.values().map(|job| job.spec.privacy.noise).chain([spec.privacy.noise]));
            self.reading = delay.map(|delay| (Instant::now(), delay.open));
            let records = self.records_of(&spec)?;
            let idle = if masking.is_secure() { self.idle_before(&request.job) } else { Duration::ZERO };
            let parts = NewJob { spec, digest, records, delay, masking, trusted, idle };
            let active = ActiveJob::new(parts, self.budget.unit, &self.threads).map_err(|why| {
                tracing::error!(job = %request.job, "the job can't be opened: {why}");
                if matches!(why, NoSum::Unread(_)) {
                    self.ledger.halt(&why.to_string());
                }
                match why {
                    NoSum::Unread(_) => Fault::new(
                        ErrorCode::Unreachable,
                        "it can't read its data: its owner has to put them back and start it again",
                    ),
                    NoSum::Kernel | NoSum::Sample => {
                        Fault::new(ErrorCode::Internal, "the party can't sum over its data; its owner's log says why")
                    }
                }
            })?;
            tracing::info!(job = %request.job, analyst = %request.analyst, name = ?active.spec.name, "job is open");
            self.jobs.insert(request.job.clone(), active);
        }
        Ok(Opening::Opened(metadata, mask_key))
    }
}

impl Answerer {
    /// As [`policy::admit_masked`] by the owner's settings; a party without any admits no such job.
    fn admit_masked(&self, spec: &JobSpec) -> Result<bool, Fault> {
        match self.secure_settings().filter(|settings| settings.allow) {
            None if spec.aggregation.is_secure() => Err(Fault::new(ErrorCode::Policy, NOT_ADMITTED)),
            None => Ok(true),
            Some(settings) => admit_masked(settings, &self.party, spec),
        }
    }

    /// The open jobs' scaled copies of the data must fit: why they don't, should others have to end first. Counted from what is public: neither
    /// the refusal nor its words depend on how many rows there are where that is not.
    ///
    /// # Errors
    /// [`ErrorCode::Policy`] for a job that does not fit even alone.
    fn lacks_memory(&self, spec: &JobSpec) -> Result<Option<String>, Fault> {
        if self.shard.memory() != Memory::Copies {
            return Ok(None);
        }
        let limit = self.policy.max_memory_mib.unwrap_or(MEMORY_MIB);
        let rows = match self.shard.metadata().unit() {
            unit if unit.adjacency == Adjacency::AddRemove => MAX_UNPUBLISHED_UNITS,
            unit => self.shard.units().saturating_mul(u64::from(unit.records_per_person().unwrap_or(1))),
        };
        let held = |spec: &JobSpec| rows.saturating_mul(self.precision.bytes() * columns_held(spec));
        // A job's columns are scaled as doubles before they are held in the owner's precision.
        let opening = rows.saturating_mul(Precision::Double.bytes() * columns_held(spec));
        let all = self.jobs.values().fold(opening, |sum, job| sum.saturating_add(held(&job.spec)));
        let most = limit.saturating_mul(1 << 20);
        if opening > most {
            let message = format!(
                "the job's columns would take more memory than the owner's max_memory_mib of {limit}: ask the owner to raise it"
            );
            return Err(Fault::new(ErrorCode::Policy, message));
        }
        let why = || format!("the open jobs' columns take what the owner's max_memory_mib of {limit} leaves room for");
        Ok((all > most).then(why))
    }

    /// The records as the job's passes read them. Copies are made here; nothing else reads a record before a charge.
    fn records_of(&self, spec: &JobSpec) -> Result<Records, Fault> {
        let unfit = |e: BindError| invalid(format!("the party {e}"));
        let (shard, binding) = (Arc::clone(&self.shard), || Binding::new(&self.shard, spec).map_err(unfit));
        Ok(match self.shard.memory() {
            Memory::Copies => Records::new(bind(&self.shard, spec).map_err(unfit)?, self.precision),
            Memory::Lean => Records::Streamed(Box::new(Scaled::new(shard, binding()?))),
            Memory::Stream => {
                let streamed = Streamed::new(shard, binding()?);
                Records::Streamed(Box::new(streamed.ok_or_else(|| invalid("the party's data are in memory".into()))?))
            }
        })
    }

    /// The job must be signed by its analyst. One whose analyst has been revoked while it ran is ended.
    fn signed(&mut self, request: &v1::OpenJob) -> Result<(), Fault> {
        let entered = self.ledger.state().job(&request.job).is_some();
        self.members.admit(request, entered).map_err(|why| match why {
            NotAdmitted::Unsigned(fault) => fault,
            NotAdmitted::Revoked(fault) => {
                // A failure has been logged, and the ledger answers no more.
                drop(self.close(&request.job, "the analyst's certificate is revoked"));
                fault
            }
        })
    }

    /// The delay of a job's replies: the owner's, or measured.
    fn delay_of_job(&self, job: &str, spec: &JobSpec) -> Result<Option<JobDelay>, Fault> {
        if self.policy.reply_delay == ReplyDelay::Off {
            return Ok(None);
        }
        let unmeasured = self.budget.unit.adjacency == Adjacency::AddRemove || self.shard.memory() != Memory::Copies;
        if let (true, ReplyDelay::Fixed(least)) = (unmeasured, self.policy.reply_delay) {
            // Nothing may be measured on as many records as there are where their number is not public; and made-up copies in memory say
            // nothing of records that are scaled or read as a pass goes.
            let answer = AnswerDelay { least, proposals: spec.sampler.chains };
            return Ok(Some(JobDelay { answer, open: least.max(UNPUBLISHED_OPENING) }));
        }
        let (unit, units) = (self.budget.unit, self.shard.units());
        let rehearsal = Rehearsal { spec, unit, units, threads: &self.threads, precision: self.precision };
        let folder = self.ledger.path().parent().unwrap_or(Path::new("."));
        let measured = measure(&rehearsal, folder).map_err(|why| match why {
            Unmeasured::Job(why) => {
                tracing::warn!(%job, "the reply delay can't be measured: {why}");
                invalid(format!("the party measures its reply delay before it opens a job, and can't rehearse this one: {why}"))
            }
            Unmeasured::Party(why) => {
                tracing::error!(%job, "the reply delay can't be measured: {why}");
                Fault::new(ErrorCode::Unreachable, "it can't measure its reply delay: its owner's log says what has to be mended")
            }
        })?;
        let delay = match self.policy.reply_delay {
            ReplyDelay::Fixed(least) => {
                if measured.answer.least > least {
                    tracing::warn!(
                        %job,
                        "reply_delay_ms is {} and answers on made-up records call for {}: some replies will leave at a later \
                         multiple",
                        millis(least),
                        millis(measured.answer.least)
                    );
                }
                JobDelay { answer: AnswerDelay { least, ..measured.answer }, ..measured }
            }
            _ => measured,
        };
        tracing::info!(
            %job,
            "replies leave {} ms after their service begins, or that times the length of a message over {} chains; the job \
             is opened in {} ms",
            millis(delay.answer.least),
            delay.answer.proposals,
            millis(delay.open)
        );
        Ok(Some(delay))
    }
}

/// Columns that a job's copy has: the outcome, every feature of the design, what else the model reads.
fn columns_held(spec: &JobSpec) -> u64 {
    let features = spec.model.design().map_or(0, |design| design.features.len());
    (1 + features + spec.model.auxiliary().len()) as u64
}

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

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

pub(super) fn ledger_fault(error: LedgerError) -> Fault {
    match error {
        LedgerError::Job(message) => Fault::new(ErrorCode::Conflict, message),
        // Nothing is wrong with the job: it waits until the owner has mended this.
        LedgerError::Behind { .. } => {
            let message = "its ledger is behind what it has answered: its owner has to restore or unlock it";
            Fault::new(ErrorCode::Unreachable, message)
        }
        LedgerError::Data(_) => {
            Fault::new(ErrorCode::Unreachable, "its data have changed: its owner has to put them back or confirm the refresh")
        }
        LedgerError::Accounting(e) => Fault::new(ErrorCode::InvalidInput, format!("[privacy]: {e}")),
        // Nothing is wrong with the job here either. What failed is the owner's to know; the log has it.
        _ => Fault::new(ErrorCode::Unreachable, "the ledger has failed: its owner has to mend that and start the party again"),
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}
