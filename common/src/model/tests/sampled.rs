//! Sums over a sample are sums over exactly the sampled units, whole persons each, however the shard is stored.

use super::*;
use conclave_privacy::accounting::SamplingProbability;
use conclave_privacy::pass::Summed;
use conclave_privacy::pass::shard::{Block, Blocks, RECORDS};

fn data(records: usize, persons: Option<Persons>) -> ModelData {
    let column = |shift: f64| (0..records).map(|i| shift + (i % 1000) as f64 / 1000.0).collect();
    ModelData { outcome: column(-0.5), predictors: vec![column(0.0)], auxiliary: vec![column(0.25)], persons }
}

fn sample(units: u64, q: f64, seed: u64) -> HiddenSample {
    PoissonSampling::new(units, SamplingProbability::at_least(q).unwrap()).sample(&mut ChaCha20Rng::seed_from_u64(seed))
}

/// Returns the part of a shard that a pass over a sample reads.
fn seen(blocks: &dyn Blocks, sample: &HiddenSample) -> Vec<f64> {
    let of_block = |at| {
        let block: Block<'_> = blocks.block(at).unwrap();
        block.sampled_for_test(sample).outcome().to_vec()
    };
    (0..blocks.count()).flat_map(of_block).collect()
}

#[test]
fn the_sampled_records_and_no_others_are_gathered() {
    for (records, q) in [(0, 0.5), (1, 0.5), (RECORDS + 5, 0.01), (3 * RECORDS + 7, 0.9)] {
        let data = data(records, None);
        let sample = sample(records as u64, q, 3);
        let expected: Vec<f64> = sample.open_for_test().iter().map(|unit| data.outcome[*unit as usize]).collect();
        assert_eq!(seen(&data, &sample), expected);
        let single = data.narrowed();
        let expected: Vec<f64> = sample.open_for_test().iter().map(|unit| f64::from(single.outcome[*unit as usize])).collect();
        assert_eq!(seen(&single, &sample), expected);
    }
}

/// A person is sampled with all records or with none, whatever block they are in.
#[test]
fn persons_are_sampled_and_not_records() {
    let sizes = |person: usize| 1 + person * 7 % 11;
    let ends: Vec<usize> = (0..6000)
        .scan(0, |end, person| {
            *end += sizes(person);
            Some(*end)
        })
        .collect();
    let records = *ends.last().unwrap();
    let mut data = data(records, Persons::new(ends.clone(), 11));
    data.outcome = (0..records).map(|record| record as f64).collect();
    assert!(data.count() > 2);
    let sample = sample(6000, 0.3, 4);
    let begin = |person: usize| person.checked_sub(1).map_or(0, |last| ends[last]);
    let of_person = |person: &u64| begin(*person as usize)..ends[*person as usize];
    let expected: Vec<f64> = sample.open_for_test().iter().flat_map(of_person).map(|record| record as f64).collect();
    assert_eq!(seen(&data, &sample), expected);
    for at in 0..data.count() {
        let block = data.block(at).unwrap();
        let units = sample.open_for_test().into_iter().filter(|unit| block.places().contains(unit));
        let gathered = block.sampled_for_test(&sample);
        let (persons, first) = gathered.persons().unwrap();
        assert_eq!((first, persons.limit(), persons.records() as u64), (0, 11, gathered.records()));
        let mut last = 0;
        for (person, end) in units.zip(persons.ends()) {
            assert_eq!(end - last, sizes(person as usize));
            last = *end;
        }
        assert_eq!(gathered.units(), persons.count());
    }
}

/// The places of blocks are consecutive: a unit keeps its place in the sample in whatever block it is, and so do a part's units.
#[test]
fn units_have_their_own_places() {
    let mut next = 0;
    let data = data(3 * RECORDS + 7, None);
    for at in 0..data.count() {
        let block = data.block(at).unwrap();
        assert_eq!(block.places().start, next);
        next = block.places().end;
        assert_eq!(block.part(2..5).places(), block.places().start + 2..block.places().start + 5);
    }
    assert_eq!(next, data.units());
}

/// For every model, the sum of steps over a sample equals that over a shard of the sampled records alone, by rows and by persons,
/// in double and in single precision; the same holds for a gradient, where there is one.
#[test]
fn every_kernel_sums_a_sample_as_a_shard_of_its_own() {
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    for case in cases() {
        let rows: Vec<Record> = (0..900).map(|_| case.record(&mut rng)).collect();
        let (from, to) = case.step(&mut rng);
        let clamp = Sensitivity::from_units(1 << 33).unwrap();
        let steps = [Step::new(&from, &to, clamp), Step { of: Summed::Clipped, ..Step::new(&from, &to, clamp) }];
        let persons = || Persons::new((1..=300).map(|person| 3 * person).collect(), 3);
        for persons in [None, persons()] {
            let whole = ModelData { persons, ..shard(&rows) };
            let sample = sample(whole.units(), 0.2, 13);
            let each = (rows.len() as u64 / whole.units()) as usize;
            let chosen: Vec<Record> =
                sample.open_for_test().iter().flat_map(|unit| rows[*unit as usize * each..][..each].to_vec()).collect();
            let ends = (1..=chosen.len() / each).map(|person| each * person).collect();
            let alone = ModelData { persons: whole.persons.as_ref().and_then(|_| Persons::new(ends, 3)), ..shard(&chosen) };
            let sums = |block: &Block<'_>| -> Vec<i64> {
                let mut sums: Vec<i64> =
                    case.model.block_sums(block, &steps).into_iter().map(LatticeSum::open_for_test).collect();
                if let Some(scores) = case.model.scores() {
                    let d = scores.parameters();
                    let frame: Vec<f64> = (0..Frame::length(d))
                        .map(|at| if at < d * d { 0.01 * (at + 1) as f64 / (d * d) as f64 } else { 0.001 })
                        .collect();
                    sums.extend(scores.gradient_sum(block, &from, Frame::new(&frame, d).unwrap()).open_components_for_test());
                }
                sums
            };
            assert_eq!(sums(&whole.block(0).unwrap().sampled_for_test(&sample)), sums(&Block::lent(&alone)), "{}", case.name);
            let (narrow, of_narrow) = (whole.narrowed(), alone.narrowed());
            assert_eq!(
                sums(&narrow.block(0).unwrap().sampled_for_test(&sample)),
                sums(&of_narrow.block(0).unwrap()),
                "{}",
                case.name
            );
        }
    }
}
