//! Opens jobs: gathers the facts that [`super::admission`] decides on, and carries the decision out.
//!
//! Every public constant of a job is derived from the bytes that the job's digest covers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::Adjacency;
use conclave_privacy::pass::NoSum;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;

use super::active_job::{ActiveJob, NewJob};
use super::admission::{Admitted, Course, Decision, Facts, LedgerFacts, OpenJobs, admit, columns_held, invalid};
use super::answerer::{Answerer, LONGEST_WORD};
use super::faults::{MAX_JOB_ID, lapsed, ledger_fault};
use super::masking::Masking;
use super::records::Records;
use crate::config::ReplyDelay;
use crate::consent::Standing;
use crate::data::{BindError, Binding, Memory, Scaled};
use crate::ledger::JobEntry;
use crate::policy::ShardFacts;
use crate::ports::{JobDelay, MeteredJob, Unmeasured};
use crate::text::clip;

/// Delay of opening a job where the number of records is secret: enough for the largest shard that is admitted then.
const UNPUBLISHED_OPENING: Duration = Duration::from_secs(1);

/// The outcome of a request to open a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Opening {
    /// The job is open on a shard with this metadata, with this key for its masks where its answers leave masked.
    Opened(PartyMetadata, Option<Box<v1::MaskKey>>),
    /// The job's owner has yet to decide.
    Pending,
    /// There is no room for it before other jobs have ended; the text gives the reason.
    Full(String),
}

impl Answerer {
    /// Opens a job, or opens it again, unless its owner has yet to decide.
    ///
    /// # Errors
    /// A fault that names this party: [`ErrorCode::InvalidInput`], [`ErrorCode::Policy`], [`ErrorCode::Conflict`] where
    /// the id stands for another job, [`ErrorCode::Budget`] for a cap that cannot be accounted for,
    /// [`ErrorCode::Unreachable`] where nothing is wrong with the job and its owner has to repair something first, as once the ledger has
    /// failed.
    pub fn open(&mut self, request: &v1::OpenJob) -> Result<Opening, Fault> {
        self.try_open(request).map_err(|fault| {
            let (job, analyst) = (clip(&request.job, MAX_JOB_ID), clip(&request.analyst, MAX_JOB_ID));
            tracing::warn!(%job, %analyst, "job refused: {}", clip(&fault.to_string(), LONGEST_WORD));
            fault.at_party(self.party.clone())
        })
    }

    fn try_open(&mut self, request: &v1::OpenJob) -> Result<Opening, Fault> {
        let admitted = match admit(self.facts(request)) {
            Decision::Refused(fault) => return Err(fault),
            Decision::Revoked(fault) => {
                // A failure has been logged, and the ledger answers no more.
                drop(self.close(&request.job, "the analyst's certificate is revoked"));
                return Err(fault);
            }
            Decision::Full(why) => return Ok(Opening::Full(why)),
            Decision::AskOwner(admitted) => *admitted,
        };
        let standing = self.consented(request, &admitted)?;
        if standing == Standing::Approved {
            self.permission.check(&request.job).map_err(|why| lapsed(&self.party, &why))?;
        }
        let course = admitted.course(standing);
        match course {
            Course::Pending => Ok(Opening::Pending),
            Course::Closed { standing, has_key } => {
                if has_key {
                    // A failure has been logged, and the ledger answers no more.
                    drop(self.close(&request.job, "consent withdrawn"));
                }
                Err(self.decided_against(&request.job, standing))
            }
            Course::Reopened | Course::Open => {
                let metadata = self.shard.metadata();
                self.enter_job(request, &admitted, metadata)?;
                let (masking, mask_key) = self.masking_of(&request.job, &admitted.spec, admitted.digest)?;
                if course == Course::Open {
                    self.load_job(request, admitted, masking)?;
                }
                Ok(Opening::Opened(metadata, mask_key))
            }
        }
    }

    /// Gathers the facts on a request. None depends on a record, and no look-up has an effect.
    fn facts<'a>(&'a self, request: &'a v1::OpenJob) -> Facts<'a> {
        let (job, analyst) = (request.job.as_str(), request.analyst.as_str());
        let known = self.ledger.state().job(job);
        let has_job = known.is_some();
        Facts {
            request,
            party: &self.party,
            spoken: self.spoken,
            signature: Box::new(move || self.members.admit(request, has_job)),
            policy: &self.policy,
            budget: &self.budget,
            shard: ShardFacts::from(&*self.shard),
            precision: self.precision,
            secure: self.secure_settings(),
            open_jobs: OpenJobs {
                number: self.jobs.len(),
                has_this: self.jobs.get(job).is_some_and(|open| request.spec_digest == open.digest),
                columns: self.jobs.values().map(|open| columns_held(&open.spec)).sum(),
            },
            ledger: LedgerFacts {
                has_job,
                is_open: known.is_some_and(|known| known.open),
                is_masked: self.ledger.is_masked(job),
                idle: Box::new(move || self.ledger.admit_idle(job, analyst)),
                room: Box::new(move |honest| self.ledger.room(job, analyst, honest)),
                reserve: self.ledger.reserve_left(),
            },
        }
    }

    /// Enters an approved job in the ledger, or finds it there, with the decision on a new one.
    fn enter_job(&mut self, request: &v1::OpenJob, admitted: &Admitted, metadata: PartyMetadata) -> Result<(), Fault> {
        // After every break of the connection, so also when this machine was copied or set back.
        self.noise.renew();
        let approval = if admitted.is_entered { None } else { self.decision_on(&request.job) };
        let entry = JobEntry {
            job: &request.job,
            analyst: &request.analyst,
            spec_digest: &admitted.digest,
            spec_toml: &request.spec_toml,
            cap: admitted.spec.privacy.budget.of(self.budget.unit),
            records: metadata.records().or(metadata.persons()).unwrap_or(0),
            room: admitted.room,
            honest: admitted.spec.honest(),
            approval: approval.as_deref(),
        };
        self.ledger.open_job(&entry).map_err(ledger_fault)
    }

    /// Measures the reply delay of an entered job, binds its records and computes its fixed sums.
    fn load_job(&mut self, request: &v1::OpenJob, admitted: Admitted, masking: Masking) -> Result<(), Fault> {
        let Admitted { spec, digest, trusted, .. } = admitted;
        // Public constants first, from made-up records; then the real ones are read.
        let delay = self.delay_of_job(&request.job, &spec)?;
        self.noise.keep(self.jobs.values().map(|job| job.spec.privacy.noise).chain([spec.privacy.noise]));
        self.reading = delay.map(|delay| (Instant::now(), delay.open));
        let records = self.records_of(&spec)?;
        let idle = if masking.is_secure() { self.idle_before(&request.job, Instant::now()) } else { Duration::ZERO };
        let parts = NewJob { spec, digest, records, delay, masking, trusted, idle };
        let active = ActiveJob::new(parts, self.budget.unit, &self.threads).map_err(|why| {
            tracing::error!(job = %request.job, "the job can't be opened: {why}");
            match why {
                NoSum::Unread(_) => {
                    self.ledger.halt(&why.to_string());
                    let message = "it can't read its data: its owner has to put them back and start it again";
                    Fault::new(ErrorCode::Unreachable, message)
                }
                NoSum::Kernel | NoSum::Sample => {
                    Fault::new(ErrorCode::Internal, "the party can't sum over its data; its owner's log says why")
                }
            }
        })?;
        tracing::info!(job = %request.job, analyst = %request.analyst, name = ?active.spec.name, "job is open");
        self.jobs.insert(request.job.clone(), active);
        Ok(())
    }

    /// Prepares the records for the job's passes; copies are made here. After the party has started, only this and the job's fixed sums
    /// ([`ActiveJob::new`]) read a record before a charge. No function of a record leaves before its charge.
    fn records_of(&self, spec: &JobSpec) -> Result<Records, Fault> {
        let unfit = |e: BindError| invalid(format!("the party {e}"));
        let binding = Binding::new(&self.shard, spec).map_err(unfit)?;
        match self.shard.memory() {
            Memory::Copies => Records::copied(&self.shard, &binding, self.precision).map_err(unfit),
            Memory::Lean | Memory::Stream => Ok(Records::Streamed(Box::new(Scaled::new(Arc::clone(&self.shard), binding)))),
        }
    }

    /// Returns the delay of a job's replies: the owner's, or a measured one.
    fn delay_of_job(&self, job: &str, spec: &JobSpec) -> Result<Option<JobDelay>, Fault> {
        if self.policy.reply_delay == ReplyDelay::Off {
            return Ok(None);
        }
        let unmeasured =
            self.meter.is_none() || self.budget.unit.adjacency == Adjacency::AddRemove || self.shard.memory() != Memory::Copies;
        if let (true, ReplyDelay::Fixed(least)) = (unmeasured, self.policy.reply_delay) {
            // Nothing may be measured on as many records as there are where their number is not public; and made-up copies in memory say
            // nothing of records that are scaled or read as a pass goes.
            let answer = AnswerDelay { least, proposals: spec.sampler.chains };
            return Ok(Some(JobDelay { answer, open: least.max(UNPUBLISHED_OPENING) }));
        }
        let (unit, units) = (self.budget.unit, self.shard.units());
        let metered = MeteredJob { spec, unit, units, threads: &self.threads, precision: self.precision };
        let folder = self.ledger.path().parent().unwrap_or(Path::new("."));
        let measured = match &self.meter {
            Some(meter) => meter.measure(&metered, folder),
            None => Err(Unmeasured::Party("no meter of reply delays is set".to_owned())),
        };
        let measured = measured.map_err(|why| match why {
            Unmeasured::Job(why) => {
                tracing::warn!(%job, "the reply delay can't be measured: {why}");
                invalid(format!("the party measures its reply delay before it opens a job, and can't rehearse this one: {why}"))
            }
            Unmeasured::Party(why) => {
                tracing::error!(%job, "the reply delay can't be measured: {why}");
                Fault::new(
                    ErrorCode::Unreachable,
                    "it can't measure its reply delay: its owner's log says what has to be repaired",
                )
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

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}
