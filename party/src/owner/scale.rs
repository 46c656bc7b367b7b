//! The one scale of a data budget: shares of mu², which add up over jobs under Gaussian differential privacy.
//!
//! Every surface shows the same parts: spent, held by open jobs, this job, left. The stated room for one more job is computed by
//! [`askable`], by which the party admits jobs.

use conclave_common::job::budget_words::askable;
use conclave_pages::shares::{Fill, Part, Shares};
use conclave_privacy::accounting::{Budget, gaussian_dp, mu_squared};
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
    held: u64,
    /// The part of one job under consideration; `None` where there is none.
    job: Option<u64>,
    left: u64,
    open_jobs: usize,
    room: Room,
    budget: Budget,
}

/// The largest epsilon of one more job, at the budget's delta.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Room {
    epsilon: f64,
    /// The policy's limit for one job is smaller than the budget's.
    is_limited: bool,
}

/// Computes the largest epsilon of a job that opens on `units` of mu², within the policy's limit for one job.
fn room(units: u64, budget: &Budget, policy: &Policy) -> Room {
    let job = Budget { reserve_units: 0, ..*budget };
    let by_budget = askable(units, &job);
    match policy.max_epsilon_per_job {
        Some(limit) if limit < by_budget => Room { epsilon: limit, is_limited: true },
        _ => Room { epsilon: by_budget, is_limited: false },
    }
}

impl Scale {
    /// Reads the scale of a report, without a job under consideration.
    pub(crate) fn new(report: &Report, config: &PartyConfig) -> Self {
        Self::of_units(report.units, report.open_jobs.len(), &config.budget, &config.policy)
    }

    fn of_units(units: Units, open_jobs: usize, budget: &Budget, policy: &Policy) -> Self {
        let remaining = units.remaining.min(units.whole);
        let held = units.promised.min(remaining);
        let left = remaining - held;
        let free = if policy.over_commit { remaining } else { left };
        let room = room(free, budget, policy);
        Self { whole: units.whole, spent: units.whole - remaining, held, job: None, left, open_jobs, room, budget: *budget }
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
        Self { held, left, job: Some(job), open_jobs, room: room(free, &self.budget, policy), ..self }
    }

    /// Returns the largest epsilon of one more job.
    pub(crate) fn room(&self) -> f64 {
        self.room.epsilon
    }

    /// Returns the share of the job under consideration in the whole budget, as the bar shows it.
    pub(crate) fn job_percent(&self) -> Option<String> {
        self.shares("").percent_of(Fill::Planned)
    }

    /// Returns true where the budget that no open job holds lacks a part of this mu².
    pub(crate) fn lacks(&self, mu_squared_needed: f64) -> bool {
        (mu_squared_needed / mu_squared(1)).round() as u64 > self.left
    }

    fn epsilon(&self, units: u64) -> String {
        let epsilon = if units == 0 { 0.0 } else { gaussian_dp::epsilon(mu_squared(units).sqrt(), self.budget.delta) };
        figure(format!("{epsilon:.2}").parse().unwrap_or(epsilon))
    }

    /// States the room for one more job.
    pub(crate) fn caption(&self) -> String {
        let Room { epsilon, is_limited } = self.room;
        let beside = if self.job.is_some() { " beside this one" } else { "" };
        match (epsilon > 0.0, is_limited) {
            (false, _) => format!("No room for one more job{beside}."),
            (true, false) => format!("Room for one more job of ε {}{beside}.", figure(epsilon)),
            (true, true) => format!("Room for one more job of ε {}{beside}, your limit for one job.", figure(epsilon)),
        }
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
        let mut parts = vec![part(Fill::Spent, "spent", self.spent)];
        parts.extend((self.held > 0).then(|| part(Fill::Held, &held, self.held)));
        parts.extend(self.job.map(|job| part(Fill::Planned, "this job, at most", job)));
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
