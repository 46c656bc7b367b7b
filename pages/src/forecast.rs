//! Forecast of a run: its pace, its end and its total cost.

use std::collections::VecDeque;

/// The progress of a run at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressPoint {
    /// Seconds of a monotonic clock.
    pub at: f64,
    /// Number of rounds.
    pub rounds: u64,
    /// Kept draws per chain.
    pub draws: u64,
    /// Mu squared spent at each party, which adds up, unlike epsilon.
    pub mu_squared: Vec<f64>,
}

/// The forecast of a run at a constant pace.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Seconds until the end.
    pub seconds_left: f64,
    /// The index of the party whose budget ends the run; `None` if the run completes all draws.
    pub ended_by: Option<usize>,
    /// Mu squared at each party at the end.
    pub mu_squared: Vec<f64>,
}

impl Forecast {
    /// Returns the epsilon that a party will have spent at the end; `None` for a party that spends nothing or does not exist.
    /// `epsilon` converts a mu to epsilon at the job's delta.
    #[must_use]
    pub fn epsilon_at_end(&self, party: usize, epsilon: impl Fn(f64) -> f64) -> Option<f64> {
        let mu_squared = *self.mu_squared.get(party)?;
        (mu_squared > 0.0).then(|| epsilon(mu_squared.sqrt()))
    }
}

/// The pace of a run over a recent time window.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    moments: VecDeque<ProgressPoint>,
    window: f64,
    phase: String,
}

impl Pace {
    /// Creates a pace over the last `window` seconds, which must be above 0.
    #[must_use]
    pub fn new(window: f64) -> Self {
        Self { moments: VecDeque::new(), window, phase: String::new() }
    }

    /// Adds a run's progress in this phase, or in none while it is paused. A change of phase and a pause reset the pace, since
    /// each phase has its own.
    pub fn observe(&mut self, phase: Option<&str>, moment: ProgressPoint) {
        if phase != Some(&*self.phase) {
            self.moments.clear();
            phase.unwrap_or_default().clone_into(&mut self.phase);
        }
        if phase.is_some() {
            self.record(moment);
        }
    }

    fn record(&mut self, moment: ProgressPoint) {
        // A long gap between observations may have been a pause.
        if self.moments.back().is_some_and(|last| moment.at - last.at > 0.5 * self.window) {
            self.moments.clear();
        }
        // About four hundred points suffice, however often the run reports its progress.
        let spacing = self.window / 200.0;
        if self.moments.len() > 1 && self.moments.iter().rev().nth(1).is_some_and(|before| moment.at - before.at < spacing) {
            self.moments.pop_back();
        }
        let from = moment.at - self.window;
        self.moments.push_back(moment);
        while self.moments.len() > 2 && self.moments.get(1).is_some_and(|second| second.at < from) {
            self.moments.pop_front();
        }
    }

    /// Returns the first and the last point with the elapsed seconds, which must be at least 1.
    fn ends(&self) -> Option<(&ProgressPoint, &ProgressPoint, f64)> {
        let (first, last) = (self.moments.front()?, self.moments.back()?);
        let elapsed = last.at - first.at;
        (elapsed >= 1.0).then_some((first, last, elapsed))
    }

    /// Returns the rounds per second; `None` without enough observations.
    #[must_use]
    pub fn rounds_per_second(&self) -> Option<f64> {
        let (first, last, elapsed) = self.ends()?;
        Some(last.rounds.saturating_sub(first.rounds) as f64 / elapsed)
    }

    /// Returns the kept draws per chain and second; `None` without enough observations.
    #[must_use]
    pub fn draws_per_second(&self) -> Option<f64> {
        let (first, last, elapsed) = self.ends()?;
        Some(last.draws.saturating_sub(first.draws) as f64 / elapsed)
    }

    /// Forecasts the end and the cost of a run of `draws` per chain with the budgets `limits` of mu squared at each party; `None`
    /// while no draw is kept, or without enough observations.
    #[must_use]
    pub fn forecast(&self, draws: u64, limits: &[f64]) -> Option<Forecast> {
        let (first, last, elapsed) = self.ends()?;
        let drawn = self.draws_per_second().filter(|drawn| *drawn > 0.0)?;
        let rate = |party: usize| {
            let of = |moment: &ProgressPoint| moment.mu_squared.get(party).copied().unwrap_or(0.0);
            (of(last) - of(first)).max(0.0) / elapsed
        };
        let by_draws = draws.saturating_sub(last.draws) as f64 / drawn;
        let by_budget = limits.iter().enumerate().filter_map(|(party, limit)| {
            let seconds = (limit - last.mu_squared.get(party)?).max(0.0) / rate(party);
            seconds.is_finite().then_some((party, seconds))
        });
        let soonest = by_budget.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, seconds)| *seconds < by_draws);
        let seconds_left = soonest.map_or(by_draws, |(_, seconds)| seconds);
        let at_the_end = |(party, now): (usize, &f64)| {
            let then = now + rate(party) * seconds_left;
            limits.get(party).map_or(then, |limit| then.min(limit.max(*now)))
        };
        let mu_squared = last.mu_squared.iter().enumerate().map(at_the_end).collect();
        Some(Forecast { seconds_left, ended_by: soonest.map(|(party, _)| party), mu_squared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> ProgressPoint {
        ProgressPoint {
            at: seconds,
            rounds: (seconds * 50.0) as u64,
            draws: (seconds * 10.0) as u64,
            mu_squared: vec![seconds * 0.01, seconds * 0.02],
        }
    }

    #[test]
    fn a_run_ends_with_its_draws_or_its_budget() {
        let mut pace = Pace::new(30.0);
        assert_eq!((pace.rounds_per_second(), pace.forecast(10, &[])), (None, None));
        (0..=100).for_each(|second| pace.observe(Some("sampling"), at(f64::from(second))));
        assert_eq!((pace.rounds_per_second(), pace.draws_per_second()), (Some(50.0), Some(10.0)));
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let all = pace.forecast(1500, &[9.0, 9.0]);
        assert!(
            all.as_ref().is_some_and(|f| close(f.seconds_left, 50.0) && f.ended_by.is_none() && close(f.mu_squared[1], 3.0)),
            "{all:?}"
        );
        let budget = pace.forecast(1500, &[9.0, 2.5]);
        assert!(
            budget.as_ref().is_some_and(|f| close(f.seconds_left, 25.0) && f.ended_by == Some(1) && close(f.mu_squared[1], 2.5)),
            "{budget:?}"
        );
        // Another phase and a pause reset the pace.
        for phase in [Some("another"), None] {
            pace.observe(phase, at(101.0));
            assert_eq!(pace.forecast(1500, &[9.0, 2.5]), None);
            (102..=104).for_each(|second| pace.observe(Some("sampling"), at(f64::from(second))));
            assert!(pace.forecast(1500, &[9.0, 2.5]).is_some());
        }
    }

    #[test]
    fn only_the_last_seconds_count_and_few_moments_are_kept() {
        let mut pace = Pace::new(10.0);
        (0..5000).for_each(|i| pace.record(at(f64::from(i) * 0.01)));
        pace.record(ProgressPoint { at: 50.0, draws: 500, rounds: 2500, mu_squared: vec![0.5, 1.0] });
        assert!(pace.moments.len() <= 402, "{}", pace.moments.len());
        let slow = |at: f64| ProgressPoint { at, draws: 500, rounds: 2500, mu_squared: vec![0.5, 1.0] };
        (51..=75).for_each(|second| pace.record(slow(f64::from(second))));
        assert_eq!((pace.rounds_per_second(), pace.forecast(900, &[])), (Some(0.0), None));
        // After a gap the pace is unknown rather than low.
        pace.record(slow(81.0));
        assert_eq!(pace.rounds_per_second(), None);
    }
}
