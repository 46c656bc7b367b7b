//! Sums over the shard: a charged query gets a number, whatever a record holds.
//!
//! Kernels are written not to panic on any numbers. Should one panic nevertheless, an error or an empty sum would reveal the one record
//! that caused it, and would move the sum by more than the charged sensitivity. So the block is halved until the unit of privacy that
//! causes it stands alone, and that unit contributes the admissible value nearest 0 ([`Summand::nearest_zero`]): within its sensitivity, like
//! any clamped value. The time that this takes may show as an overrun of the reply delay, which the owner sees and which is a defect to report.
//!
//! Theorem, sensitivity: replacing one unit moves a sum by at most the charged sensitivity, also where a kernel fails on it.
//! Proof: docs/explanation/design.md, section 2.
//!
//! Records that cannot be read are another matter: no sum is made without them, and no query is answered any more, as after a failure of
//! the ledger.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use conclave_common::job::JobSpec;
use conclave_common::model::{Model, Summand, block_sums};
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{Block, BlockError, Blocks, HiddenSample, Threads};
use conclave_privacy::pass::{LatticeSum, SumCache};
use conclave_proto::convert::AnswerStatus;

use crate::ledger::Ledger;

/// Error: there is no sum. None of the reasons depends on a record's values.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum NoSum {
    /// A block can't be read.
    #[error(transparent)]
    Unread(#[from] BlockError),
    /// The kernel panics without a record, or gives sums of other lengths than are charged.
    #[error("the model's kernel fails on no records at all")]
    Kernel,
    /// A sample is of another number of units than the records are.
    #[error("a sample was drawn of another shard")]
    Sample,
}

/// A model, the records that it reads, and the threads of a pass over them.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) blocks: &'a dyn Blocks,
    pub(super) threads: &'a Threads,
}

/// A sum to be made.
#[derive(Clone, Copy)]
pub(super) struct SumQuery<'a> {
    /// The key of the sum among those that are asked together, such as a message's chain.
    pub(super) key: u32,
    pub(super) kind: QueryKind,
    pub(super) summand: Summand<'a>,
    /// Units of a subsampled release; `None` for a sum over all units.
    pub(super) sample: Option<&'a HiddenSample>,
}

/// Sums by their queries' keys.
pub(super) type Sums = BTreeMap<u32, LatticeSum>;

/// Returns the status of a charged query that has no sum. Where records cannot be read, nothing is answered from here on, as after a
/// failure of the ledger: otherwise a later answer to the same query could differ from one now.
pub(super) fn unsummed(ledger: &mut Ledger, why: &NoSum) -> AnswerStatus {
    match why {
        NoSum::Unread(unread) => ledger.halt(&unread.to_string()),
        NoSum::Kernel | NoSum::Sample => tracing::error!("{why}"),
    }
    AnswerStatus::Halted
}

/// Sums each query over all units of privacy. A fixed sum is taken from the cache; the others are made in one pass over the records.
pub(super) fn sums(pass: &Pass<'_>, fixed: &SumCache, asked: &[SumQuery<'_>]) -> Result<Sums, NoSum> {
    let cached = |query: &SumQuery<'_>| Some((query.key, fixed.sum(query.kind)?));
    let mut all: Sums = asked.iter().filter_map(cached).collect();
    let others: Vec<SumQuery<'_>> = asked.iter().filter(|query| !all.contains_key(&query.key)).copied().collect();
    all.extend(summed(pass, &others)?);
    Ok(all)
}

/// Sums each query over the units of its own sample, in one pass over the records. A unit on which the kernel panics contributes the same
/// as to a sum over all units.
pub(super) fn sampled_sums(pass: &Pass<'_>, asked: &[SumQuery<'_>]) -> Result<Sums, NoSum> {
    if asked.is_empty() {
        return Ok(Sums::new());
    }
    let units = pass.blocks.units();
    let samples = asked.iter().map(|query| query.sample.filter(|sample| sample.units() == units));
    let samples = samples.collect::<Option<Vec<_>>>().ok_or(NoSum::Sample)?;
    let one = |block: &Block<'_>, query: &SumQuery<'_>, sample: &HiddenSample| {
        let SumQuery { kind, summand, .. } = *query;
        let expected = Expected { lengths: &[kind.length()], fallback: &|| vec![summand.nearest_zero(kind.length())] };
        guarded_block(&block.sampled(sample), &expected, &|block| block_sums(pass.model, block, &[summand]))?.pop()
    };
    let sums = pass.threads.sum(pass.blocks, asked.len(), |block| {
        asked
            .iter()
            .zip(&samples)
            .map(|(query, sample)| one(block, query, sample))
            .collect::<Option<Vec<_>>>()
            .ok_or(NoSum::Kernel)
    })?;
    by_key(asked, sums)
}

/// Computes the sums that depend on no point, as Algorithm 3's do; none for another algorithm or where they would not be released. A unit
/// of privacy on which a kernel panics contributes 0, or the end of the range nearest 0 where 0 lies outside.
///
/// # Errors
/// [`NoSum`].
pub(super) fn fixed_sums(pass: &Pass<'_>, spec: &JobSpec, unit: PrivacyUnit) -> Result<SumCache, NoSum> {
    let query = |component: u32| {
        let kind = QueryKind::Statistic { component };
        let terms = QueryTerms::new(pass.model, spec, unit, kind, (&[], &[])).ok();
        let terms = terms.filter(|terms| terms.sum_fits(pass.blocks.units()))?;
        let summand = terms.summand(&[], &[], terms.sensitivity()).ok()?;
        Some(SumQuery { key: component, kind, summand, sample: None })
    };
    let components = pass.model.exponential_family().map_or(0, |family| family.ranges().len());
    let components = u32::try_from(components).unwrap_or(u32::MAX).min(QueryKind::MAX_COMPONENTS);
    // A component that does not fit is refused whenever it is asked; those after it may fit all the same.
    let asked: Vec<SumQuery<'_>> = (0..components).filter_map(query).collect();
    let sums = summed(pass, &asked)?;
    Ok(SumCache::new(sums.into_iter().map(|(component, sum)| (QueryKind::Statistic { component }, sum))))
}

/// Sums each query in one guarded pass over all units.
fn summed(pass: &Pass<'_>, asked: &[SumQuery<'_>]) -> Result<Sums, NoSum> {
    if asked.is_empty() {
        return Ok(Sums::new());
    }
    let summands: Vec<Summand<'_>> = asked.iter().map(|query| query.summand).collect();
    let lengths: Vec<usize> = asked.iter().map(|query| query.kind.length()).collect();
    let fallback = || asked.iter().map(|query| query.summand.nearest_zero(query.kind.length())).collect();
    let expected = Expected { lengths: &lengths, fallback: &fallback };
    let sums = guarded(pass, &expected, &|block: &Block<'_>| block_sums(pass.model, block, &summands))?;
    by_key(asked, sums)
}

/// Puts the sums of one pass, which a kernel makes in the order of its summands, under their queries' keys.
///
/// # Errors
/// [`NoSum::Kernel`] unless there is exactly one sum for each query.
fn by_key(asked: &[SumQuery<'_>], sums: Vec<LatticeSum>) -> Result<Sums, NoSum> {
    let made = sums.len();
    let sums: Sums = asked.iter().map(|query| query.key).zip(sums).collect();
    if made == asked.len() && sums.len() == made { Ok(sums) } else { Err(NoSum::Kernel) }
}

/// The sums that a kernel has to make of a block.
struct Expected<'a> {
    /// Their lengths.
    lengths: &'a [usize],
    /// Makes the contribution of a unit on which the kernel fails.
    fallback: &'a (dyn Fn() -> Vec<LatticeSum> + Sync),
}

/// Adds up `sums` over every block, with the fallback contribution for each unit on which it fails.
fn guarded(
    pass: &Pass<'_>,
    expected: &Expected<'_>,
    sums: &(impl Fn(&Block<'_>) -> Vec<LatticeSum> + Sync),
) -> Result<Vec<LatticeSum>, NoSum> {
    pass.threads.sum(pass.blocks, expected.lengths.len(), |block| guarded_block(block, expected, sums).ok_or(NoSum::Kernel))
}

/// Returns the sums of a block; `None` where they fail without records. Such a kernel fails for every shard and every sample: whether it
/// does must not depend on a record that it fails on.
fn guarded_block(
    block: &Block<'_>,
    expected: &Expected<'_>,
    sums: &impl Fn(&Block<'_>) -> Vec<LatticeSum>,
) -> Option<Vec<LatticeSum>> {
    attempt(&block.without_records(), expected, sums)?;
    halved(block, expected, sums)
}

/// Returns the sums of a block; `None` where they panic or are not of the expected lengths.
fn attempt(block: &Block<'_>, expected: &Expected<'_>, sums: &impl Fn(&Block<'_>) -> Vec<LatticeSum>) -> Option<Vec<LatticeSum>> {
    let fit = |sums: &Vec<LatticeSum>| sums.iter().map(LatticeSum::length).eq(expected.lengths.iter().copied());
    catch_unwind(AssertUnwindSafe(|| sums(block))).ok().filter(fit)
}

/// Returns `None` where `sums` fails without a record: it panics, or its sums are not of the expected lengths. Nothing is added to such a sum.
fn halved(block: &Block<'_>, expected: &Expected<'_>, sums: &impl Fn(&Block<'_>) -> Vec<LatticeSum>) -> Option<Vec<LatticeSum>> {
    if let Some(sums) = attempt(block, expected, sums) {
        return Some(sums);
    }
    let units = block.units() as usize;
    if units < 2 {
        let without_records = attempt(&block.without_records(), expected, sums)?;
        return Some(if units == 0 { without_records } else { (expected.fallback)() });
    }
    let lower = halved(&block.part(0..units / 2), expected, sums)?;
    let upper = halved(&block.part(units / 2..units), expected, sums)?;
    Some(lower.into_iter().zip(upper).map(|(a, b)| a.merge(b)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroUsize;

    use conclave_privacy::mechanism::Components;
    use conclave_privacy::pass::{ModelData, Persons, StatisticGrid};

    use super::*;
    use crate::answer::testing::Panics;
    use crate::testing::MEAN_TOML;

    fn data(persons: Option<Persons>) -> ModelData {
        ModelData {
            outcome: (0..7).map(f64::from).collect(),
            predictors: vec![(10..17).map(f64::from).collect()],
            auxiliary: Vec::new(),
            persons,
        }
    }

    type Opened = Result<Vec<i64>, NoSum>;

    fn open(blocks: &dyn Blocks, sums: &(impl Fn(&Block<'_>) -> Vec<LatticeSum> + Sync)) -> Opened {
        let model = JobSpec::parse(MEAN_TOML).unwrap().build_model();
        let on = |threads: &Threads| -> Opened {
            let pass = Pass { model: model.as_ref(), blocks, threads };
            let expected = Expected { lengths: &[1], fallback: &|| vec![LatticeSum::from_units_for_test(0)] };
            Ok(guarded(&pass, &expected, sums)?.into_iter().map(LatticeSum::open_for_test).collect())
        };
        let alone = on(&Threads::one());
        assert_eq!(alone, on(&Threads::new(NonZeroUsize::new(3).unwrap()).unwrap()));
        alone
    }

    /// A kernel that panics on some records loses those alone; one that always panics gives nothing.
    #[test]
    fn only_the_units_that_a_kernel_panics_on_are_left_out() {
        let sum = |bad: [f64; 2]| {
            move |block: &Block<'_>| {
                assert!(!block.outcome().iter().any(|y| bad.contains(y)), "planted");
                vec![LatticeSum::from_units_for_test(block.outcome().iter().sum::<f64>() as i64)]
            }
        };
        assert_eq!(open(&data(None), &sum([-1.0; 2])), Ok(vec![21]));
        assert_eq!(open(&data(None), &sum([6.0, 2.0])), Ok(vec![13]));
        // With the record 4 goes its person, who has the records 3 to 6.
        let persons = Persons::new(vec![2, 3, 7], 4);
        assert_eq!(open(&data(persons), &sum([4.0; 2])), Ok(vec![3]));
        let never = |_: &Block<'_>| -> Vec<LatticeSum> { panic!("planted") };
        assert_eq!(open(&data(None), &never), Err(NoSum::Kernel));
    }

    /// A sum of another length than was charged is added to nothing, and no noise to it.
    #[test]
    fn a_kernel_that_gives_other_lengths_gives_no_sum() {
        let several = |length: usize| Components::new(&vec![1; length]).unwrap();
        for planted in [vec![], vec![2], vec![1, 1]] {
            let sum = |_: &Block<'_>| planted.iter().map(|n| LatticeSum::of_components_for_test(several(*n))).collect();
            assert_eq!(open(&data(None), &sum), Err(NoSum::Kernel), "{planted:?}");
        }
        // A record at which it does that contributes nothing, as where it panics.
        let sum = |block: &Block<'_>| {
            let (total, length) = (block.outcome().iter().sum::<f64>() as i64, 1 + usize::from(block.outcome().contains(&4.0)));
            vec![LatticeSum::of_components_for_test(Components::new(&vec![total; length]).unwrap())]
        };
        assert_eq!(open(&data(None), &sum), Ok(vec![17]));
    }

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

    #[test]
    fn units_are_left_out_of_any_block() {
        let records = 100_000;
        let data = ModelData { outcome: (0..records).map(f64::from).collect(), ..ModelData::default() };
        assert!(data.count() > 2);
        let bad = [7.0, 99_999.0];
        let sum = |block: &Block<'_>| {
            assert!(!block.outcome().iter().any(|y| bad.contains(y)), "planted");
            vec![LatticeSum::from_units_for_test(block.outcome().iter().sum::<f64>() as i64)]
        };
        let all = i64::from(records) * i64::from(records - 1) / 2;
        assert_eq!(open(&data, &sum), Ok(vec![all - 7 - 99_999]));
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
