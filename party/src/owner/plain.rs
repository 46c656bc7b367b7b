//! A pending job in plain words: who asks what of which columns, together with whom, at what cost and risk.

use std::iter;

use conclave_common::job::JobSpec;
use conclave_pages::document::{Block, Fact, fact};
use conclave_pages::moment::stored;

use super::jobs::JobView;
use super::odds::{Odds, right};
use super::scale::Scale;
use super::text::{not_protected, signed};
use super::worst_case::WorstCase;
use crate::config::PartyConfig;
use crate::ledger_views::Report;

/// The summary of a job for an owner who is no statistician.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    pub(crate) title: String,
    /// The time of the request, the signer's key, and the analyst's words on the study.
    pub(crate) request: Vec<Fact>,
    /// The columns whose relation is studied, and the outcome.
    pub(crate) study: Study,
    /// The owners, as a clause.
    pub(crate) owners: String,
    /// The extent of the releases, as a sentence.
    pub(crate) releases: String,
    pub(crate) scale: Scale,
    pub(crate) odds: Odds,
    /// For whom the odds hold.
    pub(crate) scope: String,
    /// The reason for which the job has to wait for others, as a sentence.
    pub(crate) waits: Option<&'static str>,
    /// The sentence on what no guarantee covers.
    pub(crate) not_protected: String,
}

/// The subject of a job.
#[derive(Debug, Clone)]
pub(crate) struct Study {
    pub(crate) analyst: String,
    pub(crate) predictors: Vec<String>,
    pub(crate) outcome: String,
    /// The model in the words of its field.
    pub(crate) model: String,
}

impl Study {
    fn new(analyst: &str, spec: &JobSpec) -> Self {
        let outcome = spec.model.outcome();
        let others = spec.model.columns().into_iter().filter(|name| *name != outcome);
        Self {
            analyst: analyst.to_owned(),
            predictors: others.map(str::to_owned).collect(),
            outcome: outcome.to_owned(),
            model: spec.model.describe(),
        }
    }

    /// States the subject as a clause without its full stop.
    fn words(&self) -> String {
        match self.predictors.split_last() {
            None => format!("{} wants to know the {}", self.analyst, self.model),
            Some((only, [])) => format!("{} wants to know how {only} goes with {}", self.analyst, self.outcome),
            Some((last, rest)) => {
                format!("{} wants to know how {} and {last} go with {}", self.analyst, rest.join(", "), self.outcome)
            }
        }
    }
}

fn owners(parties: &[String], own: &str) -> String {
    let others: Vec<&str> = parties.iter().map(String::as_str).filter(|name| *name != own).collect();
    match others.split_last() {
        None => "over your records alone".to_owned(),
        Some((only, [])) => format!("over your records and those of {only} together"),
        Some((last, rest)) => format!("over your records and those of {} and {last} together", rest.join(", ")),
    }
}

fn releases(spec: &JobSpec) -> String {
    let masked = if spec.aggregation.is_secure() { ", masked so that only the total over all owners is seen," } else { "" };
    let sums = format!("Sums over all your rows leave{masked} with random noise added");
    match spec.most_rounds() {
        Some(1) => format!("{sums}, in one answer."),
        Some(most) => format!("{sums}, in at most {most} answers."),
        None => format!("{sums}, answer by answer until the job's part of the budget is used up."),
    }
}

impl Summary {
    /// Summarises a job that this version can read.
    pub(crate) fn new(config: &PartyConfig, report: &Report, job: &JobView, worst: &WorstCase) -> Option<Self> {
        let spec = job.spec.as_ref()?;
        let is_open = report.open_jobs.iter().any(|open| open.job == job.request.job);
        let before = Scale::of_analyst(report, config, &job.request.analyst, &job.request.job);
        // A job that has ended spends no more: its odds are those of its releases.
        let ended = WorstCase { more_mu_squared: 0.0, job_mu_squared: job.spent().mu_squared(), if_all_collude: None, ..*worst };
        let worst = if job.may_spend() { worst } else { &ended };
        let scale = if job.may_spend() { before.with_job(worst.more_mu_squared, is_open, &config.policy) } else { before };
        let odds = Odds::new(spec, report, worst, is_open);
        let full = job.is_live() && !is_open && !config.policy.over_commit && before.lacks(worst.more_mu_squared);
        Some(Self {
            request: iter::once(fact("asked", stored(&job.request.asked))).chain(signed(job)).collect(),
            not_protected: not_protected(config.budget.unit),
            title: format!("{} asks to study {}", job.request.analyst, spec.model.outcome()),
            study: Study::new(&job.request.analyst, spec),
            owners: owners(&spec.parties, &config.name),
            releases: releases(spec),
            scope: odds.scope(config.budget.unit, spec.parties.len()),
            waits: full.then_some("It does not fit beside the open jobs: once approved, it waits until others have ended."),
            scale,
            odds,
        })
    }

    /// Returns the summary as blocks of a document.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let lead = format!("{}, {}. No record leaves. {}", self.study.words(), self.owners, self.releases);
        let risk = |(situation, of_100): (&str, u32)| fact(situation, format!("{} of 100 guesses are right", right(of_100)));
        let mut blocks = vec![Block::Section(self.title.clone()), Block::Text(lead), Block::Facts(self.request.clone())];
        blocks.push(Block::Shares(self.scale.shares("job-cost")));
        blocks.push(Block::Text(self.scale.in_epsilon()));
        blocks.extend(self.waits.map(|words| Block::Text(words.to_owned())));
        blocks.push(Block::Heading("what one patient risks".to_owned()));
        blocks.push(Block::Facts(self.odds.situations().map(risk).to_vec()));
        blocks.extend([self.scope.clone(), self.not_protected.clone()].map(Block::Text));
        blocks
    }
}

#[cfg(test)]
#[path = "tests/plain.rs"]
mod tests;
