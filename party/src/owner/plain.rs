//! A pending job in plain words: who asks what of which columns, together with whom, at what cost and risk.

use std::iter;

use conclave_common::job::JobSpec;
use conclave_pages::document::{Block, Fact, fact};
use conclave_pages::moment::stored;
use conclave_pages::study::Study;

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
    pub(crate) analyst: String,
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
    /// True if the job uses the records or may do so: its cost is then still to come, at least in part.
    pub(crate) is_live: bool,
    /// The share of the budget that a job which has ended may spend if it is opened again, as a sentence.
    reopened: Option<String>,
    /// The sentence on what no guarantee covers.
    pub(crate) not_protected: String,
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
        let before = before.with_spent(job.spent().units);
        let after = before.with_job(worst.more_mu_squared, is_open, &config.policy);
        let reopened = after.job_percent().filter(|_| job.can_be_reopened() && worst.more_mu_squared > 0.0);
        // A job that has ended spends no more: its odds are those of its releases.
        let ended = WorstCase { more_mu_squared: 0.0, job_mu_squared: job.spent().mu_squared(), if_all_collude: None, ..*worst };
        let (worst, scale) = if job.is_live() { (worst, after) } else { (&ended, before) };
        let odds = Odds::new(spec, report, worst, is_open);
        let full = job.is_live() && !is_open && !config.policy.over_commit && before.lacks(worst.more_mu_squared);
        Some(Self {
            request: iter::once(fact("asked", stored(&job.request.asked))).chain(signed(job)).collect(),
            not_protected: not_protected(config.budget.unit),
            title: format!("{} asks to study {}", job.request.analyst, spec.model.outcome()),
            analyst: job.request.analyst.clone(),
            study: Study::new(spec),
            owners: owners(&spec.parties, &config.name),
            releases: releases(spec),
            scope: odds.scope(config.budget.unit, spec.parties.len()),
            waits: full.then_some("It does not fit beside the open jobs: once approved, it waits until others have ended."),
            is_live: job.is_live(),
            reopened: reopened.map(|share| format!("Should the coordinator open it again, it may spend at most {share} more.")),
            scale,
            odds,
        })
    }

    /// Returns the heading of the job's part of the budget.
    pub(crate) fn cost_heading(&self) -> &'static str {
        if self.is_live { "What it costs" } else { "What it has cost" }
    }

    /// States the job's own spending, then the spending over all jobs. A job that has ended without a release has cost nothing.
    pub(crate) fn in_epsilon(&self) -> String {
        let own = match self.scale.spent_by_job() {
            none if none.is_empty() && !self.is_live => "This job has spent nothing.".to_owned(),
            words => words,
        };
        let parts = [own, self.reopened.clone().unwrap_or_default(), self.scale.in_epsilon()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the summary as blocks of a document.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let lead = format!(
            "{} wants to know {}, {}. No record leaves. {}",
            self.analyst,
            self.study.words(),
            self.owners,
            self.releases
        );
        let risk = |(situation, of_100): (&str, u32)| fact(situation, format!("{} of 100 guesses are right", right(of_100)));
        let mut blocks = vec![Block::Section(self.title.clone()), Block::Text(lead), Block::Facts(self.request.clone())];
        blocks.push(Block::Shares(self.scale.shares("job-cost")));
        blocks.push(Block::Text(self.in_epsilon()));
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
