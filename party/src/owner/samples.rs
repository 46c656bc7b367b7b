//! The cost of a subsampled job, as shown to its owner before approval.

use std::sync::{LazyLock, Mutex, PoisonError};

use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{BlockCosts, BlockTerms, PrivacyUnit, mu_squared};
use conclave_privacy::mechanism::QueryKind;

use super::figure::figure;
use super::price::{limit, short};
use conclave_vault::ledger::reserve;

/// Costs of blocks already shown: computing one takes up to a second, and the owner's page shows a job repeatedly.
static COSTS: LazyLock<Mutex<BlockCosts>> = LazyLock::new(Mutex::default);

/// States how a party that protects `unit` charges a subsampled job; `None` for a full-data job.
pub(super) fn samples(spec: &JobSpec, unit: PrivacyUnit) -> Option<String> {
    let blocks = spec.privacy.blocks?;
    let (releases, budget) = (spec.planned_releases().div_ceil(blocks).max(1), spec.privacy.budget);
    let limit = limit(spec);
    let price = match terms(spec, unit).map(|terms| COSTS.lock().unwrap_or_else(PoisonError::into_inner).of(&terms)) {
        Some(Ok(cost)) => format!("a mu squared of {} at the noise above", short(mu_squared(cost.units))),
        Some(Err(why)) => format!("no computable mu squared at the noise above, so that none can be opened ({why})"),
        None => format!(
            "a mu squared set by their noise, which is chosen when the chains start: at most {} if all blocks are to be opened",
            short(limit / blocks as f64)
        ),
    };
    Some(format!(
        "at most {blocks} blocks of {releases} releases each, every release from a secret sample with sampling rate {}. A block \
         is charged when it is opened; its releases then cost nothing. All blocks cost the same: {} of your delta_reserve ({} in \
         total, in addition to the delta above) and {price}. Whatever their noise, all blocks together cost at most a mu squared \
         of {}, equal to the epsilon and delta above. This is not cheaper than full-data releases",
        figure(spec.sampler.batch.get()),
        short(reserve(budget.grantable_reserve_units() / blocks)),
        figure(reserve(budget.reserve_units)),
        short(limit)
    ))
}

/// Returns the terms of a block of ratios, whose noise is in the job's text. The noise of gradients comes from a search.
fn terms(spec: &JobSpec, unit: PrivacyUnit) -> Option<BlockTerms> {
    let kind = QueryKind::SampledRatio;
    if spec.algorithm != Algorithm::Barker {
        return None;
    }
    // All steps share one clip, so any step has its price.
    let still: Vec<f64> = spec.support.iter().map(|interval| interval.min).collect();
    let terms = QueryTerms::new(spec.build_model().as_ref(), spec, unit, kind, (&still, &still)).ok()?;
    spec.block_terms(kind, unit, (terms.sensitivity(), spec.privacy.noise))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_privacy::accounting::Adjacency;

    use super::*;

    fn job(algorithm: &str, batch: &str, privacy: &str) -> JobSpec {
        let text = format!(
            "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
             predictors = [\"age\"]\n[columns]\ny = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[sampler]\nbatch = {batch}\n\
             [privacy]\nepsilon = 4.0\ndelta = 1e-6\n{privacy}"
        );
        JobSpec::parse(&text).unwrap()
    }

    /// Returns a ledger's charge for one block, computed by the accountant itself.
    fn charged(spec: &JobSpec, sensitivity: f64, unit: PrivacyUnit) -> f64 {
        let units = (sensitivity * 2.0_f64.powi(32)) as u64;
        let sensitivity = conclave_privacy::mechanism::Sensitivity::from_units(units).unwrap();
        let terms = spec.block_terms(QueryKind::SampledRatio, unit, (sensitivity, spec.privacy.noise)).unwrap();
        mu_squared(terms.cost().unwrap().units)
    }

    #[test]
    fn an_owner_reads_what_a_block_costs() {
        // For ratios the job's text sets the noise: for a person of three rows a block is charged at that person's sensitivity.
        let spec = job("barker", "0.5", "clip = 0.125\nblocks = 10\ndelta_reserve = 2e-7\n");
        let person = PrivacyUnit::person(Adjacency::Replace, 3).unwrap();
        let releases = spec.planned_releases() / 10;
        for (unit, sensitivity) in [(PrivacyUnit::default(), 0.125), (person, 0.375)] {
            let (words, price) = (samples(&spec, unit).unwrap(), short(charged(&spec, sensitivity, unit)));
            for part in [
                format!(
                    "at most 10 blocks of {releases} releases each, every release from a secret sample with sampling rate 0.5."
                ),
                "All blocks cost the same: 2e-8 of your delta_reserve (2e-7 in total, in addition".to_owned(),
                format!("and a mu squared of {price} at the noise above."),
                format!("at most a mu squared of {}, equal", short(limit(&spec))),
            ] {
                assert!(words.contains(&part), "{part} is not in {words}");
            }
        }
        // For gradients it does not: the text states the equal share of the budget per block.
        let spec = job("sgld", "0.25", "");
        let words = samples(&spec, PrivacyUnit::default()).unwrap();
        let share = format!("chosen when the chains start: at most {} if all", short(limit(&spec) / 20.0));
        assert!(words.contains("at most 20 blocks of") && words.contains(&share) && !words.contains("noise above"), "{words}");
        assert_eq!(samples(&job("sgld", "1.0", ""), PrivacyUnit::default()), None);
    }
}
