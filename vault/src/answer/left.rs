//! What is left for an analyst: told where the owner lets it be told, and what a job may not go beyond.
//!
//! All of it follows from the policy and from the ledger's totals, which what was asked and granted makes: no record has a part in it.

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::{Budget, PrivacyFilter, gaussian_dp, mu_squared};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;

use super::answerer::Answerer;
use super::open::ledger_fault;
use crate::ledger::LedgerError;

/// Thousandths of an epsilon that are tried.
const STEPS: u32 = 4;

impl Answerer {
    /// A job that may ask for more than is left for its analyst would end before its time, with that spent: it is refused before it begins,
    /// unless its analyst wants it all the same.
    pub(super) fn admit_left(&self, analyst: &str, spec: &JobSpec) -> Result<(), Fault> {
        if spec.sampler.force {
            return Ok(());
        }
        let cap = spec.privacy.budget;
        let asks = PrivacyFilter::new(&cap.of(self.budget.unit)).map_err(|e| ledger_fault(e.into()))?.limit_units();
        let left = self.ledger.left_for(analyst).map_err(ledger_fault)?;
        if asks <= left {
            return Ok(());
        }
        let Budget { epsilon, delta, .. } = cap;
        let told = askable(left, &cap.of(self.budget.unit));
        let (what, remedy) = match self.policy.tell_budget {
            true if told > 0.0 => (
                format!("epsilon {told:.3} is left there for {analyst} at that delta"),
                format!("lower privacy.epsilon to {told:.3}"),
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

    /// What an analyst is told of the budget. One whom the policy does not admit is told nothing.
    pub(super) fn budget_told(&self, request: &v1::AskBudget) -> v1::BudgetTold {
        let untold = v1::BudgetTold { number: request.number, ..v1::BudgetTold::default() };
        let admitted = self.policy.analysts.as_ref().is_none_or(|analysts| analysts.contains(&request.analyst));
        if !(self.policy.tell_budget && admitted) {
            return untold;
        }
        let delta = self.budget.delta;
        let told = || -> Result<v1::BudgetTold, LedgerError> {
            let limit = match self.ledger.analyst_cap() {
                Some(cap) => PrivacyFilter::new(cap)?.limit_units().min(PrivacyFilter::new(&self.budget)?.limit_units()),
                None => PrivacyFilter::new(&self.budget)?.limit_units(),
            };
            Ok(v1::BudgetTold {
                told: true,
                epsilon_limit: askable(limit, &self.budget),
                delta,
                epsilon_spent: epsilon_of(self.ledger.spent_by(&request.analyst).units, delta),
                epsilon_left: askable(self.ledger.left_for(&request.analyst)?, &self.budget),
                ..untold
            })
        };
        told().unwrap_or(untold)
    }
}

/// The epsilon of so much mu², in units of 2^-48.
fn epsilon_of(units: u64, delta: f64) -> f64 {
    if units == 0 { 0.0 } else { gaussian_dp::epsilon(mu_squared(units).sqrt(), delta) }
}

/// The largest epsilon, in thousandths, whose budget at this one's delta holds no more than so many units of 2^-48 of mu²: it can be asked
/// for. 0 where there is none.
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
    fn what_is_told_can_be_asked_for_and_no_thousandth_more() {
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
