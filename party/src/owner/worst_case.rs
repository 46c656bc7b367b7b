//! The worst case of a job: its cost if it uses everything it may.

use conclave_common::job::JobSpec;
use conclave_inference::figures::zcdp;
use conclave_privacy::accounting::{AccountingError, Budget, PrivacyFilter, gaussian_dp, mu_squared};
use serde::Serialize;

use crate::ledger_views::Report;
use conclave_vault::ledger::LedgerSettings;

/// The worst case of a job, in Gaussian differential privacy unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct WorstCase {
    /// mu² of this job, including what it has already spent.
    pub(crate) job_mu_squared: f64,
    /// Epsilon of this job at `job_delta`.
    pub(crate) job_epsilon: f64,
    /// The same by zCDP.
    pub(crate) job_epsilon_zcdp: f64,
    pub(crate) job_delta: f64,
    /// Current epsilon of the data, at `data_delta`.
    pub(crate) data_epsilon_now: f64,
    /// Epsilon of the data after this job, at `data_delta`.
    pub(crate) data_epsilon_after: f64,
    pub(crate) data_epsilon_budget: f64,
    pub(crate) data_delta: f64,
    /// Share of the budget, as mu², spent after this job.
    pub(crate) share_after: f64,
    /// mu² that this job may still spend.
    pub(crate) more_mu_squared: f64,
    /// True if the data's budget or the analyst's cap, not the job's own, would end it.
    pub(crate) ended_early: bool,
    /// The worst case under full collusion, for a masked job.
    pub(crate) if_all_collude: Option<AllCollude>,
}

/// The worst case of a masked job if all other parties collude.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct AllCollude {
    pub(crate) parties: usize,
    /// Assumed number of other parties that collude with the coordinator.
    pub(crate) colluders: u32,
    /// Number of parties whose noise sets the job's charges.
    pub(crate) honest: u32,
    /// Epsilon of the data after this job, at the budget's delta: past charges, and the rest of this job at the price without
    /// other parties' noise.
    pub(crate) data_epsilon: f64,
    pub(crate) limit: Option<f64>,
    /// True if that limit would end the job first.
    pub(crate) ended_early: bool,
}

/// Computes [`AllCollude`] for a job that may still spend `more` mu².
fn all_collude(spec: &JobSpec, report: &Report, more: f64) -> Option<AllCollude> {
    let secure = spec.aggregation.secure()?;
    let honest = spec.aggregation.honest(spec.parties.len()).get();
    let booked = report.if_all_collude.map_or(report.mu_squared_spent, |collude| collude.mu_squared_spent);
    let limit = report.if_all_collude.and_then(|collude| collude.mu_squared_limit.zip(collude.epsilon_limit));
    // A charge is at least the honest share of the answer's cost without other parties' noise.
    let after = booked + more * f64::from(honest);
    let least = limit.map_or(after, |(mu_squared, _)| after.min(mu_squared));
    Some(AllCollude {
        parties: spec.parties.len(),
        colluders: secure.colluders,
        honest,
        data_epsilon: if least > 0.0 { gaussian_dp::epsilon(least.sqrt(), report.delta) } else { 0.0 },
        limit: limit.map(|(_, epsilon)| epsilon),
        ended_early: least < after,
    })
}

/// Returns the remaining mu² of the owner's cap on one analyst; `None` without a cap.
///
/// # Errors
/// Fails for a cap that can't be accounted for.
pub(crate) fn analyst_remaining(
    settings: &LedgerSettings,
    report: &Report,
    analyst: &str,
) -> Result<Option<f64>, AccountingError> {
    let Some(cap) = &settings.analyst_cap else { return Ok(None) };
    let limit = mu_squared(PrivacyFilter::new(cap)?.limit_units());
    let spent = report.analysts.iter().find(|a| a.analyst == analyst).map_or(0.0, |a| a.mu_squared_spent);
    Ok(Some((limit - spent).max(0.0)))
}

/// Computes the worst case of a job that has spent `spent` units of 2^-48 mu² on data in the state of `report`;
/// `analyst_remaining` is the remaining mu² of its analyst's cap.
///
/// # Errors
/// Fails for a cap that can't be accounted for.
pub(crate) fn worst_case(
    spec: &JobSpec,
    spent: u64,
    report: &Report,
    analyst_remaining: Option<f64>,
) -> Result<WorstCase, AccountingError> {
    let cap = spec.privacy.budget;
    let limit = PrivacyFilter::new(&cap)?.limit_units();
    let spent = mu_squared(spent);
    let remaining = (mu_squared(limit) - spent).max(0.0);
    let more = remaining.min(report.mu_squared_remaining).min(analyst_remaining.unwrap_or(f64::INFINITY));
    let (job, data) = (spent + more, report.mu_squared_spent + more);
    let epsilon = |mu_squared: f64, delta| if mu_squared > 0.0 { gaussian_dp::epsilon(mu_squared.sqrt(), delta) } else { 0.0 };
    let whole = Budget { epsilon: report.epsilon_budget, delta: report.delta, ..cap };
    Ok(WorstCase {
        job_mu_squared: job,
        job_epsilon: epsilon(job, cap.delta),
        job_epsilon_zcdp: if job > 0.0 { zcdp::epsilon(job / 2.0, cap.delta) } else { 0.0 },
        job_delta: cap.delta,
        data_epsilon_now: report.epsilon_spent,
        data_epsilon_after: epsilon(data, report.delta),
        data_epsilon_budget: whole.epsilon,
        data_delta: whole.delta,
        share_after: (data / report.mu_squared_budget).min(1.0),
        more_mu_squared: more,
        ended_early: more < remaining,
        if_all_collude: all_collude(spec, report, more),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ledger_views::{report, report_kept};
    use conclave_vault::ledger::Ledger;
    use conclave_vault::testing::{MEAN_TOML, budget, masked_toml};

    #[test]
    fn a_fresh_ledger_admits_the_whole_cap_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let spec = JobSpec::parse(MEAN_TOML).unwrap();
        Ledger::init(&path, "a", &budget()).unwrap();
        let report = report(&path, "a", &budget()).unwrap();
        let worst = worst_case(&spec, 0, &report, None).unwrap();
        // The ledger's allowance for discrete noise takes about one millionth.
        assert!(worst.job_epsilon <= 3.0 && worst.job_epsilon > 3.0 - 1e-4, "{worst:?}");
        assert_eq!((worst.data_epsilon_now, worst.ended_early), (0.0, false));
        assert!((worst.data_epsilon_after - worst.job_epsilon).abs() < 1e-9 && worst.share_after < 0.25);
        assert!(worst.job_epsilon_zcdp > worst.job_epsilon);
        // Its past spending is part of its own worst case, not of the remainder.
        let begun = worst_case(&spec, (0.01 * 2_f64.powi(48)) as u64, &report, None).unwrap();
        assert!((begun.job_epsilon - worst.job_epsilon).abs() < 1e-9 && begun.data_epsilon_after < worst.data_epsilon_after);
    }

    /// Without past charges, the worst case is the job's cap at five times its price; with a limit, it is the limit.
    #[test]
    fn a_masked_job_is_stated_at_the_price_of_its_own_noise_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        Ledger::init(&path, "a", &budget()).unwrap();
        let spec = JobSpec::parse(&masked_toml(7, 2)).unwrap();
        let settings = LedgerSettings::beside(&path, "a", &budget());
        let worst = |settings: &LedgerSettings| worst_case(&spec, 0, &report_kept(settings).unwrap(), None).unwrap();
        let free = worst(&settings);
        let collusion = free.if_all_collude.unwrap();
        let expected = gaussian_dp::epsilon((5.0 * free.job_mu_squared).sqrt(), budget().delta);
        assert_eq!(
            (collusion.honest, collusion.colluders, collusion.parties, collusion.limit, collusion.ended_early),
            (5, 2, 7, None, false)
        );
        assert!((collusion.data_epsilon - expected).abs() < 1e-6 && expected > 1.5 * free.data_epsilon_after, "{free:?}");
        let limited = worst(&LedgerSettings { all_collude: Some(Budget { epsilon: 7.0, ..budget() }), ..settings });
        let collusion = limited.if_all_collude.unwrap();
        assert!(
            collusion.ended_early
                && collusion.data_epsilon <= 7.0
                && collusion.data_epsilon > 6.99
                && collusion.limit == Some(7.0),
            "{collusion:?}"
        );
        assert_eq!(
            worst_case(&JobSpec::parse(MEAN_TOML).unwrap(), 0, &report(&path, "a", &budget()).unwrap(), None)
                .unwrap()
                .if_all_collude,
            None
        );
    }

    #[test]
    fn the_datas_budget_may_end_it_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let small = Budget::new(1.0, 1e-6).unwrap();
        Ledger::init(&path, "a", &small).unwrap();
        let worst = worst_case(&JobSpec::parse(MEAN_TOML).unwrap(), 0, &report(&path, "a", &small).unwrap(), None).unwrap();
        assert!(worst.ended_early && worst.data_epsilon_after <= 1.0 && worst.job_epsilon <= 1.0, "{worst:?}");
        assert_eq!(worst.share_after, 1.0);
    }

    #[test]
    fn an_analysts_cap_may_end_it_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let settings = LedgerSettings {
            analyst_cap: Some(Budget::new(0.5, 1e-6).unwrap()),
            ..LedgerSettings::beside(&path, "a", &budget())
        };
        settings.init().unwrap();
        let report = report(&path, "a", &budget()).unwrap();
        let remaining = analyst_remaining(&settings, &report, "alice").unwrap();
        let worst = worst_case(&JobSpec::parse(MEAN_TOML).unwrap(), 0, &report, remaining).unwrap();
        assert!(worst.ended_early && worst.job_epsilon <= 0.5 && worst.job_epsilon > 0.499, "{worst:?}");
        assert_eq!(analyst_remaining(&LedgerSettings::beside(&path, "a", &budget()), &report, "alice").unwrap(), None);
    }
}
