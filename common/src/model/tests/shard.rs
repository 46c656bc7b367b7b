//! Blocks and tiles are the shard in order, with whole persons.

use super::*;
use conclave_privacy::pass::shard::RECORDS;

fn data(records: usize, persons: Option<Persons>) -> ModelData {
    let column = |shift: f64| (0..records).map(|i| shift + i as f64).collect();
    ModelData { outcome: column(0.0), predictors: vec![column(0.5)], auxiliary: Vec::new(), persons }
}

fn outcomes(data: &ModelData) -> Vec<f64> {
    (0..data.count()).flat_map(|at| data.block(at).unwrap().outcome().to_vec()).collect()
}

#[test]
fn blocks_are_the_shard_in_order() {
    for records in [0, 1, RECORDS - 1, RECORDS, RECORDS + 1, 3 * RECORDS + 7] {
        let data = data(records, None);
        assert_eq!(data.count(), records.div_ceil(RECORDS).max(1));
        assert_eq!(outcomes(&data), data.outcome);
        assert_eq!((0..data.count()).map(|at| data.block(at).unwrap().units()).sum::<u64>(), records as u64);
    }
}

#[test]
fn persons_are_in_one_block_with_all_their_records() {
    // Persons of 1 to 300 records, at most 1000: 16 persons per block.
    let ends: Vec<usize> = (1..=100)
        .scan(0, |end, person| {
            *end += 3 * person;
            Some(*end)
        })
        .collect();
    let data = data(*ends.last().unwrap(), Persons::new(ends.clone(), 1000));
    assert_eq!((data.count(), outcomes(&data).len()), (7, data.outcome.len()));
    assert_eq!(outcomes(&data), data.outcome);
    for at in 0..data.count() {
        let block = data.block(at).unwrap();
        let (persons, first) = block.persons().unwrap();
        assert_eq!((persons.count(), first), (100, 16 * at));
        let range = (block.outcome()[0] as usize, *block.outcome().last().unwrap() as usize + 1);
        assert!((range.0 == 0 || ends.contains(&range.0)) && ends.contains(&range.1));
    }
}

#[test]
fn parts_keep_records_and_persons_together() {
    let all = data(7, None);
    let whole = Block::lent(&all);
    let part = whole.part(3..7);
    assert_eq!((part.outcome().to_vec(), part.units()), (vec![3.0, 4.0, 5.0, 6.0], 4));
    let (mut outcome, mut predictor) = (Vec::new(), Vec::new());
    let mut tiles = part.tiles(2);
    while let Some(rows) = tiles.next_tile() {
        assert!(rows.len() <= 8 && !rows.range().is_empty());
        outcome.extend_from_slice(rows.outcome());
        predictor.extend_from_slice(rows.predictor(0));
    }
    assert_eq!((outcome, predictor), (vec![3.0, 4.0, 5.0, 6.0], vec![3.5, 4.5, 5.5, 6.5]));
    assert_eq!(part.part(1..2).outcome().to_vec(), [4.0]);
    let all = data(7, Persons::new(vec![2, 3, 7], 4));
    let whole = Block::owned(all, 0);
    let part = whole.part(1..3);
    assert_eq!((part.outcome().to_vec(), part.units()), (vec![2.0, 3.0, 4.0, 5.0, 6.0], 2));
    assert_eq!(part.part(1..2).outcome().to_vec(), [3.0, 4.0, 5.0, 6.0]);
    assert_eq!((part.part(0..0).records(), part.without_records().records(), part.without_records().columns()), (0, 0, (1, 0)));
}
