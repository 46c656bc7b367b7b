//! The sums over the shard: a query that is charged gets a number, whatever a record holds.
//!
//! Kernels are written not to panic on any numbers. Should one panic all the same, an error or an empty sum would tell of the one
//! record that did it, and would move the sum by more than the sensitivity that was charged. So the block is halved until
//! the unit of privacy that does it stands alone, and that unit contributes the admissible value nearest 0 ([`Summand::nearest_zero`]): within
//! its sensitivity, like any clamped value. How long that takes can be told by an overrun of the reply delay, which is the owner's to see and a defect to report.
//!
//! Records that can't be read are another matter: no sum is made without them, and nothing is answered any more, as where the ledger fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conclave_common::job::JobSpec;
use conclave_common::model::{Model, Summand, block_sums};
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{LatticeSum, QueryKind, SumCache};
use conclave_privacy::pass::{Block, BlockError, Blocks, HiddenSample, Threads};

/// Why there is no sum. Neither has to do with what a record holds.
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

/// One sum per query, over all units of privacy but those on which the kernel panics: a kept one where there is one, and the others in
/// one pass over the records.
pub(super) fn sums(
    model: &dyn Model,
    blocks: &dyn Blocks,
    threads: &Threads,
    fixed: &SumCache,
    asked: &[(QueryKind, Summand<'_>)],
) -> Result<Vec<LatticeSum>, NoSum> {
    let kept: Vec<Option<LatticeSum>> = asked.iter().map(|(kind, _)| fixed.sum(*kind)).collect();
    let others: Vec<(QueryKind, Summand<'_>)> =
        asked.iter().zip(&kept).filter(|(_, kept)| kept.is_none()).map(|(asked, _)| *asked).collect();
    let mut made = summed(model, blocks, threads, &others)?.into_iter();
    // One sum per summand.
    kept.into_iter().map(|kept| kept.or_else(|| made.next()).ok_or(NoSum::Kernel)).collect()
}

/// One sum per query, each over its own sample's units, in one pass over the records. A unit on which the kernel panics contributes as it
/// does to a sum over all.
pub(super) fn sampled_sums(
    model: &dyn Model,
    blocks: &dyn Blocks,
    threads: &Threads,
    asked: &[(QueryKind, Summand<'_>, &HiddenSample)],
) -> Result<Vec<LatticeSum>, NoSum> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    if asked.iter().any(|(.., sample)| sample.units() != blocks.units()) {
        return Err(NoSum::Sample);
    }
    let one = |block: &Block<'_>, (kind, summand, sample): &(QueryKind, Summand<'_>, &HiddenSample)| {
        let failed = || vec![summand.nearest_zero(kind.length())];
        halved(&block.sampled(sample), (&[kind.length()], &failed), &|block| block_sums(model, block, &[*summand]))?.pop()
    };
    threads.sum(blocks, asked.len(), |block| {
        asked.iter().map(|asked| one(block, asked)).collect::<Option<Vec<_>>>().ok_or(NoSum::Kernel)
    })
}

/// The sums that a job asks of no point, as Algorithm 3 does; none for another algorithm or where they would not be released. A unit of
/// privacy on which a kernel panics contributes the end of the range that is nearest 0, or 0 within it.
///
/// # Errors
/// As [`guarded`].
pub(super) fn fixed_sums(
    model: &dyn Model,
    spec: &JobSpec,
    unit: PrivacyUnit,
    blocks: &dyn Blocks,
    threads: &Threads,
) -> Result<SumCache, NoSum> {
    let summand = |component: u32| {
        let kind = QueryKind::Statistic { component };
        let terms = QueryTerms::new(model, spec, unit, kind, (&[], &[])).ok().filter(|terms| terms.sum_fits(blocks.units()))?;
        Some((kind, terms.summand(&[], &[], terms.sensitivity()).ok()?))
    };
    let components = model.exponential_family().map_or(0, |family| family.ranges().len());
    let components = u32::try_from(components).unwrap_or(u32::MAX).min(QueryKind::MAX_COMPONENTS);
    // One that does not fit is refused whenever it is asked; those after it may fit all the same.
    let asked: Vec<(QueryKind, Summand<'_>)> = (0..components).filter_map(summand).collect();
    let sums = summed(model, blocks, threads, &asked)?;
    Ok(SumCache::new(asked.into_iter().map(|(kind, _)| kind).zip(sums)))
}

/// One sum per summand, in one guarded pass.
fn summed(
    model: &dyn Model,
    blocks: &dyn Blocks,
    threads: &Threads,
    asked: &[(QueryKind, Summand<'_>)],
) -> Result<Vec<LatticeSum>, NoSum> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let (kinds, summands): (Vec<QueryKind>, Vec<Summand<'_>>) = asked.iter().copied().unzip();
    let lengths: Vec<usize> = kinds.into_iter().map(QueryKind::length).collect();
    let failed = || summands.iter().zip(&lengths).map(|(summand, length)| summand.nearest_zero(*length)).collect();
    guarded(blocks, threads, (&lengths, &failed), &|block: &Block<'_>| block_sums(model, block, &summands))
}

/// The lengths of the sums, and what a unit adds on which they can't be made.
type Asked<'a> = (&'a [usize], &'a (dyn Fn() -> Vec<LatticeSum> + Sync));

/// What `sums` gives, sums of the lengths asked for every block, with what was asked for in the place of units on which it fails.
fn guarded(
    blocks: &dyn Blocks,
    threads: &Threads,
    asked: Asked<'_>,
    sums: &(impl Fn(&Block<'_>) -> Vec<LatticeSum> + Sync),
) -> Result<Vec<LatticeSum>, NoSum> {
    threads.sum(blocks, asked.0.len(), |block| halved(block, asked, sums).ok_or(NoSum::Kernel))
}

/// None where `sums` fails without a record: it panics, or gives other sums than of the lengths asked. Nothing is added to such a sum.
fn halved(block: &Block<'_>, asked: Asked<'_>, sums: &impl Fn(&Block<'_>) -> Vec<LatticeSum>) -> Option<Vec<LatticeSum>> {
    let (lengths, failed) = asked;
    let fit = |sums: &Vec<LatticeSum>| sums.iter().map(LatticeSum::length).eq(lengths.iter().copied());
    let attempt = |block: &Block<'_>| catch_unwind(AssertUnwindSafe(|| sums(block))).ok().filter(fit);
    if let Some(sums) = attempt(block) {
        return Some(sums);
    }
    let units = block.units() as usize;
    if units < 2 {
        let of_none = attempt(&block.emptied())?;
        return Some(if units == 0 { of_none } else { failed() });
    }
    let lower = halved(&block.part(0..units / 2), asked, sums)?;
    let upper = halved(&block.part(units / 2..units), asked, sums)?;
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
        let on = |threads: &Threads| -> Opened {
            let nothing = || vec![LatticeSum::from_units_for_test(0)];
            Ok(guarded(blocks, threads, (&[1], &nothing), sums)?.into_iter().map(LatticeSum::open_for_test).collect())
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
            let cache = fixed_sums(model, &spec, PrivacyUnit::default(), &data, &Threads::one()).unwrap();
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
            let cache = fixed_sums(model, &spec, PrivacyUnit::default(), data, &Threads::one()).unwrap();
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
