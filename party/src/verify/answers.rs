//! Compares the log with this party's own ledger: its queries and its answers.

use std::collections::BTreeSet;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Query, Round};
use conclave_privacy::accounting::{Honest, PrivacyUnit};
use conclave_privacy::mechanism::Components;

use crate::error::StartError;
use crate::ledger_views::{Charged, GivenUp, JobReader};
use conclave_vault::consent::Request;
use conclave_vault::ledger::events::unhex;
use conclave_vault::ledger::{Masked, QueryContent};

/// This party's answers in the log and in the ledger.
pub(super) struct Answers {
    ledger: JobReader,
    /// Charges, ordered by round and chain.
    charges: Vec<Charged>,
    /// True for charges found in the log.
    seen: Vec<bool>,
    /// True if the ledger was read again without new answers.
    exhausted: bool,
    job: String,
    digest: [u8; 32],
    /// This party's index among the job's parties.
    place: usize,
    spec: JobSpec,
    model: Box<dyn Model>,
    unit: PrivacyUnit,
    /// The roster of a masked job, and the number of parties whose noise then protects this one.
    roster: Option<([u8; 32], Honest)>,
    /// Number of answers in the log whose rows were lost in a crash.
    pub(super) lost: u64,
    /// Stretches of rounds whose entries the owner has given up by `unlock`, each with the number of answers in the log that it had.
    pub(super) given_up: Vec<(GivenUp, u64)>,
    /// The first wrong or missing answer.
    pub(super) wrong: Option<String>,
    /// The first query that differs from the one that follows from the log.
    pub(super) other_query: Option<String>,
}

/// State of a job at the end of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The job continues.
    Open,
    /// The job has made its last draw.
    Complete,
    /// The job was ended early: by a budget, an owner or the analyst.
    Early,
}

impl Answers {
    pub(super) fn new(
        ledger: JobReader,
        (spec, place): (JobSpec, usize),
        request: &Request,
        unit: PrivacyUnit,
    ) -> Result<Self, StartError> {
        let charges = ledger.charges(0)?;
        let given_up = ledger.given_up(&request.asked)?.into_iter().map(|stretch| (stretch, 0)).collect();
        let roster = ledger.entered().and_then(|entered| entered.roster.as_ref());
        let roster = roster.and_then(|roster| Some((unhex(&roster.digest)?, Honest::new(roster.honest)?)));
        Ok(Self {
            roster,
            seen: vec![false; charges.len()],
            charges,
            ledger,
            exhausted: false,
            job: request.job.clone(),
            digest: request.digest,
            place,
            model: spec.build_model(),
            spec,
            unit,
            lost: 0,
            given_up,
            wrong: None,
            other_query: None,
        })
    }

    /// Returns the number of answers found in both.
    pub(super) fn matched(&self) -> usize {
        self.seen.iter().zip(&self.charges).filter(|(seen, charged)| **seen && charged.released.is_some()).count()
    }

    /// Compares a replayed round with this party's queries, and the log's answers with its own.
    pub(super) fn compare(&mut self, round: &Round, logged: &[i64]) -> Result<(), StartError> {
        let mut rest = logged;
        for query in round.queries_of(self.place) {
            // A log that ends within a round has nothing more to compare.
            let Some((logged, others)) = rest.split_at_checked(query.kind.length()) else { break };
            rest = others;
            let Some(logged) = Components::new(logged) else { continue };
            let (iteration, chain) = (round.iteration, query.chain);
            let Some(place) = self.find(iteration, chain)? else {
                self.missing(iteration, chain);
                continue;
            };
            self.seen[place] = true;
            // Its answer may have left before the ledger was set back.
            let is_given_up = self.charges[place].released.is_none() && self.is_given_up(iteration);
            let charged = &self.charges[place];
            if !is_given_up && charged.released.as_ref() != Some(&logged) && self.wrong.is_none() {
                let given = charged.released.as_ref().map_or("none".to_owned(), Components::to_string);
                self.wrong = Some(format!(
                    "the log has {logged} as this party's answer to round {iteration}, chain {chain}, but the ledger has {given}"
                ));
            }
            if self.other_query.is_none() && self.content(round, query).as_ref() != Ok(&charged.digest) {
                self.other_query = Some(format!(
                    "in round {iteration}, chain {chain}, this party received another query than the log implies: an earlier \
                     release or decision was changed, or the chain was not run with the job's seed"
                ));
            }
        }
        Ok(())
    }

    /// Handles a round missing from the log, which the ledger may have.
    pub(super) fn lacks(&mut self, iteration: u64) -> Result<(), StartError> {
        let at = self.charges.partition_point(|c| c.iteration < iteration);
        if self.charges.get(at).is_some_and(|c| c.iteration == iteration) {
            self.wrong.get_or_insert(format!("round {iteration}, which this party answered, is missing from the log"));
        }
        Ok(())
    }

    /// Checks charges beyond the log, whose last round is `last`; `next` is the round that would follow. Returns a note if there
    /// is no failure.
    pub(super) fn beyond(&mut self, last: Option<u64>, next: Option<&Round>, end: End) -> Option<String> {
        let unseen: Vec<Charged> =
            self.charges.iter().zip(&self.seen).filter(|(_, seen)| !**seen).map(|(c, _)| c.clone()).collect();
        if let Some(within) = unseen.iter().find(|c| last.is_some_and(|last| c.iteration <= last)) {
            let (iteration, chain) = (within.iteration, within.chain);
            self.wrong.get_or_insert(format!(
                "this party was charged for round {iteration}, chain {chain}, but the log's round {iteration} has no such query"
            ));
        }
        let after: Vec<Charged> = unseen.into_iter().filter(|c| last.is_none_or(|last| c.iteration > last)).collect();
        let first = after.first()?;
        let expected = |c: &Charged| {
            let next = next.filter(|next| next.iteration == c.iteration)?;
            let query = next.queries_of(self.place).iter().find(|q| q.chain == c.chain)?;
            self.content(next, query).ok().filter(|digest| *digest == c.digest)
        };
        // The log of a running job may be some rounds behind; that of an ended one only by its last round.
        let due =
            after.iter().all(|c| (end == End::Open && Some(c.iteration) != next.map(|n| n.iteration)) || expected(c).is_some());
        match end {
            End::Complete => {
                self.wrong.get_or_insert(format!("this party was charged for round {}, after the log's last", first.iteration));
            }
            _ if !due => {
                self.other_query.get_or_insert(format!(
                    "after the log's last round this party received a query in round {} that the log does not imply",
                    first.iteration
                ));
            }
            End::Early => return Some("the job ended in the middle of a round that this party was charged for".to_owned()),
            End::Open => {
                let rounds: BTreeSet<u64> = after.iter().map(|c| c.iteration).collect();
                return Some(format!("{} later rounds were answered and are not in the log yet", rounds.len()));
            }
        }
        None
    }

    fn missing(&mut self, iteration: u64, chain: u32) {
        let lost = self.ledger.entered().is_some_and(|e| e.lost.iter().any(|(first, end)| (*first..*end).contains(&iteration)));
        if lost {
            self.lost += 1;
        } else if !self.is_given_up(iteration) {
            self.wrong.get_or_insert(format!(
                "the log has an answer by this party to round {iteration}, chain {chain}, that is not in its ledger"
            ));
        }
    }

    /// Counts an answer that the ledger lacks against the entries that the owner has given up; false where they can't have held it.
    fn is_given_up(&mut self, iteration: u64) -> bool {
        let holds =
            |stretch: &GivenUp, count: u64| (stretch.rounds.0..stretch.rounds.1).contains(&iteration) && count < stretch.most;
        let found = self.given_up.iter_mut().find(|(stretch, count)| holds(stretch, *count));
        found.map(|(_, count)| *count += 1).is_some()
    }

    /// Finds the index of a charge. A running party may have been queried, or have answered, since the ledger was read.
    fn find(&mut self, iteration: u64, chain: u32) -> Result<Option<usize>, StartError> {
        let place = |charges: &[Charged]| charges.binary_search_by_key(&(iteration, chain), |c| (c.iteration, c.chain)).ok();
        let answered = |charges: &[Charged]| place(charges).is_some_and(|at| charges[at].released.is_some());
        let newer = self.charges.last().is_none_or(|last| last.iteration < iteration);
        let due = newer || (place(&self.charges).is_some() && !answered(&self.charges));
        if due && !self.exhausted {
            self.charges.truncate(self.charges.partition_point(|c| c.iteration < iteration));
            self.charges.extend(self.ledger.charges(iteration)?);
            // Entries of earlier rounds keep their indices.
            self.seen.resize(self.charges.len(), false);
            self.exhausted = !answered(&self.charges);
        }
        Ok(place(&self.charges))
    }

    /// Returns the digest under which this party's ledger charges a query.
    fn content(&self, round: &Round, query: &Query) -> Result<[u8; 32], ()> {
        let Query { chain, kind, from, to, noise } = query;
        let terms = QueryTerms::new(self.model.as_ref(), &self.spec, self.unit, *kind, (from, to)).map_err(|_| ())?;
        let content = QueryContent {
            job: &self.job,
            spec_digest: &self.digest,
            iteration: round.iteration,
            chain: *chain,
            from,
            to,
            kind: *kind,
            k_t: terms.sensitivity(),
            s: *noise,
            masked: self.roster.map(|(roster, honest)| Masked { roster, round: round.digest_under(&roster), honest }),
        };
        Ok(content.digest().0)
    }
}
