//! The log against this party's own ledger: what it was asked, and what it answered.

use std::collections::BTreeSet;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Query, Round};
use conclave_privacy::accounting::{Honest, PrivacyUnit};
use conclave_privacy::mechanism::Components;

use crate::error::StartError;
use crate::ledger_views::{Charged, JobReader};
use conclave_vault::consent::Request;
use conclave_vault::ledger::events::unhex;
use conclave_vault::ledger::{Masked, QueryContent};

/// This party's part in the log.
pub(super) struct Answers {
    ledger: JobReader,
    /// By round and chain.
    charges: Vec<Charged>,
    /// Which of them the log has.
    seen: Vec<bool>,
    /// Whether the ledger was read again in vain.
    exhausted: bool,
    job: String,
    digest: [u8; 32],
    spec: JobSpec,
    model: Box<dyn Model>,
    unit: PrivacyUnit,
    /// The roster under whose masks answers leave, and how many parties' noise protects this one then.
    roster: Option<([u8; 32], Honest)>,
    /// Answers in the log whose rows were lost with a crash.
    pub(super) lost: u64,
    /// The first answer that is wrong or missing.
    pub(super) wrong: Option<String>,
    /// The first query that is another one than the log leads to.
    pub(super) asked_else: Option<String>,
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The job goes on.
    Open,
    /// With the job's last draw.
    Complete,
    /// In the middle: by a budget, an owner, the analyst.
    Early,
}

impl Answers {
    pub(super) fn new(ledger: JobReader, spec: JobSpec, asked: &Request, unit: PrivacyUnit) -> Result<Self, StartError> {
        let charges = ledger.charges(0)?;
        let roster = ledger.entered().and_then(|entered| entered.roster.as_ref());
        let roster = roster.and_then(|roster| Some((unhex(&roster.digest)?, Honest::new(roster.honest)?)));
        Ok(Self {
            roster,
            seen: vec![false; charges.len()],
            charges,
            ledger,
            exhausted: false,
            job: asked.job.clone(),
            digest: asked.digest,
            model: spec.build_model(),
            spec,
            unit,
            lost: 0,
            wrong: None,
            asked_else: None,
        })
    }

    /// Number of answers that both have.
    pub(super) fn matched(&self) -> usize {
        self.seen.iter().filter(|seen| **seen).count()
    }

    /// Compares a replayed round with what this party was asked, and the log's answers with those that it gave.
    pub(super) fn compare(&mut self, round: &Round, logged: &[i64]) -> Result<(), StartError> {
        let mut rest = logged;
        for query in &round.queries {
            // A log that ends within a round has no more to compare.
            let Some((logged, others)) = rest.split_at_checked(query.kind.length()) else { break };
            rest = others;
            let Some(logged) = Components::new(logged) else { continue };
            let (iteration, chain) = (round.iteration, query.chain);
            let Some(place) = self.find(iteration, chain)? else {
                self.missing(iteration, chain);
                continue;
            };
            self.seen[place] = true;
            let charged = &self.charges[place];
            if charged.released.as_ref() != Some(&logged) && self.wrong.is_none() {
                let given = charged.released.as_ref().map_or("none".to_owned(), Components::to_string);
                self.wrong = Some(format!(
                    "the log has {logged} as this party's answer to round {iteration}, chain {chain}, and the ledger has {given}"
                ));
            }
            if self.asked_else.is_none() && self.content(round, query).as_ref() != Ok(&charged.digest) {
                self.asked_else = Some(format!(
                    "in round {iteration}, chain {chain}, this party was asked another question than the log leads to: a release or a \
                     decision before it was changed, or the chain was not run by the job's seed"
                ));
            }
        }
        Ok(())
    }

    /// The log lacks a round; the ledger may have it.
    pub(super) fn lacks(&mut self, iteration: u64) -> Result<(), StartError> {
        let at = self.charges.partition_point(|c| c.iteration < iteration);
        if self.charges.get(at).is_some_and(|c| c.iteration == iteration) {
            self.wrong.get_or_insert(format!("round {iteration}, which this party has answered, is missing from the log"));
        }
        Ok(())
    }

    /// What the ledger has beyond the log, whose last round is `last`; `next` is the round that would be asked then. Gives a note on what
    /// is no failure.
    pub(super) fn beyond(&mut self, last: Option<u64>, next: Option<&Round>, end: End) -> Option<String> {
        let unseen: Vec<Charged> =
            self.charges.iter().zip(&self.seen).filter(|(_, seen)| !**seen).map(|(c, _)| c.clone()).collect();
        if let Some(within) = unseen.iter().find(|c| last.is_some_and(|last| c.iteration <= last)) {
            let (iteration, chain) = (within.iteration, within.chain);
            self.wrong.get_or_insert(format!(
                "this party was charged for round {iteration}, chain {chain}, and the log's round {iteration} did not ask that"
            ));
        }
        let after: Vec<Charged> = unseen.into_iter().filter(|c| last.is_none_or(|last| c.iteration > last)).collect();
        let first = after.first()?;
        let asked = |c: &Charged| {
            let next = next.filter(|next| next.iteration == c.iteration)?;
            let query = next.queries.iter().find(|q| q.chain == c.chain)?;
            self.content(next, query).ok().filter(|digest| *digest == c.digest)
        };
        // Of a job that goes on the log may be some rounds behind; of one that has ended, its last round alone.
        let due =
            after.iter().all(|c| (end == End::Open && Some(c.iteration) != next.map(|n| n.iteration)) || asked(c).is_some());
        match end {
            End::Complete => {
                self.wrong.get_or_insert(format!("this party was charged for round {}, after the log's last", first.iteration));
            }
            _ if !due => {
                self.asked_else.get_or_insert(format!(
                    "after the log's last round this party was asked in round {} what the log does not lead to",
                    first.iteration
                ));
            }
            End::Early => return Some("the job ended in the middle of a round that this party was charged for".to_owned()),
            End::Open => {
                let rounds: BTreeSet<u64> = after.iter().map(|c| c.iteration).collect();
                return Some(format!("{} rounds were answered since and are not in the log yet", rounds.len()));
            }
        }
        None
    }

    fn missing(&mut self, iteration: u64, chain: u32) {
        let lost = self.ledger.entered().is_some_and(|e| e.lost.iter().any(|(first, end)| (*first..*end).contains(&iteration)));
        if lost {
            self.lost += 1;
        } else {
            self.wrong.get_or_insert(format!(
                "the log has an answer of this party's to round {iteration}, chain {chain}, that its ledger never gave"
            ));
        }
    }

    /// Place of a charge. A party that runs may have been asked, or have answered, since the ledger was read.
    fn find(&mut self, iteration: u64, chain: u32) -> Result<Option<usize>, StartError> {
        let place = |charges: &[Charged]| charges.binary_search_by_key(&(iteration, chain), |c| (c.iteration, c.chain)).ok();
        let answered = |charges: &[Charged]| place(charges).is_some_and(|at| charges[at].released.is_some());
        let newer = self.charges.last().is_none_or(|last| last.iteration < iteration);
        let due = newer || (place(&self.charges).is_some() && !answered(&self.charges));
        if due && !self.exhausted {
            self.charges.truncate(self.charges.partition_point(|c| c.iteration < iteration));
            self.charges.extend(self.ledger.charges(iteration)?);
            // What it has of earlier rounds stays in its place.
            self.seen.resize(self.charges.len(), false);
            self.exhausted = !answered(&self.charges);
        }
        Ok(place(&self.charges))
    }

    /// The digest under which this party's ledger charges a query.
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
