//! The odds of a guess about one unit of privacy, for owners who are no statisticians.
//!
//! Under mu-GDP, someone who knows two candidate records and sees every release guesses which of them is in the data. With equal odds
//! beforehand, the best guess is right with probability Φ(mu/2) exactly: the trade-off curve of N(0, 1) against N(mu, 1) gives the
//! smallest sum of both errors, 2 Φ(-mu/2) (Dong, Roth & Su 2022, Definition 2.6).

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use serde::Serialize;

use super::worst_case::WorstCase;
use crate::ledger_views::Report;

/// Probability that the best guess is right under `mu`-GDP, if both candidates were equally likely beforehand.
pub(crate) fn right_guess(mu: f64) -> f64 {
    1.0 - 0.5 * libm::erfc(0.5 * mu * std::f64::consts::FRAC_1_SQRT_2)
}

/// Returns the number of right guesses of 100, rounded up: at most this many.
pub(crate) fn of_100(probability: f64) -> u32 {
    // A margin below the figure's own precision keeps exact percentages, such as 50, as they are.
    (100.0 * probability - 1e-9).ceil().clamp(50.0, 100.0) as u32
}

/// States a number of right guesses of 100, as [`of_100`] returns it: `at most 63`. 100 stands for a probability above 0.99, which is
/// certainty for no finite mu.
pub(crate) fn right(of_100: u32) -> String {
    match of_100 {
        ..=50 => "50".to_owned(),
        51..100 => format!("at most {of_100}"),
        _ => "more than 99".to_owned(),
    }
}

/// Returns what is guessed of a unit: `between two contents`, or `between presence and absence` where a unit is added or removed.
pub(crate) fn between(unit: PrivacyUnit) -> &'static str {
    match unit.adjacency {
        Adjacency::Replace => "between two contents",
        Adjacency::AddRemove => "between presence and absence",
    }
}

/// Right guesses of 100, at most, in the situations that an owner compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Odds {
    /// After all releases of this job.
    pub(crate) this_job: u32,
    /// After all releases so far, those that open jobs may still make, and those of this job.
    pub(crate) with_earlier: u32,
    /// After the whole budget is spent.
    pub(crate) whole_budget: u32,
    /// After this job, for a person with records at all owners of the job; `None` for a job of one owner.
    pub(crate) at_all_owners: Option<u32>,
    /// After this job, if all other parties of a masked job collude; `None` for other jobs.
    pub(crate) if_all_collude: Option<u32>,
}

impl Odds {
    /// Computes the odds of a job's worst case. The reserve of delta for subsampled releases, where the job has one, is added as a
    /// probability.
    ///
    /// What open jobs may still spend counts as spent; `is_open` is true if this job is one of them.
    pub(crate) fn new(spec: &JobSpec, report: &Report, worst: &WorstCase, is_open: bool) -> Self {
        let budget = &spec.privacy.budget;
        let reserve_of_job = (budget.promised_delta() - budget.delta).max(0.0);
        let at = |mu_squared: f64, reserve: f64| of_100(right_guess(mu_squared.max(0.0).sqrt()) + reserve);
        let more = if is_open { 0.0 } else { worst.more_mu_squared };
        let all = report.mu_squared_spent + report.mu_squared_promised + more;
        let (job, owners) = (worst.job_mu_squared, spec.parties.len() as f64);
        // Separate sums add mu squared; one opened sum adds mu.
        let factor = if spec.aggregation.is_secure() { owners * owners } else { owners };
        Self {
            this_job: at(job, reserve_of_job),
            with_earlier: at(all.min(report.mu_squared_budget), report.delta_reserve),
            whole_budget: at(report.mu_squared_budget, report.delta_reserve),
            at_all_owners: (spec.parties.len() > 1).then(|| at(job * factor, reserve_of_job * owners)),
            if_all_collude: worst.if_all_collude.map(|collude| at(job * f64::from(collude.honest), reserve_of_job)),
        }
    }

    /// Returns each situation with its number of right guesses of 100.
    pub(crate) fn situations(&self) -> [(&'static str, u32); 4] {
        [
            ("without any answer", 50),
            ("after this job", self.this_job),
            ("with all earlier and open jobs", self.with_earlier),
            ("if the whole budget is spent", self.whole_budget),
        ]
    }

    /// States what is guessed, and for whom the numbers hold.
    pub(crate) fn scope(&self, unit: PrivacyUnit, owners: usize) -> String {
        let who = if unit.records_per_person().is_some() { "person" } else { "row" };
        let guess = match unit.adjacency {
            Adjacency::Replace => format!("whether a given {who} of your data has one content or another"),
            Adjacency::AddRemove => format!("whether a given {who} is in your data"),
        };
        let mut words = format!("How often a guess {guess} is right, for someone who knows everything else. Holds for one {who}");
        words += match unit.records_per_person() {
            Some(_) => " with all rows that are used.",
            None => ": a patient with several rows is protected less.",
        };
        if let Some(several) = self.at_all_owners {
            let records = if unit.records_per_person().is_some() { "records" } else { "one row" };
            words += &format!(
                " For a patient with {records} at each of {owners} owners, all of whom spend as much: {} of 100 after this job.",
                right(several)
            );
        }
        if let Some(collude) = self.if_all_collude {
            words += &format!(" Should all other owners collude with the coordinator: {} of 100 after this job.", right(collude));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Φ(mu/2) at tabulated points of the normal law.
    #[test]
    fn a_guess_is_right_with_probability_phi_of_half_mu() {
        for (mu, expected) in
            [(0.0, 0.5), (1.0, 0.691_462_461_274_013), (2.0, 0.841_344_746_068_543), (4.0, 0.977_249_868_051_821)]
        {
            assert!((right_guess(mu) - expected).abs() < 1e-14, "{mu}: {}", right_guess(mu));
        }
        assert_eq!([0.0, 1.0, 2.0, 40.0].map(|mu| of_100(right_guess(mu))), [50, 70, 85, 100]);
        // No guess is certain. Φ(mu/2) is 0.99 at mu = 4.6527.
        let words = [0.0, 1e-6, 1.0, 4.652, 4.653, 40.0].map(|mu| right(of_100(right_guess(mu))));
        assert_eq!(words, ["50", "at most 51", "at most 70", "at most 99", "more than 99", "more than 99"]);
    }

    /// The best of all thresholds between N(0, 1) and N(mu, 1), found by search, is right as often as stated.
    #[test]
    fn no_threshold_does_better() {
        let cdf = |x: f64| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        for mu in [0.1, 0.66, 1.2, 3.0] {
            let right = |threshold: f64| 0.5 * cdf(threshold) + 0.5 * (1.0 - cdf(threshold - mu));
            let best = (-4000..8000).map(|n| right(f64::from(n) / 1000.0)).fold(0.0, f64::max);
            assert!(best <= right_guess(mu) + 1e-15 && best > right_guess(mu) - 1e-6, "{mu}: {best}");
        }
    }
}
