//! Contingency tables: counts, and the effect of a unit of privacy on them.

use super::*;
use crate::job::Algorithm;
use crate::model::{Summand, sums};
use crate::query::{QueryError, QueryTerms};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::Persons;
use conclave_privacy::pass::hold::Moves;

const UNIT: i64 = QueryKind::COUNT_UNIT as i64;

fn counts(case: &Case, records: &[Record]) -> Vec<i64> {
    sums(case.model.as_ref(), &shard(records), &[Summand::table_of(case.model.as_ref())]).remove(0).open_components_for_test()
}

fn of_tables() -> [Case; 2] {
    [multinomial::case(), naive_bayes::case()]
}

/// For every pair of records, also with arbitrary values, replacing one by the other moves the counts by at most the price, and
/// some pair attains it up to the price's rounding; likewise for adding one.
#[test]
fn no_record_moves_the_counts_by_more_than_the_price() {
    for case in of_tables() {
        let tables = case.model.tables().unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let wild = (0..200).map(|_| case.any_record(&mut rng));
        let records: Vec<Record> = case.corners().into_iter().chain(wild).collect();
        let counted: Vec<Vec<i64>> = records.iter().map(|record| counts(&case, std::slice::from_ref(record))).collect();
        let square = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| u128::from((a - b).unsigned_abs()).pow(2)).sum::<u128>();
        let none = vec![0; tables.cells()];
        for replaced in [true, false] {
            let price = u128::from(Moves::one_hot(tables.count(), 1).between(if replaced {
                Adjacency::Replace
            } else {
                Adjacency::AddRemove
            }));
            let pairs = counted.iter().flat_map(|a| counted.iter().map(move |b| (a, b)));
            let most =
                if replaced { pairs.map(|(a, b)| square(a, b)).max() } else { counted.iter().map(|a| square(a, &none)).max() };
            let most = most.unwrap();
            assert!(most <= price * price && (price - 1) * (price - 1) < most, "{}: {most} at {price}", case.name);
            let changes = tables.count() as u128 * if replaced { 2 } else { 1 };
            assert_eq!(most, changes * (UNIT as u128).pow(2));
        }
        let persons = |records| Moves::one_hot(tables.count(), records).between(Adjacency::Replace);
        assert_eq!(persons(5), 5 * persons(1));
    }
}

/// Every record is in one cell of each table, or in the last one for missing values; blocks add up.
#[test]
fn tables_count_every_record() {
    for case in of_tables() {
        let tables = case.model.tables().unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let lost = case.filled(&mut || f64::NAN);
        let records: Vec<Record> = (0..700).map(|i| if i % 10 == 0 { lost.clone() } else { case.record(&mut rng) }).collect();
        let whole = counts(&case, &records);
        let size = (tables.cells() - 1) / tables.count();
        assert_eq!((whole.len(), whole.last()), (tables.cells(), Some(&(70 * UNIT))));
        assert_eq!(
            whole[..tables.cells() - 1].iter().sum::<i64>(),
            tables.count() as i64 * 630 * UNIT,
            "cells of {size} and more"
        );
        let parts = [counts(&case, &records[..257]), counts(&case, &records[257..])];
        assert!(whole.iter().zip(&parts[0]).zip(&parts[1]).all(|((whole, a), b)| *whole == a + b));
        if case.name == "naive_bayes" {
            let statistic =
                |cell: usize| case.model.exponential_family().unwrap().statistic_sum(&shard(&records), cell, 1.0, (0, 1));
            assert!((0..tables.cells() - 1).all(|cell| whole[cell] == UNIT * reveal(statistic(cell))));
        }
    }
}

#[test]
fn tables_have_terms_where_the_job_queries_them() {
    let mut case = naive_bayes::case();
    let kind = QueryKind::Table { cells: 19 };
    let terms = |case: &Case, unit, kind, points| QueryTerms::new(case.model.as_ref(), &case.spec, unit, kind, points);
    assert_eq!(terms(&case, PrivacyUnit::default(), kind, (&[], &[])).err(), Some(QueryError::Kind(kind)), "penalty asks none");
    case.spec.algorithm = Algorithm::Augmentation;
    let row = terms(&case, PrivacyUnit::default(), kind, (&[], &[])).unwrap();
    assert_eq!((row.sensitivity().units(), row.length()), (2 << 20, 19), "two tables: a replaced record changes four cells");
    let added = terms(&case, PrivacyUnit::row(Adjacency::AddRemove), kind, (&[], &[])).unwrap();
    assert_eq!(added.sensitivity().units(), 1_482_911, "the root of 2, upwards");
    let unit = PrivacyUnit::person(Adjacency::Replace, 4).unwrap();
    assert_eq!(terms(&case, unit, kind, (&[], &[])).unwrap().sensitivity().units(), 8 << 20);
    let other = QueryKind::Table { cells: 18 };
    assert_eq!(terms(&case, unit, other, (&[], &[])).err(), Some(QueryError::Vector(other)));
    assert_eq!(terms(&case, unit, kind, (&[0.1], &[])).err(), Some(QueryError::Vector(kind)));
    // A person's records are counted one by one.
    let persons = Persons::new(vec![2, 4], 4);
    let data =
        ModelData { persons, ..shard(&(0..4).map(|_| case.record(&mut ChaCha20Rng::seed_from_u64(1))).collect::<Vec<_>>()) };
    let counted =
        sums(case.model.as_ref(), &data, &[Summand::table_of(case.model.as_ref())]).remove(0).open_components_for_test();
    assert_eq!(counted.iter().sum::<i64>(), 8 * UNIT);
}
