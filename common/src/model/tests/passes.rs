//! The method of summation never changes a sum: vector width, threads, blocks, precision.

use std::num::NonZeroUsize;

use pulp::Arch;

use super::*;
use conclave_privacy::pass::Summed;

/// A shard cut into blocks of this many units.
struct Pieces<'a>(&'a ModelData, usize);

impl Blocks for Pieces<'_> {
    fn count(&self) -> usize {
        (self.0.units() as usize).div_ceil(self.1).max(1)
    }
    fn records(&self) -> u64 {
        // Enough units to require threads.
        1 << 40
    }
    fn units(&self) -> u64 {
        self.0.units()
    }
    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        let units = self.0.units() as usize;
        let range = units.min(at * self.1)..units.min((at + 1) * self.1);
        let ModelData { outcome, predictors, auxiliary, persons } = self.0;
        let begin = |unit: usize| match persons {
            Some(persons) => unit.checked_sub(1).map_or(0, |last| persons.ends()[last]),
            None => unit,
        };
        let rows = begin(range.start)..begin(range.end);
        let cut = |column: &Vec<f64>| column[rows.clone()].to_vec();
        let ends = |persons: &Persons| persons.ends()[range.clone()].iter().map(|end| end - rows.start).collect();
        let data = ModelData {
            outcome: cut(outcome),
            predictors: predictors.iter().map(cut).collect(),
            auxiliary: auxiliary.iter().map(cut).collect(),
            persons: persons.as_ref().and_then(|persons| Persons::new(ends(persons), persons.limit())),
        };
        Ok(Block::owned(data, range.start as u64))
    }
}

/// Returns records of a case, some of them out of bounds, by row or by person.
fn records(case: &Case, rng: &mut ChaCha20Rng, count: usize) -> ModelData {
    let one = |rng: &mut ChaCha20Rng| if rng.random_bool(0.02) { case.any_record(rng) } else { case.record(rng) };
    if rng.random_bool(0.5) {
        let rows: Vec<Record> = (0..count).map(|_| one(rng)).collect();
        return shard(&rows);
    }
    let persons: Vec<Vec<Record>> = (0..count / 2).map(|_| (0..rng.random_range(1..=3)).map(|_| one(rng)).collect()).collect();
    persons::by_person(case, &persons, 3)
}

fn steps<'a>(case: &Case, pairs: &'a [(Vec<f64>, Vec<f64>)]) -> Vec<Step<'a>> {
    let clamp = |units| Sensitivity::from_units(units).unwrap();
    let one = |(i, (from, to)): (usize, &'a (Vec<f64>, Vec<f64>))| Step {
        centre: case.model.centre(from, to),
        of: match i {
            2 => Summed::Clipped,
            3 => Summed::Squares,
            _ => Summed::Ratios,
        },
        ..Step::new(from, to, clamp(1 << (28 + 3 * i)))
    };
    pairs.iter().enumerate().map(one).collect()
}

fn held<'a>(steps: &[Step<'a>]) -> Vec<Hold<'a>> {
    steps.iter().map(|step| Hold::Step(*step)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn threads_blocks_and_vectors_change_no_sum(seed in any::<u64>(), count in 2_usize..700, piece in 1_usize..400, threads in 1_usize..5) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let threads = Threads::new(NonZeroUsize::new(threads).unwrap()).unwrap();
        for case in cases() {
            let data = records(&case, &mut rng, count);
            let pairs: Vec<_> = (0..4).map(|_| case.step(&mut rng)).collect();
            let steps = steps(&case, &pairs);
            let open = |sums: Vec<LatticeSum>| sums.into_iter().map(reveal).collect::<Vec<i64>>();
            let whole = open(case.model.lattice_sums(&data, &steps));
            let pass = |blocks: &dyn Blocks| {
                open(threads.sums(blocks, &held(&steps), &|_, pass| case.model.ratio_kernel(pass)).unwrap())
            };
            prop_assert_eq!(&pass(&Pieces(&data, piece)), &whole, "{}", case.name);
            prop_assert_eq!(&pass(&data), &whole, "{}", case.name);
            let portable = open(case.model.block_sums(&Block::lent(&data).on(Arch::Scalar), &steps));
            prop_assert_eq!(&portable, &whole, "{}: portable code", case.name);
        }
    }

    /// Single precision only rounds each number.
    #[test]
    fn single_precision_rounds_the_records(seed in any::<u64>(), count in 2_usize..700) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for case in cases() {
            let data = records(&case, &mut rng, count);
            let rounded = |column: &Vec<f64>| column.iter().map(|x| f64::from(*x as f32)).collect();
            let expected = ModelData {
                outcome: rounded(&data.outcome),
                predictors: data.predictors.iter().map(rounded).collect(),
                auxiliary: data.auxiliary.iter().map(rounded).collect(),
                persons: data.persons.clone(),
            };
            let pairs: Vec<_> = (0..4).map(|_| case.step(&mut rng)).collect();
            let steps = steps(&case, &pairs);
            let single = data.narrowed();
            let sums = |blocks: &dyn Blocks| -> Vec<i64> {
                let sums = Threads::one().sums(blocks, &held(&steps), &|_, pass| case.model.ratio_kernel(pass));
                sums.unwrap().into_iter().map(reveal).collect()
            };
            prop_assert_eq!(sums(&single), sums(&expected), "{}", case.name);
            let Some(family) = case.model.exponential_family() else { continue };
            for (component, range) in family.ranges().into_iter().enumerate() {
                let grid = StatisticGrid::new(range).unwrap();
                let block = Blocks::block(&single, 0).unwrap();
                let sum = family.block_sum(&block, component, grid.step, grid.limits);
                prop_assert_eq!(reveal(sum), reveal(family.statistic_sum(&expected, component, grid.step, grid.limits)));
            }
        }
    }
}

/// A shard of many blocks and tiles, wherever its columns are in memory.
#[test]
fn large_shards_are_the_sum_of_their_records() {
    let mut rng = ChaCha20Rng::seed_from_u64(31);
    let case = logistic::case();
    let few: Vec<Record> = (0..500).map(|_| case.record(&mut rng)).collect();
    let (from, to) = (case.theta(&mut rng, 1.0), case.theta(&mut rng, 1.0));
    let k_t = Sensitivity::from_units(1 << 30).unwrap();
    let alone: Vec<i64> =
        few.iter().map(|r| reveal(case.model.lattice_sum(&shard(std::slice::from_ref(r)), &from, &to, k_t))).collect();
    for count in [16_384, 16_385, 50_003] {
        let rows: Vec<Record> = few.iter().cycle().take(count).cloned().collect();
        let expected: i64 = alone.iter().cycle().take(count).sum();
        let data = shard(&rows);
        for threads in [1, 3] {
            let threads = Threads::new(NonZeroUsize::new(threads).unwrap()).unwrap();
            let step = [Step::new(&from, &to, k_t); 4];
            let sums = threads.sums(&data, &held(&step), &|_, pass| case.model.ratio_kernel(pass)).unwrap();
            assert!(sums.into_iter().map(reveal).all(|sum| sum == expected));
        }
    }
}
