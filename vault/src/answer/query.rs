//! Answers one message: all of its queries, or none.

use conclave_proto::convert::{Answer, AnswerStatus, answer_to_wire, reply_length};
use conclave_proto::echo::Echo;
use conclave_proto::v1;

use super::answerer::Answerer;
use super::faults::MAX_JOB_ID;
use super::received::{Received, Resources};
use crate::ledger::Recorded;
use crate::text::clip;

/// The recorded releases that answer a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    /// Releases, in the order asked.
    pub(super) releases: Vec<Recorded>,
    /// Echo of a message whose answer is masked.
    pub(super) echo: Option<Echo>,
}

impl Answered {
    /// Returns the integers of all releases, in the order asked.
    pub(super) fn integers(&self) -> Vec<i64> {
        self.releases.iter().flat_map(Recorded::integers).copied().collect()
    }
}

/// The integers of a planted fault.
#[cfg(any(test, feature = "test-util"))]
impl From<Vec<i64>> for Answered {
    fn from(integers: Vec<i64>) -> Self {
        Self { releases: integers.into_iter().map(Recorded::planted).collect(), echo: None }
    }
}

/// The answer to a message, or the status of its refusal.
pub(super) type Outcome = Result<Answered, AnswerStatus>;

impl Answerer {
    /// Answers a message; the reply has one length, whatever the outcome.
    pub fn answer(&mut self, request: v1::Query) -> v1::Answer {
        let standing = self.check_members(&request.job);
        self.answer_if(standing, request)
    }

    /// Answers a message unless the check of its job's members, [`Answerer::check_members`], refuses it.
    pub(super) fn answer_if(&mut self, standing: Result<(), AnswerStatus>, request: v1::Query) -> v1::Answer {
        self.reply_to(request, |answerer, request| standing.and_then(|()| answerer.answer_query(request)))
    }

    /// Builds the reply to a message from the outcome of `answer`, which is [`Answerer::answer_query`] unless a test plants a fault. The reply
    /// has the length that the message's queries determine.
    pub(super) fn reply_to(&mut self, request: v1::Query, answer: impl FnOnce(&mut Self, v1::Query) -> Outcome) -> v1::Answer {
        let (job, iteration, length) = (request.job.clone(), request.iteration, reply_length(&request));
        let outcome = answer(self, request).and_then(|answered| self.of_length(answered, length));
        if let Err(status) = &outcome {
            tracing::warn!(job = %clip(&job, MAX_JOB_ID), iteration, "refused ({status:?})");
        }
        // After the answer is recorded, so that the head covers it.
        let head = self.ledger.head().to_bytes();
        // Looked up in the ledger, which also knows closed jobs: a closed job's reply is as long as an open one's. The length reveals only
        // that the job is masked, which its analyst wrote.
        let secure = self.ledger.is_masked(&job);
        let echo = outcome.as_ref().ok().and_then(|answered| answered.echo);
        let outcome = outcome.map(|answered| answered.integers());
        let answer = v1::Answer { head, ..answer_to_wire(&Answer { job, iteration, outcome }, length) };
        if secure { Echo::attach(echo, answer) } else { answer }
    }

    /// Returns the answer, or halts the ledger if the answer is not as long as the reply; only a defect of this program makes one.
    fn of_length(&mut self, answered: Answered, length: usize) -> Outcome {
        let made = answered.integers().len();
        if made != length {
            self.ledger.halt(&format!("an answer of {made} integers was made where {length} were asked"));
            return Err(AnswerStatus::Halted);
        }
        Ok(answered)
    }

    /// Takes a message through all stages: request, policy, charge, noise, records, ledger. Every integer that it returns is recorded.
    ///
    /// # Errors
    /// The status of the refusal, or of a failure. A charge that was made before a failure stays.
    pub(super) fn answer_query(&mut self, request: v1::Query) -> Outcome {
        let Some(job) = self.jobs.get_mut(&request.job) else {
            return Err(if self.is_withdrawn(&request.job) { AnswerStatus::Policy } else { AnswerStatus::UnknownJob });
        };
        let mut resources = Resources {
            ledger: &mut self.ledger,
            noise: &mut self.noise,
            timing: &mut self.timing,
            policy: &self.policy,
            permission: &*self.permission,
            threads: &self.threads,
            unit: self.budget.unit,
        };
        let received = Received::new(job, request)?;
        let priced = received.price(&resources)?;
        let charged = priced.charge(&mut resources)?;
        let noised = charged.draw_noise(&mut resources)?;
        // The charges are durable and their noise is drawn. Only from here on may records be read.
        let summed = noised.sum(&mut resources)?;
        summed.record(&mut resources)
    }
}
