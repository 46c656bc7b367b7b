//! Sums over the shard: the pass runs the model's kernel for each charged query, under the hold that was charged.
//!
//! A kernel that fails on a unit does not stop a sum: the unit contributes its hold's fallback. Records that cannot be read do: there is no
//! sum, and the ledger is halted as after a failure of its own.

use std::collections::BTreeMap;

use conclave_common::job::JobSpec;
use conclave_common::model::{Model, Summand};
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{BlockPass, Blocks, HiddenSample, Hold, LatticeSum, NoSum, SumCache, Threads};
use conclave_proto::convert::AnswerStatus;

use crate::ledger::Ledger;

/// The inputs of a pass: a model, the records that its kernels are run on, and the threads.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) blocks: &'a dyn Blocks,
    pub(super) threads: &'a Threads,
}

/// A sum to compute.
#[derive(Clone, Copy)]
pub(super) struct SumQuery<'a> {
    /// The key of the sum among those of one call: a message's chain, or the number of a component or candidate.
    pub(super) key: u32,
    pub(super) kind: QueryKind,
    pub(super) summand: Summand<'a>,
}

/// Sums by their queries' keys.
pub(super) type Sums = BTreeMap<u32, LatticeSum>;

/// Logs the reason why a charged query has no sum, and returns its status. If records cannot be read, halts the ledger: a later answer to the
/// same query could otherwise differ from one now.
pub(super) fn unsummed(ledger: &mut Ledger, why: &NoSum) -> AnswerStatus {
    match why {
        NoSum::Unread(unread) => ledger.halt(&unread.to_string()),
        NoSum::Kernel | NoSum::Sample => tracing::error!("{why}"),
    }
    AnswerStatus::Halted
}

/// Sums each query over all units of privacy. Fixed sums are taken from the cache; the others are computed in one pass over the records.
pub(super) fn sums(pass: &Pass<'_>, fixed: &SumCache, asked: &[SumQuery<'_>]) -> Result<Sums, NoSum> {
    let cached = |query: &SumQuery<'_>| Some((query.key, fixed.sum(query.kind)?));
    let mut all: Sums = asked.iter().filter_map(cached).collect();
    let others: Vec<SumQuery<'_>> = asked.iter().filter(|query| !all.contains_key(&query.key)).copied().collect();
    all.extend(by_key(&others, pass.threads.sums(pass.blocks, &holds(&others), &kernels(pass.model, &others))?)?);
    Ok(all)
}

/// Sums each query over the units of its own sample, which it consumes, in one pass over the records. A unit on which the kernel panics contributes the same
/// as to a sum over all units.
pub(super) fn sampled_sums(pass: &Pass<'_>, asked: Vec<(SumQuery<'_>, HiddenSample)>) -> Result<Sums, NoSum> {
    let queries: Vec<SumQuery<'_>> = asked.iter().map(|(query, _)| *query).collect();
    let samples = asked.into_iter().map(|(query, sample)| (query.summand.hold(), sample)).collect();
    by_key(&queries, pass.threads.sampled_sums(pass.blocks, samples, &kernels(pass.model, &queries))?)
}

/// Computes the sums that depend on no point, as those of Algorithm 3, when a job opens. The cache is empty for an algorithm without such sums,
/// and lacks a component that would be refused. A unit on which a kernel panics contributes 0, or the end of the range closest to 0.
///
/// # Errors
/// [`NoSum`].
pub(super) fn fixed_sums(pass: &Pass<'_>, spec: &JobSpec, unit: PrivacyUnit) -> Result<SumCache, NoSum> {
    let query = |component: u32| {
        let kind = QueryKind::Statistic { component };
        let terms = QueryTerms::new(pass.model, spec, unit, kind, (&[], &[])).ok();
        let terms = terms.filter(|terms| terms.sum_fits(pass.blocks.units()))?;
        let summand = terms.summand(&[], &[], terms.sensitivity()).ok()?;
        Some(SumQuery { key: component, kind, summand })
    };
    let components = pass.model.statistic().map_or(0, |statistic| statistic.ranges().len());
    let components = u32::try_from(components).unwrap_or(u32::MAX).min(QueryKind::MAX_COMPONENTS);
    // A component that does not fit is refused whenever it is asked; those after it may fit all the same.
    let asked: Vec<SumQuery<'_>> = (0..components).filter_map(query).collect();
    let kinds: Vec<(QueryKind, Hold<'_>)> = asked.iter().map(|query| (query.kind, query.summand.hold())).collect();
    pass.threads.cache(pass.blocks, &kinds, &kernels(pass.model, &asked))
}

/// Returns the hold of each query: the admissible set of one unit's contribution.
fn holds<'a>(asked: &[SumQuery<'a>]) -> Vec<Hold<'a>> {
    asked.iter().map(|query| query.summand.hold()).collect()
}

/// Returns the function by which the model gives its kernel of the query with a given number to a pass.
fn kernels<'a>(model: &'a dyn Model, asked: &'a [SumQuery<'_>]) -> impl Fn(usize, BlockPass<'_>) + Sync + 'a {
    move |at, pass| asked[at].summand.give(model, pass)
}

/// Assigns the sums of one pass, which are in the order of their queries, to the queries' keys.
///
/// # Errors
/// [`NoSum::Kernel`] unless there is exactly one sum for each query.
fn by_key(asked: &[SumQuery<'_>], sums: Vec<LatticeSum>) -> Result<Sums, NoSum> {
    let made = sums.len();
    let sums: Sums = asked.iter().map(|query| query.key).zip(sums).collect();
    if made == asked.len() && sums.len() == made { Ok(sums) } else { Err(NoSum::Kernel) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_privacy::pass::{ModelData, StatisticGrid};

    use super::*;
    use crate::answer::testing::Panics;
    use crate::testing::MEAN_TOML;

    /// A statistic whose declared range lies beside 0: a record that panics adds the range's nearer end, and the sum moves no further
    /// than was charged. With 0 in its place it would.
    #[test]
    fn a_unit_that_panics_adds_what_a_unit_may_add() {
        let toml = MEAN_TOML.replace("\"gaussian_mean\"", "\"poisson_mean\"").replace("sd = 10.0\n", "");
        let toml = toml.replace("normal(0, 1)", "gamma(2, 0.01)").replace("\"penalty\"", "\"penalty-exp-family\"");
        let spec = JobSpec::parse(&toml).unwrap();
        let grid = StatisticGrid::of_ranges(spec.build_model().exponential_family().unwrap().ranges()).unwrap()[0];
        let (least, charged) = (grid.limits.0, grid.sensitivity().units());
        assert!(
            least > 0 && least.unsigned_abs() >= charged - 1,
            "counts from 100 to 200, of which 100 is a whole range: {grid:?}"
        );
        let sum = |model: &dyn Model, outcome: &[f64]| -> i64 {
            let data = ModelData { outcome: outcome.to_vec(), ..ModelData::default() };
            let pass = Pass { model, blocks: &data, threads: &Threads::one() };
            let cache = fixed_sums(&pass, &spec, PrivacyUnit::default()).unwrap();
            cache.sum(QueryKind::Statistic { component: 0 }).unwrap().open_for_test()
        };
        let (sound, panics) = (spec.build_model(), Panics(spec.build_model(), 0.5));
        let (others, with) = (sum(sound.as_ref(), &[0.25, -0.75]), sum(&panics, &[0.25, 0.5, -0.75, 0.5]));
        assert_eq!(with - others, 2 * least);
        // Whatever the record were instead.
        for instead in [-1.0, 0.0, 1.0] {
            let neighbour = sum(sound.as_ref(), &[0.25, instead, -0.75]);
            assert!(sum(&panics, &[0.25, 0.5, -0.75]).abs_diff(neighbour) <= charged, "{instead}");
        }
    }

    /// Algorithm 3's sums go without the record that a kernel panics on, and keep the others: an empty shard in their place would move
    /// the sum by more than was charged.
    #[test]
    fn a_statistic_loses_no_more_than_the_record_that_panics() {
        let spec = JobSpec::parse(&MEAN_TOML.replace("\"penalty\"", "\"penalty-exp-family\"")).unwrap();
        let data = |outcome: &[f64]| ModelData { outcome: outcome.to_vec(), ..ModelData::default() };
        let sums = |model: &dyn Model, data: &ModelData| -> Vec<i64> {
            let pass = Pass { model, blocks: data, threads: &Threads::one() };
            let cache = fixed_sums(&pass, &spec, PrivacyUnit::default()).unwrap();
            (0..).map_while(|component| cache.sum(QueryKind::Statistic { component })).map(LatticeSum::open_for_test).collect()
        };
        let (whole, without) = (data(&[170.0, 181.5, 164.0]), data(&[170.0, 164.0]));
        let (sound, panics) = (spec.build_model(), Panics(spec.build_model(), 181.5));
        let expected = sums(sound.as_ref(), &without);
        assert!(!expected.is_empty() && expected != sums(sound.as_ref(), &data(&[])));
        assert_eq!(sums(&panics, &whole), expected);
        assert_eq!(sums(&panics, &without), expected);
    }
}
