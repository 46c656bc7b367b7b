//! Computes an analyst's remaining budget: published where the owner allows it, and a limit to new jobs.
//!
//! It follows from the policy and from the ledger's totals, which grants alone determine; no record enters it.

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Budget, PrivacyFilter, PrivacyUnit, gaussian_dp, mu_squared};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;

use super::answerer::Answerer;
use super::faults::ledger_fault;
use crate::ledger::LedgerError;

/// A fact that is looked up at most once, and only if the decisions before it did not end the matter.
pub(super) type Later<'a, T> = Box<dyn FnOnce() -> T + 'a>;

/// Thousandths of an epsilon that are tried.
const STEPS: u32 = 4;

/// Refuses a job that may spend more than its analyst's remaining budget, unless the analyst forces it: such a job would end before its
/// time, with the remaining budget spent.
///
/// # Errors
/// [`ErrorCode::Budget`], with the remedy; as [`ledger_fault`] where the remaining budget cannot be computed.
pub(super) fn admit_remaining(
    analyst: &str,
    spec: &JobSpec,
    unit: PrivacyUnit,
    tell_budget: bool,
    remaining: Later<'_, Result<u64, LedgerError>>,
) -> Result<(), Fault> {
    if spec.sampler.force {
        return Ok(());
    }
    let cap = spec.privacy.budget;
    let cost = PrivacyFilter::new(&cap.of(unit)).map_err(|e| ledger_fault(e.into()))?.limit_units();
    let remaining = remaining().map_err(ledger_fault)?;
    if cost <= remaining {
        return Ok(());
    }
    let Budget { epsilon, delta, .. } = cap;
    let askable = askable(remaining, &cap.of(unit));
    let (what, remedy) = match tell_budget {
        true if askable > 0.0 => (
            format!("epsilon {askable:.3} is left there for {analyst} at that delta"),
            format!("lower privacy.epsilon to {askable:.3}"),
        ),
        true => (format!("nothing is left there for {analyst}"), "leave the party out".to_owned()),
        false => (format!("less is left there for {analyst}"), "lower privacy.epsilon".to_owned()),
    };
    let message = format!(
        "the job may spend epsilon {epsilon} at delta {delta}, and {what}: {remedy}, or ask the owner for more. Nothing was asked; to have the \
         job end where the budget does, write force = true under [sampler]"
    );
    Err(Fault::new(ErrorCode::Budget, message))
}

impl Answerer {
    /// Answers an analyst's request for the budget. An analyst whom the policy does not admit learns nothing.
    pub(super) fn budget_told(&self, request: &v1::AskBudget) -> v1::BudgetTold {
        let untold = v1::BudgetTold { number: request.number, ..v1::BudgetTold::default() };
        let admitted = self.policy.analysts.as_ref().is_none_or(|analysts| analysts.contains(&request.analyst));
        if !(self.policy.tell_budget && admitted) {
            return untold;
        }
        let delta = self.budget.delta;
        let reported = || -> Result<v1::BudgetTold, LedgerError> {
            let limit = match self.ledger.analyst_cap() {
                Some(cap) => PrivacyFilter::new(cap)?.limit_units().min(PrivacyFilter::new(&self.budget)?.limit_units()),
                None => PrivacyFilter::new(&self.budget)?.limit_units(),
            };
            Ok(v1::BudgetTold {
                told: true, // wire name
                epsilon_limit: askable(limit, &self.budget),
                delta,
                epsilon_spent: epsilon_of(self.ledger.spent_by(&request.analyst).units, delta),
                epsilon_left: askable(self.ledger.remaining_units_for(&request.analyst)?, &self.budget),
                ..untold
            })
        };
        reported().unwrap_or(untold)
    }
}

/// Returns the epsilon of `units` of mu², each 2^-48.
fn epsilon_of(units: u64, delta: f64) -> f64 {
    if units == 0 { 0.0 } else { gaussian_dp::epsilon(mu_squared(units).sqrt(), delta) }
}

/// Returns the largest epsilon, in thousandths, whose budget at this one's delta holds at most `units` of 2^-48 of mu², so that it can be
/// requested; 0 where there is none.
fn askable(units: u64, budget: &Budget) -> f64 {
    let holds = |thousandths: f64| {
        let budget = Budget { epsilon: thousandths / 1e3, ..*budget };
        PrivacyFilter::new(&budget).is_ok_and(|filter| filter.limit_units() <= units)
    };
    // The epsilon of a budget's units is a little less than the budget's, as they are rounded down.
    let most = (epsilon_of(units, budget.delta) * 1e3).floor() + 1.0;
    (0..STEPS).map(|step| most - f64::from(step)).find(|thousandths| *thousandths > 0.0 && holds(*thousandths)).unwrap_or(0.0)
        / 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_reported_budget_can_be_used_and_no_thousandth_more() {
        let budget = |epsilon: f64| Budget::new(epsilon, 1e-6).unwrap();
        for epsilon in [0.1, 1.0, 3.0, 7.125, 20.0, 400.0] {
            let units = PrivacyFilter::new(&budget(epsilon)).unwrap().limit_units();
            assert_eq!(askable(units, &budget(8.0)), epsilon);
            let less = askable(units - 1, &budget(8.0));
            assert!((epsilon - 0.0015..epsilon).contains(&less), "{epsilon}: {less}");
        }
        assert_eq!(askable(0, &budget(8.0)), 0.0);
    }
}
