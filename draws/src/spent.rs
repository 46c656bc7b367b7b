//! The privacy cost of a job at a party, computed from public values with the code of the party's ledger.

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::Query;
use conclave_common::query::QueryTerms;
use conclave_inference::figures::zcdp;
use conclave_privacy::accounting;
use conclave_privacy::accounting::{Budget, OpenBlocks, PrivacyUnit, gaussian_dp};

/// Releases and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Number of releases: one per chain and round.
    pub queries: u64,
    /// Sum of charges, in units of 2^-48 of mu squared.
    pub units: u64,
}

impl Spent {
    /// Computes the cost of a round's queries to a party that protects `unit` and has these open blocks of the job. A subsampled
    /// release takes one place of a block.
    ///
    /// # Errors
    /// A message if neither the model has a bound nor the job a clip, or if a charge overflows.
    pub fn for_queries(
        queries: &[Query],
        (model, spec): (&dyn Model, &JobSpec),
        unit: PrivacyUnit,
        blocks: &mut OpenBlocks,
    ) -> Result<Self, String> {
        let mut spent = Self::default();
        for query in queries {
            let terms = QueryTerms::new(model, spec, unit, query.kind, (&query.from, &query.to)).map_err(|e| e.to_string())?;
            let units = match spec.block_terms(query.kind, unit, (terms.sensitivity(), query.noise)) {
                Some(block) => blocks.take(query.kind, block).map_err(|e| e.to_string())?.units,
                None => unit
                    .charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise))
                    .map_err(|e| e.to_string())?,
            };
            spent = spent.plus(Self { queries: 1, units });
        }
        Ok(spent)
    }

    /// Returns the sum, saturating at 64 bits; no party would grant such a total.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { queries: self.queries.saturating_add(other.queries), units: self.units.saturating_add(other.units) }
    }

    /// Returns mu squared.
    pub fn mu_squared(self) -> f64 {
        accounting::mu_squared(self.units)
    }

    /// Returns epsilon at the budget's delta, by Gaussian differential privacy.
    pub fn epsilon(self, budget: &Budget) -> f64 {
        match self.units {
            0 => 0.0,
            _ => gaussian_dp::epsilon(self.mu_squared().sqrt(), budget.delta),
        }
    }

    /// Returns epsilon at the budget's delta by zero-concentrated differential privacy, a looser bound with an independent proof.
    pub fn epsilon_zcdp(self, budget: &Budget) -> f64 {
        match self.units {
            0 => 0.0,
            _ => zcdp::epsilon(self.mu_squared() / 2.0, budget.delta),
        }
    }
}
