//! The one scale of a data budget: shares of mu², which add up over jobs under Gaussian differential privacy.
//!
//! Every surface shows the same parts: spent, held by open jobs, this job, left. Those of one job's page set its own spending apart. The stated room for one more job is computed by
//! [`askable`], by which the party admits jobs.

use conclave_common::epsilon;
use conclave_common::job::budget_words::{askable, epsilon_of};
use conclave_pages::shares::{Fill, Part, Shares};
use conclave_privacy::accounting::{Budget, PrivacyFilter, mu_squared};
use conclave_vault::config::Policy;
use serde_json::{Value, json};

use crate::config::PartyConfig;
use crate::ledger_views::{Report, Units};

use super::figure::figure;

/// The parts of a budget, in units of 2^-48 mu²; they sum to the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    whole: u64,
    spent: u64,
    /// The part of `spent` that the job under consideration has spent.
    own: u64,
    held: u64,
    /// The part that the job under consideration may still spend; `None` where there is none.
    job: Option<u64>,
    left: u64,
    open_jobs: usize,
    /// The mu² that one analyst's next job may take by the owner's limit on an analyst; `None` without one.
    analyst_left: Option<u64>,
    room: Room,
    budget: Budget,
}

/// The largest epsilon of one more job, at the budget's delta.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Room {
    epsilon: f64,
    /// The owner's limit that is smaller than what the budget leaves; empty where none is.
    limit: &'static str,
}

/// Computes the largest epsilon of a job that opens on `units` of mu², of which its analyst may take `analyst_left`, within the policy's
/// limit for one job.
fn room(units: u64, analyst_left: Option<u64>, budget: &Budget, policy: &Policy) -> Room {
    let job = Budget { reserve_units: 0, ..*budget };
    let least = units.min(analyst_left.unwrap_or(u64::MAX));
    let by_budget = askable(least, &job);
    match policy.max_epsilon_per_job {
        Some(limit) if limit < by_budget => Room { epsilon: limit, limit: ", your limit for one job" },
        _ if least < units => Room { epsilon: by_budget, limit: ", by your limit for one analyst" },
        _ => Room { epsilon: by_budget, limit: "" },
    }
}

impl Scale {
    /// Reads the scale of a report, without a job under consideration. Its room is that of an analyst who has no other job.
    pub(crate) fn new(report: &Report, config: &PartyConfig) -> Self {
        let limit = config.ledger_settings().analyst_cap.and_then(|cap| PrivacyFilter::new(&cap).ok());
        let scale = Self::of_units(report.units, report.open_jobs.len(), &config.budget, &config.policy);
        scale.within(limit.map(|limit| limit.limit_units()), &config.policy)
    }

    /// Reads the scale of a report for a job of this analyst, whose other jobs have spent and hold a part of the owner's limit.
    pub(crate) fn of_analyst(report: &Report, config: &PartyConfig, analyst: &str, job: &str) -> Self {
        let scale = Self::new(report, config);
        let spent = report.analysts.iter().find(|known| known.analyst == analyst).map_or(0.0, |known| known.mu_squared_spent);
        let others = report.open_jobs.iter().filter(|open| open.analyst == analyst && open.job != job);
        let promised: f64 = others.map(|open| (open.mu_squared_cap - open.mu_squared_spent).max(0.0)).sum();
        let taken = ((spent + if config.policy.over_commit { 0.0 } else { promised }) / mu_squared(1)).round() as u64;
        scale.within(scale.analyst_left.map(|limit| limit.saturating_sub(taken)), &config.policy)
    }

    fn within(self, analyst_left: Option<u64>, policy: &Policy) -> Self {
        let free = if policy.over_commit { self.whole - self.spent } else { self.left };
        Self { analyst_left, room: room(free, analyst_left, &self.budget, policy), ..self }
    }

    fn of_units(units: Units, open_jobs: usize, budget: &Budget, policy: &Policy) -> Self {
        let remaining = units.remaining.min(units.whole);
        let held = units.promised.min(remaining);
        let left = remaining - held;
        let free = if policy.over_commit { remaining } else { left };
        let (spent, room) = (units.whole - remaining, room(free, None, budget, policy));
        Self { whole: units.whole, spent, own: 0, held, job: None, left, open_jobs, analyst_left: None, room, budget: *budget }
    }

    /// Sets apart the units of mu² that the job under consideration has spent.
    pub(crate) fn with_spent(self, own: u64) -> Self {
        Self { own: own.min(self.spent), ..self }
    }

    /// Sets apart the mu² that one job may still spend: a part of the held budget if the job is open, else of the rest. The room
    /// is then that beside the job.
    pub(crate) fn with_job(self, more_mu_squared: f64, is_open: bool, policy: &Policy) -> Self {
        let more = (more_mu_squared / mu_squared(1)).round() as u64;
        let source = if is_open { self.held } else { self.left };
        let job = more.min(source);
        let (held, left) = if is_open { (self.held - job, self.left) } else { (self.held, self.left - job) };
        let open_jobs = self.open_jobs.saturating_sub(usize::from(is_open));
        let free = if policy.over_commit { self.whole - self.spent - job } else { left };
        let analyst_left = self.analyst_left.map(|units| units.saturating_sub(job));
        Self { held, left, job: Some(job), open_jobs, analyst_left, room: room(free, analyst_left, &self.budget, policy), ..self }
    }

    /// Returns the largest epsilon of one more job.
    pub(crate) fn room(&self) -> f64 {
        self.room.epsilon
    }

    /// Returns the share of the job under consideration in the whole budget, as the bar shows it.
    pub(crate) fn job_percent(&self) -> Option<String> {
        self.shares("").percent_of(Fill::Planned)
    }

    /// Returns true where what no open job holds, of the budget or of the owner's limit on the analyst, lacks a part of this mu².
    pub(crate) fn lacks(&self, mu_squared_needed: f64) -> bool {
        let needed = (mu_squared_needed / mu_squared(1)).round() as u64;
        needed > self.left || self.analyst_left.is_some_and(|left| needed > left)
    }

    fn epsilon(&self, units: u64) -> String {
        epsilon::spent(epsilon_of(units, self.budget.delta))
    }

    /// States the room for one more job.
    pub(crate) fn caption(&self) -> String {
        let Room { epsilon, limit } = self.room;
        let beside = if self.job.is_some() { " beside this one" } else { "" };
        match epsilon > 0.0 {
            false => format!("No room for one more job{beside}{limit}."),
            true => format!("Room for one more job of ε {}{beside}{limit}.", epsilon::room(epsilon)),
        }
    }

    /// States what the job under consideration has spent; empty where it has spent nothing.
    pub(crate) fn spent_by_job(&self) -> String {
        let (epsilon, delta) = (self.epsilon(self.own), figure(self.budget.delta));
        if self.own == 0 { String::new() } else { format!("This job has spent epsilon {epsilon} at delta {delta}.") }
    }

    /// States the epsilon that belongs to the shares.
    pub(crate) fn in_epsilon(&self) -> String {
        let after = match self.job {
            Some(job) if job > 0 => format!(", at most {} after this job", self.epsilon(self.spent + job)),
            _ => String::new(),
        };
        format!(
            "Shares are of the privacy budget in μ², which adds up over jobs. In epsilon, which does not add: {} spent{after}, of {}, at \
             delta {}.",
            self.epsilon(self.spent),
            figure(self.budget.epsilon),
            figure(self.budget.delta)
        )
    }

    /// Returns the bar.
    pub(crate) fn shares(&self, id: &'static str) -> Shares {
        let held = match self.open_jobs {
            1 => "held by 1 open job".to_owned(),
            n => format!("held by {n} open jobs"),
        };
        let part = |fill, name: &str, units| Part { fill, name: name.to_owned(), units };
        let (spent, more) = match self.own {
            0 => ("spent", "this job, at most"),
            _ => ("other jobs have spent", "this job may still spend, at most"),
        };
        let mut parts = vec![part(Fill::Spent, spent, self.spent - self.own)];
        parts.extend((self.own > 0).then(|| part(Fill::Own, "this job has spent", self.own)));
        parts.extend((self.held > 0).then(|| part(Fill::Held, &held, self.held)));
        parts.extend(self.job.map(|job| part(Fill::Planned, more, job)));
        parts.push(part(Fill::Left, "left", self.left));
        Shares { id, title: "The data's privacy budget".to_owned(), parts, caption: self.caption() }
    }

    /// Returns the scale for programs: shares of mu², which sum to 1, and the room.
    pub(crate) fn value(&self) -> Value {
        let share = |units: u64| units as f64 / self.whole.max(1) as f64;
        json!({
            "spent": share(self.spent), "held_by_open_jobs": share(self.held), "this_job": self.job.map(share), "left": share(self.left),
            "room_epsilon": self.room(), "delta": self.budget.delta,
        })
    }
}

#[cfg(test)]
#[path = "tests/scale.rs"]
mod tests;
