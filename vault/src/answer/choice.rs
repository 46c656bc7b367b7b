//! Answering a choice: one candidate's number, drawn by the exponential mechanism.
//!
//! The log weights of all candidates are un-noised sums over the records. They stay in [`LogWeights`], out of which only a charged choice
//! leads; memory is bounded by summing over a part of the candidates at a time.

use std::time::{Duration, Instant};

use conclave_common::model::Summand;
use conclave_common::query::Query;
use conclave_common::query::{Candidates, QueryTerms};
use conclave_privacy::mechanism::{QueryKind};
use conclave_privacy::pass::{LatticeSum, log_weights};
use conclave_privacy::pass::{Keeping, Step};
use conclave_proto::convert::AnswerStatus;

use super::answer_timing::Part;
use super::answerer::{ActiveJob, Answerer};
use super::query::{Answered, Outcome, unsummed};
use super::sums::{NoSum, sums};
use crate::ledger::{Grant, prepare_choice};

/// Candidates whose weights one pass over the records sums.
const PER_PASS: usize = 256;

impl Answerer {
    /// Answers a choice whose charge has been granted: the generator first, then the records, then the ledger.
    pub(super) fn answer_choice(&mut self, job: &str, query: &Query, terms: &QueryTerms, grant: Grant) -> Outcome {
        let receipt = match grant {
            Grant::Answered(recorded) => return Ok(Answered::from(recorded.integers().to_vec())),
            Grant::Charged(receipt) => receipt,
        };
        let charged = receipt.sensitivity();
        if charged != terms.sensitivity() {
            // What a unit may contribute is what was paid for, or there is no answer.
            return Err(AnswerStatus::Halted);
        }
        let choice = prepare_choice(receipt, &mut self.noise).ok_or(AnswerStatus::Halted)?;
        self.timing.was(Part::Noise);
        let unit = self.budget.unit;
        let active = self.jobs.get(job).ok_or(AnswerStatus::UnknownJob)?;
        let QueryKind::Choice { candidates } = query.kind else { return Err(AnswerStatus::Invalid) };
        let candidates = Candidates::new(candidates, &query.from, &query.to).ok_or(AnswerStatus::Invalid)?;
        let steps = candidates.steps(active.model.as_ref(), &active.spec, unit, charged).map_err(|why| {
            tracing::error!("{why}");
            AnswerStatus::Halted
        })?;
        let sums = self.weights(active, &steps).map_err(|why| unsummed(&mut self.ledger, &why))?;
        // A sum for each candidate, and what is public of it.
        let weights = log_weights(sums, candidates.public()).ok_or(AnswerStatus::Halted)?;
        let recorded = self.record(vec![choice.release(weights)])?;
        if let Some(active) = self.jobs.get_mut(job) {
            active.used = (Instant::now(), Duration::ZERO);
        }
        Ok(Answered::from(recorded.iter().flat_map(|recorded| recorded.integers().to_vec()).collect::<Vec<i64>>()))
    }

    /// The sum over the records of each candidate's log ratios.
    fn weights(&self, active: &ActiveJob, steps: &[Step<'_>]) -> Result<Vec<LatticeSum>, NoSum> {
        let blocks = Keeping::new(active.records.blocks(), &active.kept_weights);
        let mut weights = Vec::with_capacity(steps.len());
        for part in steps.chunks(PER_PASS) {
            let summands: Vec<(QueryKind, Summand<'_>)> =
                part.iter().map(|step| (QueryKind::Ratio, Summand::Step(*step))).collect();
            weights.extend(sums(active.model.as_ref(), &blocks, &self.threads, &active.fixed_sums, &summands)?);
        }
        Ok(weights)
    }
}
