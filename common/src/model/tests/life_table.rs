#![allow(clippy::unwrap_used)]
use super::*;
use crate::job::JobSpec;
use crate::model::{Summand, sums};
use crate::query::{QueryError, QueryTerms};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::data::ModelData;

fn job(by: bool) -> JobSpec {
    let (key, column) = if by { ("by = \"g\"\n", "g = { levels = [\"a\", \"b\", \"c\"] }\n") } else { ("", "") };
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"p\"]\n[model]\nkind = \"life_table\"\noutcome = \"y\"\nevent = \"d\"\ncuts = [10, 30]\n{key}[columns]\n\
         y = {{ min = 0, max = 100 }}\nd = {{ binary = true }}\n{column}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Returns the counts of records `(time, event, group)` by cell.
fn counts(by: bool, records: &[(f64, f64, f64)]) -> Vec<i64> {
    let spec = job(by);
    let model = spec.build_model();
    let column = |of: fn(&(f64, f64, f64)) -> f64| records.iter().map(of).collect::<Vec<f64>>();
    let groups = by.then(|| column(|record| record.2));
    let data = ModelData {
        outcome: column(|record| (record.0 - 50.0) / 50.0),
        auxiliary: std::iter::once(column(|record| record.1)).chain(groups).collect(),
        ..ModelData::default()
    };
    let cells = model.life_table().unwrap().cells();
    sums(model.as_ref(), &data, &[Summand::Table { tables: 1, cells }]).remove(0).open_components_for_test()
}

/// Returns the cell of one record.
fn cell(by: bool, record: (f64, f64, f64)) -> usize {
    let counts = counts(by, &[record]);
    assert_eq!(counts.iter().sum::<i64>(), QueryKind::COUNT_UNIT as i64);
    counts.iter().position(|count| *count != 0).unwrap()
}

/// A record is in the cell of its interval and of how its follow-up ends. A time at a cut is in the interval that ends there, and an event at
/// the declared maximum is none.
#[test]
fn a_record_is_counted_once_by_interval_and_end() {
    use FollowUpEnd::{AtEnd, Event, Within};
    let spec = job(true);
    let model = spec.build_model();
    let table = model.life_table().unwrap();
    for (time, event, interval, end) in [
        (0.0, 1.0, 0, Event),
        (4.0, 1.0, 0, Event),
        (4.0, 0.0, 0, Within),
        (10.0, 1.0, 0, Event),
        (10.0, 0.0, 0, AtEnd),
        (10.01, 1.0, 1, Event),
        (10.01, 0.0, 1, Within),
        (30.0, 0.0, 1, AtEnd),
        (99.0, 1.0, 2, Event),
        (99.0, 0.0, 2, Within),
        (100.0, 0.0, 2, AtEnd),
        (100.0, 1.0, 2, AtEnd),
    ] {
        for group in [0.0, 1.0, 2.0] {
            let wanted = table.cell(group as usize, interval, end);
            assert_eq!(cell(true, (time, event, group)), wanted, "{time} {event} {group}");
            if group == 0.0 {
                assert_eq!(cell(false, (time, event, group)), wanted, "{time} {event}");
            }
        }
    }
    let nothing = [
        (f64::NAN, 1.0, 0.0),
        (4.0, f64::NAN, 0.0),
        (4.0, 0.5, 0.0),
        (4.0, 1.0, f64::NAN),
        (4.0, 1.0, 3.0),
        (4.0, 1.0, -1.0),
        (4.0, 1.0, 0.5),
        (0.0, 0.0, 0.0),
    ];
    for record in nothing {
        assert_eq!(cell(true, record), table.cells() - 1, "{record:?}");
    }
    assert_eq!(table.cells(), 28);
}

/// Single precision moves a time at a cut by less than the distance that counts as a tie.
#[test]
fn a_rounded_time_stays_at_its_cut() {
    let spec = job(false);
    let model = spec.build_model();
    let table = model.life_table().unwrap();
    for (time, interval) in [(10.0_f64, 0), (30.0, 1)] {
        let rounded = f64::from(((time - 50.0) / 50.0) as f32) * 50.0 + 50.0;
        assert_eq!(cell(false, (rounded, 0.0, 0.0)), table.cell(0, interval, FollowUpEnd::AtEnd), "{time}");
    }
}

/// Replacing a record moves the table by at most √2 records, and by that much between any two cells.
#[test]
fn the_sensitivity_is_that_of_one_table() {
    let spec = job(true);
    let model = spec.build_model();
    let ask = |cells: usize| {
        let kind = QueryKind::Table { cells: cells as u32 };
        QueryTerms::new(model.as_ref(), &spec, PrivacyUnit::default(), kind, (&[], &[])).map(|terms| terms.sensitivity().units())
    };
    let charged = ask(28).unwrap();
    let unit = QueryKind::COUNT_UNIT as f64;
    assert!(charged as f64 >= unit * std::f64::consts::SQRT_2 && charged as f64 <= unit * std::f64::consts::SQRT_2 + 1.0);
    assert_eq!(ask(27), Err(QueryError::Vector(QueryKind::Table { cells: 27 })));
    let mut worst: f64 = 0.0;
    let times = [f64::NAN, 0.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 1e9, -1e9];
    let records: Vec<_> = times
        .iter()
        .flat_map(|time| {
            [f64::NAN, 0.0, 1.0, 7.0]
                .into_iter()
                .flat_map(move |event| [f64::NAN, 0.0, 2.0, 9.0].map(|group| (*time, event, group)))
        })
        .collect();
    let each: Vec<Vec<i64>> = records.iter().map(|record| counts(true, &[*record])).collect();
    for a in &each {
        for b in &each {
            let square: i64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            worst = worst.max((square as f64).sqrt());
        }
    }
    assert!(worst <= charged as f64 && worst >= 0.999 * charged as f64, "{worst} {charged}");
}

/// The log likelihood is that of the product-limit law, with half an interval for a record that is censored within it.
#[test]
fn the_likelihood_is_the_product_limit_law() {
    let spec = job(true);
    let model = spec.build_model();
    let theta = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.15, 0.25, 0.35];
    let data = ModelData {
        outcome: [4.0, 20.0, 20.0, 30.0, 100.0, f64::NAN].map(|time: f64| (time - 50.0) / 50.0).to_vec(),
        auxiliary: vec![vec![1.0, 1.0, 0.0, 0.0, 0.0, 1.0], vec![0.0, 1.0, 1.0, 2.0, 0.0, 0.0]],
        ..ModelData::default()
    };
    let wanted: f64 = [
        0.1_f64.ln(),
        0.6_f64.ln() + 0.5_f64.ln(),
        0.6_f64.ln() + 0.5 * 0.5_f64.ln(),
        0.85_f64.ln() + 0.75_f64.ln(),
        0.9_f64.ln() + 0.8_f64.ln() + 0.7_f64.ln(),
    ]
    .iter()
    .sum();
    assert!((model.log_likelihood(&data, &theta) - wanted).abs() < 1e-12);
}
