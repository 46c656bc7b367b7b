//! Hostile kernels: whatever floats a kernel returns, one unit contributes an integer vector of the admissible set.

use proptest::prelude::*;

use crate::accounting::Adjacency;
use crate::mechanism::{GRADIENT_UNITS, QueryKind, Sensitivity};
use crate::pass::blocks::{Kernel, KernelVisitor, Scratch};
use crate::pass::hold::{self, BlockPass, Cells, Columns, Hold, LatticeSum, Place, Sloped, Values, block_sums};
use crate::pass::small_tile::TileLane;
use crate::pass::tile::Tile;
use crate::pass::{Block, Frame, GRADIENT_SCALE, ModelData, Persons, StatisticGrid, Step, Summed};

/// Returns these numbers for every record, whatever the record contains.
struct Hostile(Vec<f64>);

impl Hostile {
    fn number(&self, at: usize) -> f64 {
        self.0[at % self.0.len()]
    }
}

impl Kernel for Hostile {
    type Constants = f64;

    fn constants(&self, _: &[f64], _: &[f64]) -> f64 {
        self.number(0)
    }

    fn log_ratios(&self, rows: &Tile<'_>, number: &f64, _: &mut Scratch, visitor: &mut impl KernelVisitor) {
        visitor.over([rows.outcome()], number, |number, [_]| *number);
    }
}

impl Values for Hostile {
    type Room = ();

    fn room(&self) {}

    fn fill(&self, _: &Tile<'_>, (): &mut (), values: &mut [f64]) {
        values.iter_mut().enumerate().for_each(|(i, value)| *value = self.number(i));
    }
}

impl Sloped for Hostile {
    fn slopes(&self, rows: &Tile<'_>, slopes: &mut [TileLane<f64>; 2]) {
        for (k, slopes) in slopes.iter_mut().enumerate() {
            slopes.0[..rows.len()].fill(self.number(k));
        }
    }
}

impl Columns for Hostile {
    type Room = ();

    fn room(&self) {}

    fn fill<const N: usize>(&self, _: &Tile<'_>, (): &mut (), columns: &mut [[f64; N]]) {
        columns.iter_mut().enumerate().for_each(|(k, column)| column.fill(self.number(k)));
    }
}

impl Cells for Hostile {
    fn fill<const N: usize>(&self, _: &Tile<'_>, codes: &mut [[f64; N]]) {
        codes.iter_mut().enumerate().for_each(|(k, codes)| codes.fill(self.number(k)));
    }
}

/// A shard of one unit: a record, or a person of `records` of them.
fn unit(records: usize) -> ModelData {
    ModelData {
        outcome: vec![0.5; records],
        predictors: vec![vec![1.0; records], vec![-1.0; records]],
        auxiliary: Vec::new(),
        persons: (records > 1).then(|| Persons::new(vec![records], records as u32)).flatten(),
    }
}

/// Returns the sum of a pass under this hold.
fn sum(block: &Block<'_>, hold: Hold<'_>, give: &(dyn Fn(BlockPass<'_>) + Sync)) -> LatticeSum {
    block_sums(block, &[hold], &|_, pass| give(pass)).remove(0)
}

fn length(a: &[i64], b: &[i64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum::<f64>().sqrt()
}

/// Checks that two units' contributions are no farther from each other, and from zero, than their hold allows.
fn within(sums: [LatticeSum; 2]) -> Result<(), TestCaseError> {
    let [replaced, added] = [Adjacency::Replace, Adjacency::AddRemove].map(|adjacency| sums[0].between(adjacency) as f64);
    let [a, b] = sums.map(LatticeSum::open_components_for_test);
    let slack = 1.0 + 1e-12;
    prop_assert!(length(&a, &b) <= replaced * slack, "{a:?} {b:?} {replaced}");
    prop_assert!(length(&a, &vec![0; a.len()]) <= added * slack, "{a:?} {added}");
    Ok(())
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    let special = prop::sample::select(vec![
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE / 2.0,
        -0.0,
        0.0,
        1.0,
        -1.0,
        2.0,
        1e-9,
    ]);
    prop::collection::vec(prop_oneof![special, -1e4..1e4_f64, any::<f64>()], 1..5)
}

proptest! {
    #[test]
    fn no_kernel_leaves_its_hold(one in numbers(), other in numbers(), records in 1..5_usize, clamp in 1..1_u64 << 40) {
        let kernels = [Hostile(one), Hostile(other)];
        let data = unit(records);
        let of = |sum: &dyn Fn(&Hostile, &Block<'_>) -> LatticeSum| {
            let [a, b] = &kernels;
            within([sum(a, &Block::lent(&data)), sum(b, &Block::lent(&data))])
        };
        let clamp = Sensitivity::from_units(clamp).unwrap();
        for summed in [Summed::Ratios, Summed::Clipped, Summed::Squares] {
            let step = Step { of: summed, centre: 0.25, ..Step::new(&[0.0], &[1.0], clamp) };
            of(&|kernel, block| sum(block, Hold::Step(step), &|pass| pass.ratios(kernel)))?;
        }
        of(&|kernel, block| sum(block, Hold::Value(clamp), &|pass| pass.values(kernel)))?;
        let grid = Hold::Statistic(StatisticGrid { step: 0.5, limits: (-3, 7) });
        of(&|kernel, block| sum(block, grid, &|pass| pass.statistic(|_, i| kernel.number(i))))?;
        let frame: Vec<f64> = (0..Frame::length(4)).map(|i| f64::from(i as u32 % 7) / 7.0 - 0.4).collect();
        let (frame, hold) = (Frame::new(&frame, 4).unwrap(), Hold::Ball { length: 4 });
        of(&|kernel, block| sum(block, hold, &|pass| pass.ball(kernel, &[0.0; 4], frame, 3, true)))?;
        of(&|kernel, block| sum(block, hold, &|pass| pass.vectors(kernel)))?;
        let places = [(0, 0), (0, 1), (1, 0), (2, 2)].map(|(vector, component)| Place { vector, component });
        let hold = Hold::Trace { squares: 2, length: 6 };
        of(&|kernel, block| sum(block, hold, &|pass| pass.trace(kernel, 3, &places)))?;
        let hold = Hold::OneHot { tables: 2, length: 6 };
        of(&|kernel, block| sum(block, hold, &|pass| pass.one_hot(kernel, &[2, 3])))?;
    }
}

/// Compares the distances by which holds are charged with their theorems, for one example each.
#[test]
fn holds_move_as_far_as_their_theorems_say() {
    let between = |moves: hold::Moves| [Adjacency::Replace, Adjacency::AddRemove].map(|adjacency| moves.between(adjacency));
    assert_eq!(between(hold::Moves::interval(-5, 5)), [10, 5]);
    assert_eq!(between(hold::Moves::interval(3, 7)), [4, 7]);
    assert_eq!(between(hold::Moves::ball(3)), [6 * GRADIENT_UNITS, 3 * GRADIENT_UNITS]);
    let unit = 1_u64 << 32;
    assert_eq!(between(hold::Moves::trace(2, 1)), [2 * unit + 3, (2 * unit * 46_341).div_ceil(65_536)]);
    assert_eq!(between(hold::Moves::one_hot(2, 2)), [4 * QueryKind::COUNT_UNIT, 2 * 1_482_911]);
}

/// A unit on which a kernel fails contributes zero or the end closest to it, at the distances of its hold.
#[test]
fn a_fallback_is_within_its_hold() {
    let data = unit(2);
    let fallback = |limits| Hold::Statistic(StatisticGrid { step: 1.0, limits }).fallback(&Block::lent(&data));
    assert_eq!(fallback((3, 7)).open_for_test(), 3);
    assert_eq!(fallback((-7, -3)).open_for_test(), -3);
    let ball = Hold::Ball { length: 2 }.fallback(&Block::lent(&data));
    assert_eq!((ball.between(Adjacency::AddRemove), ball.records_per_unit()), (2 * GRADIENT_UNITS, 2));
    assert_eq!(ball.open_components_for_test(), [0, 0]);
}

/// Records that a kernel leaves out, or whose vectors are too long, contribute what their hold specifies.
#[test]
fn records_beyond_a_hold_contribute_what_it_says() {
    let data = unit(1);
    let block = Block::lent(&data);
    let places = [Place { vector: 0, component: 0 }, Place { vector: 1, component: 0 }];
    let triangle = |numbers: [f64; 2]| {
        let (kernel, hold) = (Hostile(numbers.to_vec()), Hold::Trace { squares: 1, length: 1 });
        sum(&block, hold, &|pass| pass.trace(&kernel, 1, &places)).open_for_test()
    };
    let unit = 2_f64.powi(32);
    assert_eq!(triangle([0.5, 0.5]), (0.5 * unit * hold::DIAGONAL).floor() as i64);
    assert_eq!(triangle([1.0, 0.5]), 0, "longer than what is charged");
    assert_eq!(triangle([f64::NAN, 0.5]), (0.25 * unit * hold::DIAGONAL).floor() as i64);
    let vector = |numbers: [f64; 2]| {
        let (kernel, hold) = (Hostile(numbers.to_vec()), Hold::Ball { length: 2 });
        sum(&block, hold, &|pass| pass.vectors(&kernel)).open_components_for_test()
    };
    let whole = |x: f64| (x * GRADIENT_SCALE).round() as i64;
    assert_eq!(vector([0.6, -0.8]), [whole(0.6), whole(-0.8)]);
    assert_eq!(vector([f64::NAN, 0.5]), [0, whole(0.5)]);
    let shortened = vector([3.0, -4.0]);
    let length = length(&shortened, &[0, 0]);
    assert!(length <= GRADIENT_UNITS as f64 && length > GRADIENT_UNITS as f64 - 2.0, "{shortened:?}");
    assert!((shortened[0] as f64 / shortened[1] as f64 + 1.0).abs() < 1e-8, "each component is held to a vector's length first");
    let counts = |codes: [f64; 2]| {
        let (kernel, hold) = (Hostile(codes.to_vec()), Hold::OneHot { tables: 2, length: 5 });
        sum(&block, hold, &|pass| pass.one_hot(&kernel, &[2, 2])).open_components_for_test()
    };
    let one = QueryKind::COUNT_UNIT as i64;
    assert_eq!(counts([1.0, 0.0]), [0, one, one, 0, 0]);
    for unusable in [[1.0, 2.0], [0.5, 0.0], [f64::NAN, 1.0], [-1.0, 1.0], [0.0, f64::INFINITY]] {
        assert_eq!(counts(unusable), [0, 0, 0, 0, one]);
    }
}

/// A kernel of a trace or of tables of another shape than was charged panics before it reads a record, as the other holds' do.
#[test]
fn a_hold_of_another_shape_than_was_charged_is_refused() {
    let data = unit(1);
    let block = Block::lent(&data);
    let refused = |hold: Hold<'_>, give: &(dyn Fn(BlockPass<'_>) + Sync)| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(sum(&block, hold, give)))).is_err()
    };
    let kernel = Hostile(vec![0.5]);
    let place = |component| [Place { vector: 0, component }];
    for (squares, length, order, component, fits) in
        [(1, 3, 2, 1, true), (1, 3, 1, 0, false), (1, 1, 1, 1, false), (8191, 1, 1, 0, true), (8192, 1, 1, 0, false)]
    {
        let hold = Hold::Trace { squares, length };
        let refused = refused(hold, &|pass| pass.trace(&kernel, order, &place(component)));
        assert_eq!(refused, !fits, "{squares} {length} {order} {component}");
    }
    for (tables, length, fits) in [(1, 3, true), (1, 4, false), (2, 3, false)] {
        let refused = refused(Hold::OneHot { tables, length }, &|pass| pass.one_hot(&kernel, &[2]));
        assert_eq!(refused, !fits, "{tables} {length}");
    }
    let frame = vec![0.0; Frame::length(2)];
    let frame = Frame::new(&frame, 2).unwrap();
    for (length, fits) in [(2, true), (3, false)] {
        let refused = refused(Hold::Ball { length }, &|pass| pass.ball(&kernel, &[0.0; 2], frame, 2, true));
        assert_eq!(refused, !fits, "{length}");
    }
    // A kernel of vectors has as many components as are charged.
    assert!(refused(Hold::Trace { squares: 1, length: 3 }, &|pass| pass.vectors(&kernel)));
}

/// Gives the ratios of a tile in parts, each so often.
struct InParts(usize, usize);

impl Kernel for InParts {
    type Constants = ();

    fn constants(&self, _: &[f64], _: &[f64]) {}

    fn log_ratios(&self, rows: &Tile<'_>, (): &(), _: &mut Scratch, visitor: &mut impl KernelVisitor) {
        for part in rows.outcome().chunks(self.0) {
            (0..self.1).for_each(|_| visitor.over([part], &(), |(), [y]| y));
        }
    }
}

/// Whatever is summed of the ratios, a kernel may give them in parts, and gives each record one.
#[test]
fn a_kernel_gives_every_record_one_ratio_for_any_sum() {
    let outcome: Vec<f64> = (0..9).map(|i| f64::from(i) / 4.0).collect();
    for persons in [None, Persons::new(vec![2, 3, 9], 6)] {
        let data = ModelData { outcome: outcome.clone(), persons, ..ModelData::default() };
        let block = Block::lent(&data);
        for of in [Summed::Ratios, Summed::Clipped, Summed::Squares] {
            let step = Step { of, ..Step::new(&[0.0], &[1.0], Sensitivity::from_units(1 << 32).unwrap()) };
            let given = |kernel: InParts| {
                let sum = || sum(&block, Hold::Step(step), &|pass| pass.ratios(&kernel)).open_for_test();
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(sum)).ok()
            };
            let whole = given(InParts(9, 1));
            assert!(whole.is_some_and(|sum| sum > 0));
            assert_eq!(given(InParts(4, 1)), whole);
            assert_eq!((given(InParts(9, 2)), given(InParts(9, 0))), (None, None));
        }
    }
}
