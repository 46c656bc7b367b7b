//! Applies the owner's decisions on the answering thread: to jobs that wait for one, and to running jobs that lose their consent.

use std::collections::BTreeSet;
use std::time::Instant;

use conclave_ops::EXPORTED;
use conclave_proto::ca;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::{self, party_frame::Body};

use super::admission::Admitted;
use super::answerer::Answerer;
use super::faults::lapsed;
use super::open::Opening;
use super::reply::{ReplySender, reply};
use crate::config::Policy;
use crate::consent::{ConsentError, ConsentStore, Decided, Decider, Request, Standing};
use crate::ledger::events::hex;
use crate::ledger::{DataStanding, LedgerError};
use crate::ports::Observer;
use crate::text::clip;

/// Jobs that are opened by themselves once there is room; the coordinator has to ask for others again.
const MOST_CROWDED: usize = 256;

impl Answerer {
    /// Uses the owner's decisions. Without them only `approve = "automatic"` admits a job.
    #[must_use]
    pub fn with_consent(mut self, store: ConsentStore) -> Self {
        self.consent.store = Some(store);
        self
    }

    /// Reports the state of ledger and jobs to `observer` from now on.
    #[must_use]
    pub fn observed_by(mut self, observer: Box<dyn Observer>) -> Self {
        self.observer = observer;
        self.note_health();
        self.observer.note(&self.ledger, self.jobs.len());
        self.observer.note_sizes(&self.ledger);
        self
    }

    /// Announces a change in whether the ledger answers.
    pub(super) fn note_health(&mut self) {
        let changed = || match self.ledger.data() {
            DataStanding::Changed(columns) => Some(LedgerError::Data(columns.clone()).to_string()),
            _ => None,
        };
        let behind = || self.ledger.behind().map(|e| e.to_string());
        let problem = self.ledger.halted().map(str::to_owned).or_else(behind).or_else(changed);
        if problem != self.consent.problem {
            self.observer.set_problem(problem.clone());
            self.consent.problem = problem;
        }
    }

    /// Returns the decision on a job as the ledger's chain of hashes keeps it, a JSON object; `None` where the party keeps no decisions.
    pub(super) fn decision_on(&self, job: &str) -> Option<String> {
        let mut particulars = serde_json::json!({});
        if let Ok(Request { decided, permit, signer, .. }) = self.consent.store.as_ref()?.request(job) {
            if let Some(Decided { decider, time, reason, .. }) = decided {
                particulars = serde_json::json!({ "by": decider, "decided": time, "reason": reason });
            }
            if let Some(permit) = permit {
                particulars["permit"] = serde_json::from_str(&permit).unwrap_or(permit.into());
            }
            if let Some(signer) = signer {
                particulars["signer"] = hex(&signer).into();
            }
        }
        Some(particulars.to_string())
    }

    /// Returns the owner's decision on a job, and enters the request where it is new. Where the policy consents in the owner's place, the
    /// consent is entered as the policy's, under the owner's permit for the job that it extends.
    pub(super) fn consented(&mut self, request: &v1::OpenJob, admitted: &Admitted) -> Result<Standing, Fault> {
        let Some(store) = &mut self.consent.store else {
            return if admitted.is_automatic { Ok(Standing::Approved) } else { Ok(Standing::Awaiting) };
        };
        // Of a job that is entered already, the certificate was checked when it was new, and this one may be another.
        let signed = request.submission.as_ref().filter(|_| !admitted.is_entered);
        let signer = signed.and_then(|signed| ca::key_digest(&signed.certificate).ok());
        let standing = store.ask_signed(request, &admitted.digest, signer).map_err(fault)?;
        if standing == Standing::Awaiting && admitted.is_automatic {
            let extended = admitted.spec.extends.as_ref().and_then(|job| store.request(job).ok());
            let (permit, why) = (extended.and_then(|extended| extended.permit), "within the limits under [policy] in party.toml");
            store.decide_under(&request.job, Standing::Approved, Decider::Policy, why, permit.as_deref()).map_err(fault)?;
            return Ok(Standing::Approved);
        }
        Ok(standing)
    }

    /// Opens a job and replies. A request that has to wait for the owner's decision or for room is kept with the channel of its session.
    pub(super) fn open_or_wait(&mut self, request: v1::OpenJob, received: Instant, outbox: ReplySender) {
        let job = request.job.clone();
        self.consent.forget(&job);
        self.requested.note(&job);
        let body = match self.open_held(&request, received) {
            Ok(Opening::Opened(metadata, mask_key)) => {
                self.consent.outboxes.insert(job.clone(), outbox.clone());
                let head = self.ledger.head().to_bytes();
                let mask_key = mask_key.map(|key| *key);
                let opened = v1::JobOpened { head, mask_key, ..conclave_proto::convert::opened_to_wire(&job, &metadata) };
                let delay = self.jobs.get(&job).and_then(|job| job.delay);
                Body::JobOpened(AnswerDelay::attach(delay.map(|delay| delay.answer), opened))
            }
            Ok(Opening::Pending) => {
                tracing::info!(%job, analyst = %request.analyst, "job waits for your decision: conclave-party approve with its id");
                self.consent.waiting.insert(job.clone(), (request, outbox.clone()));
                Body::JobPending(v1::JobPending { job: job.clone(), ..v1::JobPending::default() })
            }
            Ok(Opening::Full(reason)) => {
                tracing::info!(%job, analyst = %request.analyst, reason, "job waits for room");
                if self.consent.crowded.len() < MOST_CROWDED {
                    self.consent.crowded.push((request, outbox.clone()));
                }
                Body::JobPending(v1::JobPending { job: job.clone(), reason, full: true })
            }
            // Not final: the owner can repair it.
            Err(fault) if fault.code == ErrorCode::Unreachable => {
                Body::JobPending(v1::JobPending { job: job.clone(), reason: fault.message, full: false })
            }
            Err(fault) => refusal(job.clone(), &fault),
        };
        let opened = matches!(body, Body::JobOpened(_));
        reply(&outbox, body);
        if opened {
            // Begun and ended after the reply has left: the time to open the job is not observable.
            drop(tracing::info_span!(target: EXPORTED, "job opened", %job));
        }
    }

    /// Carries out the owner's decisions: opens approved jobs, refuses rejected ones, and stops revoked ones.
    pub fn consent_changed(&mut self) {
        let waiting = std::mem::take(&mut self.consent.waiting);
        for (job, (request, outbox)) in waiting {
            match self.stands(&job) {
                Ok(Standing::Awaiting) => drop(self.consent.waiting.insert(job, (request, outbox))),
                _ => self.open_or_wait(request, Instant::now(), outbox),
            }
        }
        // A job's cap is reserved, and the key of a masked one exists, whether or not the job has been opened since the start.
        let entered = self.ledger.state().jobs().iter().filter(|job| job.open).map(|job| job.id.clone());
        let open: BTreeSet<String> = entered.chain(self.jobs.keys().cloned()).collect();
        for job in open {
            // Without readable decisions there is no consent.
            if self.stands(&job) != Ok(Standing::Approved) {
                self.withdraw(&job);
            }
        }
    }

    /// Replaces the owner's limits, for every query and every opening from now on. Waiting jobs are decided on again.
    pub(super) fn policy_changed(&mut self, policy: Policy) {
        self.policy = policy;
        for (request, outbox) in std::mem::take(&mut self.consent.waiting).into_values() {
            self.open_or_wait(request, Instant::now(), outbox);
        }
        self.make_room();
    }

    /// Returns true where the owner's decision refuses queries of a job that is not open.
    pub(super) fn is_withdrawn(&self, job: &str) -> bool {
        matches!(self.stands(job), Ok(Standing::Revoked | Standing::Rejected) | Err(_))
    }

    /// Forgets a job that has ended.
    pub(super) fn forget_consent(&mut self, job: &str) {
        self.consent.forget(job);
        self.consent.outboxes.remove(job);
    }

    /// Opens jobs that waited for room, in the order of their arrival, while there is room.
    pub(super) fn make_room(&mut self) {
        for (request, outbox) in std::mem::take(&mut self.consent.crowded) {
            self.open_or_wait(request, Instant::now(), outbox);
        }
    }

    fn stands(&self, job: &str) -> Result<Standing, ()> {
        let Some(store) = &self.consent.store else { return Ok(Standing::Approved) };
        let standing = store.standing(job).map(|standing| standing.unwrap_or(Standing::Awaiting));
        standing.map_err(|e| tracing::error!("your decisions can't be read, so no job has your consent: {e}"))
    }

    fn withdraw(&mut self, job: &str) {
        let reason = self.reason(job);
        tracing::warn!(%job, "consent withdrawn, the job is answered no more{reason}");
        if let Some(decision) = self.decision_on(job) {
            // A failure has been logged, and the ledger answers no more.
            drop(self.ledger.enter_act("revoke", Some(job), &decision));
        }
        let revoked = self.withdrawn(&reason);
        self.close_revoked_job(job, "consent withdrawn", revoked);
    }

    /// Lets a job go whose permit has ended. The consent stays: should the clock have been wrong, the job can be opened again.
    pub(super) fn lapse(&mut self, job: &str, why: &str) {
        if !self.ledger.state().job(job).is_some_and(|known| known.open) {
            return;
        }
        tracing::warn!(%job, "the job is let go: {why}");
        let body = serde_json::json!({ "reason": why }).to_string();
        // A failure has been logged, and the ledger answers no more.
        drop(self.ledger.enter_act("lapse", Some(job), &body));
        self.end_job(job, lapsed(&self.party, why), |answerer| answerer.let_go(job, why));
        self.make_room();
    }

    /// Closes a job, and names the revocation that ends it to its analyst.
    pub(super) fn close_revoked_job(&mut self, job: &str, entered: &str, revoked: Fault) {
        self.end_job(job, revoked, |answerer| answerer.close(job, entered));
    }

    /// Ends a job, and names the reason to its analyst.
    fn end_job(&mut self, job: &str, revoked: Fault, end: impl FnOnce(&mut Self) -> Result<(), LedgerError>) {
        let outbox = self.consent.outboxes.remove(job);
        // A failure has been logged, and the ledger answers no more.
        drop(end(self));
        if let Some(outbox) = outbox {
            reply(&outbox, refusal(job.to_owned(), &revoked.at_party(self.party.clone())));
        }
    }

    /// Returns the owner's reason as the rest of a sentence; empty where none was given.
    fn reason(&self, job: &str) -> String {
        let request = self.consent.store.as_ref().and_then(|store| store.request(job).ok());
        let decided = request.and_then(|request| request.decided);
        decided.map(|d| d.reason).filter(|r| !r.is_empty()).map(|r| format!(": {r}")).unwrap_or_default()
    }

    pub(super) fn withdrawn(&self, reason: &str) -> Fault {
        let party = &self.party;
        Fault::new(ErrorCode::Revoked, format!("the consent to this job was revoked by the owner of {party}{reason}"))
    }

    /// Returns the refusal of a job that its owner decided against.
    pub(super) fn decided_against(&self, job: &str, standing: Standing) -> Fault {
        let reason = self.reason(job);
        match standing {
            Standing::Revoked => self.withdrawn(&reason),
            _ => Fault::new(ErrorCode::Policy, format!("the data owner has rejected this job{reason}")),
        }
    }
}

pub(super) fn refusal(job: String, fault: &Fault) -> Body {
    Body::JobRefused(v1::JobRefused { job, code: fault.code.as_str().into(), reason: clip(&fault.to_string(), 2000) })
}

fn fault(error: ConsentError) -> Fault {
    let code = match error {
        ConsentError::Changed(_) => ErrorCode::Conflict,
        ConsentError::Crowded(_) | ConsentError::CrowdedBy(..) => ErrorCode::Policy,
        ConsentError::TooLong => ErrorCode::InvalidInput,
        // Only the owner may know what failed; the log has it.
        _ => {
            tracing::error!("your decisions can't be read: {error}");
            return Fault::new(ErrorCode::Internal, "the party can't read its owner's decisions");
        }
    };
    Fault::new(code, error.to_string())
}
