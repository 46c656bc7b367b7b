//! The posterior sample at which chains of stochastic gradients start (Wang, Fienberg & Smola 2015, Algorithm 3).
//!
//! The candidates lie around the result of the chains' own search. The draw costs at most its share of the budget: where its range is
//! larger than that share buys, the owner raises the likelihood of each record to the power `rho = min(1, limit / sensitivity)`
//! (Algorithm 1), which follows from the job and the query alone, and the prior's part of the public weights has the same power.

use super::CandidateLaw;
use super::price::{Choice, generator};
use crate::sampler::{Allotment, Located, SamplerError, StartingDraw, Target, Totals};
use conclave_common::query::{PartyMetadata, Query};

/// Least power for which candidates are spread.
const LEAST_POWER: f64 = 1e-6;

/// The draw, before it is made.
pub(in crate::sampler) struct Start {
    choice: Choice,
    pub(in crate::sampler) report: StartingDraw,
}

impl Start {
    /// Plans the draw at a search's result, and subtracts its price. Errors: the parameter box excludes the candidates; the query has no
    /// price; the budget is too small.
    pub(in crate::sampler) fn planned(
        target: &Target,
        parties: &[PartyMetadata],
        located: Located,
        budget: &mut Allotment,
    ) -> Result<Self, SamplerError> {
        let [party] = parties else { return Err(SamplerError::Records { expected: 1, got: parties.len() }) };
        let Located { u, covariance, error } = located;
        let law = |power: f64| CandidateLaw::around(u.clone(), covariance.clone().scaled(power.recip()), &error);
        let among = |law: &CandidateLaw| Choice::new(target, *party, law, &mut generator(&target.spec));
        let mut choice = among(&law(1.0))?;
        if choice.power < 1.0 {
            // The posterior to the power rho is wider by rho^(-1/2), and so is the range of a draw among candidates as wide.
            choice = among(&law((choice.power * choice.power).max(LEAST_POWER)))?;
        }
        let Query { kind, noise, from, to, .. } = &choice.query;
        if !budget.pay(&target.spec, target.model.as_ref(), (*kind, *noise), (from, to))? {
            return Err(SamplerError::TooSmallABudget { kind: *kind });
        }
        let report = StartingDraw {
            candidates: choice.price.candidates,
            power: choice.power,
            range: choice.price.range,
            mu: choice.price.mu,
            budget_share: budget.share_of_units(choice.price.units),
        };
        Ok(Self { choice, report })
    }

    pub(in crate::sampler) fn query(&self) -> Query {
        self.choice.query.clone()
    }

    /// Returns theta of the drawn candidate. Errors: the answer is not the number of a candidate.
    pub(in crate::sampler) fn drawn(&self, totals: &Totals) -> Result<Vec<f64>, SamplerError> {
        self.choice.drawn(totals)
    }
}
