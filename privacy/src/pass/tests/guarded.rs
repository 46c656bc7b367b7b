#![allow(clippy::unwrap_used)]
//! Kernels that fail on records, and models that give a kernel of another hold than was charged.

use std::num::NonZeroUsize;

use super::*;
use crate::mechanism::{Components, STEP, Sensitivity};
use crate::pass::hold::{BlockPass, Cells, Values};
use crate::pass::tile::Tile;
use crate::pass::{BlockError, ModelData, Persons};

fn data(persons: Option<Persons>) -> ModelData {
    ModelData {
        outcome: (0..7).map(f64::from).collect(),
        predictors: vec![(10..17).map(f64::from).collect()],
        auxiliary: Vec::new(),
        persons,
    }
}

/// Gives each record's outcome, in lattice units, and panics on some.
struct Outcomes([f64; 2]);

impl Values for Outcomes {
    type Room = ();

    fn room(&self) {}

    fn fill(&self, rows: &Tile<'_>, (): &mut (), values: &mut [f64]) {
        assert!(!rows.outcome().iter().any(|y| self.0.contains(y)), "planted");
        values.iter_mut().zip(rows.outcome()).for_each(|(value, y)| *value = y * STEP);
    }
}

impl Cells for Outcomes {
    fn fill<const N: usize>(&self, _: &Tile<'_>, _: &mut [[f64; N]]) {}
}

type Opened = Result<Vec<i64>, NoSum>;

fn wide<'a>() -> Hold<'a> {
    Hold::Value(Sensitivity::from_units(1 << 40).unwrap())
}

fn open(blocks: &dyn Blocks, kernels: Kernels<'_>) -> Opened {
    let on = |threads: &Threads| -> Opened {
        Ok(threads.sums(blocks, &[wide()], kernels)?.into_iter().map(LatticeSum::open_for_test).collect())
    };
    let alone = on(&Threads::one());
    assert_eq!(alone, on(&Threads::new(NonZeroUsize::new(3).unwrap()).unwrap()));
    alone
}

/// A kernel that panics on some records leaves out only their units. A kernel that always panics gives no sum.
#[test]
fn only_the_units_that_a_kernel_panics_on_are_left_out() {
    let sum = |bad| move |_: usize, pass: BlockPass<'_>| pass.values(&Outcomes(bad));
    assert_eq!(open(&data(None), &sum([-1.0; 2])), Ok(vec![21]));
    assert_eq!(open(&data(None), &sum([6.0, 2.0])), Ok(vec![13]));
    // The person of record 4, with records 3 to 6, is left out.
    let persons = Persons::new(vec![2, 3, 7], 4);
    assert_eq!(open(&data(persons), &sum([4.0; 2])), Ok(vec![3]));
    assert_eq!(open(&data(None), &|_, _| panic!("planted")), Err(NoSum::Kernel));
}

#[test]
fn units_are_left_out_of_any_block() {
    let records = 100_000;
    let data = ModelData { outcome: (0..records).map(f64::from).collect(), ..ModelData::default() };
    assert!(data.count() > 2);
    let all = i64::from(records) * i64::from(records - 1) / 2;
    assert_eq!(open(&data, &|_, pass| pass.values(&Outcomes([7.0, 99_999.0]))), Ok(vec![all - 7 - 99_999]));
}

/// A model that gives no kernel, the kernel of another hold, or sums of its own length gets no sum.
#[test]
fn a_model_that_gives_another_kernel_gives_no_sum() {
    let kernel = Outcomes([-1.0; 2]);
    let hostile: [Kernels<'_>; 4] =
        [&|_, _| (), &|_, pass| pass.one_hot(&kernel, &[2]), &|_, pass| pass.statistic(|_, _| 1.0), &|_, pass| {
            pass.trace(&Nothing, 1, &[])
        }];
    for kernels in hostile {
        assert_eq!(open(&data(None), kernels), Err(NoSum::Kernel));
    }
    // The tables are those that were charged.
    for (sizes, fits) in [(&[2, 3][..], true), (&[5], false), (&[2, 2], false), (&[1, 1, 3], false)] {
        let hold = Hold::OneHot { tables: 2, length: 6 };
        let sums = Threads::one().sums(&data(None), &[hold], &|_, pass| pass.one_hot(&kernel, sizes));
        assert_eq!(sums.err(), (!fits).then_some(NoSum::Kernel), "{sizes:?}");
    }
}

/// No columns at all.
struct Nothing;

impl crate::pass::hold::Columns for Nothing {
    type Room = ();

    fn room(&self) {}

    fn fill<const N: usize>(&self, _: &Tile<'_>, (): &mut (), _: &mut [[f64; N]]) {}
}

/// A sum of another length than was charged is neither merged nor noised.
#[test]
fn a_kernel_that_gives_other_lengths_gives_no_sum() {
    let several = |length: usize| LatticeSum::of_components_for_test(Components::new(&vec![1; length]).unwrap());
    for planted in [vec![], vec![2], vec![1, 1]] {
        let sum = |_: usize, pass: BlockPass<'_>| pass.plant_for_test(planted.iter().map(|n| several(*n)).collect());
        assert_eq!(open(&data(None), &sum), Err(NoSum::Kernel), "{planted:?}");
    }
    // A record that causes such a sum contributes nothing, as if the kernel panicked.
    let sum = |_: usize, pass: BlockPass<'_>| {
        let outcome = pass.block_for_test().outcome();
        let (total, length) = (outcome.iter().sum::<f64>() as i64, 1 + usize::from(outcome.contains(&4.0)));
        pass.plant_for_test(vec![LatticeSum::of_components_for_test(Components::new(&vec![total; length]).unwrap())]);
    };
    assert_eq!(open(&data(None), &sum), Ok(vec![17]));
}

/// Records cut into blocks, some of them twice or not at all.
struct Cut(Vec<std::ops::Range<u32>>);

impl Blocks for Cut {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn records(&self) -> u64 {
        30
    }
    fn units(&self) -> u64 {
        30
    }
    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        let range = self.0[at].clone();
        let outcome = range.clone().map(f64::from).collect();
        Ok(Block::owned(ModelData { outcome, ..ModelData::default() }, range.start.into()))
    }
}

/// A shard whose blocks hold a unit twice, or not at all, has no sum. Otherwise neighbours could differ in two places.
#[test]
fn every_unit_is_in_one_block() {
    let sum = |cuts: &[std::ops::Range<u32>]| open(&Cut(cuts.to_vec()), &|_, pass| pass.values(&Outcomes([-1.0; 2])));
    assert_eq!(sum(&[0..10, 10..30]), Ok(vec![435]));
    assert_eq!(sum(&[20..30, 0..0, 0..20]), Ok(vec![435]));
    for bad in [&[0..10, 10..29][..], &[0..20, 10..30], &[0..30, 0..30], &[0..10, 20..30], &[0..15, 0..15]] {
        assert!(matches!(sum(bad), Err(NoSum::Unread(_))), "{bad:?}");
    }
}
