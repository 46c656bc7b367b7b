//! Pace and cost of a job, estimated from its statuses.

use std::time::Instant;

use conclave_common::job::{JobSpec, Until};
use conclave_pages::forecast::{Forecast, Pace, ProgressPoint};
use conclave_pages::target::Target;
use conclave_pages::text::duration;
use conclave_privacy::accounting::gaussian_dp;
use conclave_proto::v1::{JobStatus, ParameterFigure, TracesReply};

/// Window of the pace, in seconds.
const WINDOW: f64 = 30.0;
/// Values of a sparkline, one every [`SPACING`] seconds.
pub(super) const HISTORY: usize = 24;
const SPACING: f64 = 2.0;

pub(crate) struct RunHistory {
    begun: Instant,
    pace: Pace,
    /// The job's delta, if its file is available: without it epsilon can't be projected.
    delta: Option<f64>,
    /// The effective sample size and the R-hat that end the run, if the job states them.
    until: Option<Until>,
    limits: Vec<f64>,
    forecast: Option<Forecast>,
    sampled: f64,
    pub(super) rates: Vec<f64>,
    pub(super) accepted: Vec<f64>,
}

impl RunHistory {
    /// Returns an empty history; `source` is the job's file.
    pub(crate) fn new(source: Option<&str>) -> Self {
        let spec = source.and_then(|text| JobSpec::parse(text).ok());
        let delta = spec.as_ref().map(|spec| spec.privacy.budget.delta);
        Self {
            until: spec.and_then(|spec| spec.sampler.until),
            begun: Instant::now(),
            pace: Pace::new(WINDOW),
            delta,
            limits: Vec::new(),
            forecast: None,
            sampled: f64::NEG_INFINITY,
            rates: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Returns how far the kept draws are from the job's own target; `None` for a job without one, or before its sampling.
    pub(crate) fn target(&self, status: &JobStatus, traces: &TracesReply) -> Option<Target> {
        let until = self.until.filter(|_| status.state == "running" && status.phase == "sampling")?;
        let known =
            |figure: &Option<ParameterFigure>| figure.as_ref().filter(|_| !traces.warmup).map_or(f64::NAN, |figure| figure.value);
        let (ess, rhat) = (known(&traces.ess), known(&traces.rhat));
        Some(Target { ess, rhat, ess_wanted: until.ess, rhat_wanted: until.rhat })
    }

    pub(crate) fn observe(&mut self, status: &JobStatus, target: Option<Target>) {
        self.observe_at(status, target, self.begun.elapsed().as_secs_f64());
    }

    fn observe_at(&mut self, status: &JobStatus, target: Option<Target>, at: f64) {
        let mu_squared =
            |epsilon: f64| self.delta.filter(|_| epsilon > 0.0).map_or(0.0, |delta| gaussian_dp::mu(epsilon, delta).powi(2));
        let spent = status.parties.iter().map(|party| mu_squared(party.epsilon_spent)).collect();
        if self.limits.is_empty() && self.delta.is_some() {
            self.limits = status.parties.iter().map(|party| mu_squared(party.epsilon_budget)).collect();
        }
        let phase = (status.state == "running").then_some(&*status.phase);
        self.pace.observe(phase, ProgressPoint { at, rounds: status.iteration, draws: status.draws, mu_squared: spent });
        let asked = target.map_or(status.draws_asked, |target| target.draws(status.draws, status.draws_asked));
        self.forecast = self.pace.forecast(asked, &self.limits);
        if at - self.sampled >= SPACING
            && let Some(rate) = self.pace.rounds_per_second()
        {
            self.sampled = at;
            remember(&mut self.rates, rate);
            remember(&mut self.accepted, status.acceptance_rate);
        }
    }

    /// Formats ", 53 rounds/s, about 3 min 20 s left (the budget of hospital-a ends it)"; unknown figures are omitted.
    pub(super) fn pace_text(&self, status: &JobStatus) -> String {
        let mut text = String::new();
        if let Some(rate) = self.pace.rounds_per_second() {
            text += &if rate < 10.0 { format!(", {rate:.1} rounds/s") } else { format!(", {rate:.0} rounds/s") };
        }
        if let Some(forecast) = &self.forecast {
            text += &format!(", about {} left", duration(forecast.seconds_left));
            if let Some(party) = forecast.ended_by.and_then(|index| status.parties.get(index)) {
                text += &format!(" (the budget of {} ends it)", party.name);
            }
        }
        text
    }

    /// Returns the recent rounds per second, if known.
    pub(crate) fn rounds_per_second(&self) -> Option<f64> {
        self.pace.rounds_per_second()
    }

    /// Returns the seconds to the end, if they can be forecast.
    pub(crate) fn seconds_left(&self) -> Option<f64> {
        self.forecast.as_ref().map(|forecast| forecast.seconds_left)
    }

    /// Returns the index of the party whose budget is forecast to end the job.
    pub(crate) fn ended_by(&self) -> Option<usize> {
        self.forecast.as_ref().and_then(|forecast| forecast.ended_by)
    }

    /// Returns the epsilon that a party will have spent at the end, if it can be projected.
    pub(crate) fn epsilon_at_end(&self, party: usize) -> Option<f64> {
        let delta = self.delta?;
        self.forecast.as_ref()?.epsilon_at_end(party, |mu| gaussian_dp::epsilon(mu, delta))
    }
}

fn remember(history: &mut Vec<f64>, value: f64) {
    if history.len() == HISTORY {
        history.remove(0);
    }
    history.push(value);
}

/// Returns the indices of the parties with the largest spent share of their budgets, at most `most`, in the job's order.
pub(super) fn most_spent(status: &JobStatus, most: usize) -> Vec<usize> {
    let share = |index: &usize| status.parties.get(*index).map_or(0.0, |party| party.epsilon_spent / party.epsilon_budget);
    let mut order: Vec<usize> = (0..status.parties.len()).collect();
    order.sort_by(|a, b| share(b).total_cmp(&share(a)));
    order.truncate(most);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use conclave_proto::v1::PartyStatus;

    use super::*;

    const JOB: &str = "name = \"j\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n\
                       [privacy]\nepsilon = 3.0\ndelta = 1e-6\n";

    fn status(seconds: u32, share: f64) -> JobStatus {
        let epsilon = |mu_squared: f64| gaussian_dp::epsilon(mu_squared.sqrt(), 1e-6);
        let limit = gaussian_dp::mu(3.0, 1e-6).powi(2);
        let party = |name: &str, share: f64| PartyStatus {
            name: name.to_owned(),
            epsilon_spent: if share > 0.0 { epsilon(share * limit) } else { 0.0 },
            epsilon_budget: 3.0,
            ..PartyStatus::default()
        };
        JobStatus {
            state: "running".to_owned(),
            phase: "sampling".to_owned(),
            iteration: u64::from(seconds) * 20,
            draws: u64::from(seconds) * 4,
            draws_asked: 400,
            acceptance_rate: 0.4,
            parties: vec![party("a", share * f64::from(seconds)), party("b", 0.5 * share * f64::from(seconds))],
            ..JobStatus::default()
        }
    }

    #[test]
    fn time_and_cost_are_projected() {
        let mut history = RunHistory::new(Some(JOB));
        assert_eq!(history.pace_text(&status(0, 0.0)), "");
        (0..=20).for_each(|second| history.observe_at(&status(second, 0.005), None, f64::from(second)));
        let now = status(20, 0.005);
        assert_eq!(history.pace_text(&now), ", 20 rounds/s, about 1 min 20 s left");
        // Half of the budget in mu squared at the end.
        let half = gaussian_dp::epsilon((gaussian_dp::mu(3.0, 1e-6).powi(2) / 2.0).sqrt(), 1e-6);
        assert!(
            history.epsilon_at_end(0).is_some_and(|epsilon| (epsilon - half).abs() < 1e-3),
            "{:?}",
            history.epsilon_at_end(0)
        );
        let (rates, accepted) = (history.rates.len(), history.accepted.len());
        assert!(rates == accepted && (9..=11).contains(&rates), "{rates}");
        // A pause ends the forecast; an exhausted budget ends the run.
        history.observe_at(&JobStatus { state: "paused".to_owned(), ..now }, None, 21.0);
        assert_eq!((history.epsilon_at_end(0), history.pace_text(&status(20, 0.005))), (None, String::new()));
        let mut history = RunHistory::new(Some(JOB));
        (0..=20).for_each(|second| history.observe_at(&status(second, 0.02), None, f64::from(second)));
        assert_eq!(history.pace_text(&status(20, 0.02)), ", 20 rounds/s, about 30 s left (the budget of a ends it)");
        assert_eq!(most_spent(&status(20, 0.02), 1), [0]);
    }

    /// Effective draws end a job that asks for them: at 25 of 50 after 20 s there are 20 s left, not the 80 of all draws.
    #[test]
    fn a_job_with_a_target_counts_effective_draws() {
        let job = JOB.replace("[privacy]", "[sampler]\nuntil = { ess = 50, rhat = 1.1 }\n[privacy]");
        let mut history = RunHistory::new(Some(&job));
        let figure = |value: f64| Some(ParameterFigure { parameter: "p".to_owned(), value });
        for second in 0..=20 {
            let traces = TracesReply { ess: figure(1.25 * f64::from(second)), rhat: figure(1.02), ..TracesReply::default() };
            let status = status(second, 0.005);
            let target = history.target(&status, &traces);
            history.observe_at(&status, target, f64::from(second));
            if second == 20 {
                assert_eq!(target.map(|target| target.words()), Some("25 of 50 effective draws".to_owned()));
                assert_eq!(history.pace_text(&status), ", 20 rounds/s, about 20 s left");
            }
        }
        let warmup = JobStatus { phase: "warmup".to_owned(), ..status(3, 0.0) };
        assert_eq!(history.target(&warmup, &TracesReply::default()), None);
        assert_eq!(RunHistory::new(Some(JOB)).target(&status(3, 0.0), &TracesReply::default()), None);
    }

    #[test]
    fn without_the_job_file_the_draws_are_counted() {
        let mut history = RunHistory::new(None);
        (0..=20).for_each(|second| history.observe_at(&status(second, 0.02), None, f64::from(second)));
        assert_eq!(
            (history.pace_text(&status(20, 0.02)), history.epsilon_at_end(0)),
            (", 20 rounds/s, about 1 min 20 s left".to_owned(), None)
        );
    }
}
