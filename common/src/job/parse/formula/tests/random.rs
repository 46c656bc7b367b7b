//! Random formulas and random records.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::by_formula;
use crate::formula::tests::random_text;
use crate::job::parse::formula::read;
use crate::job::raw::RawModel;
use crate::model::{Assembly, Scaling};
use crate::schema::ColumnSpec;
use crate::settings::{self, Setting};

/// Lowers random texts, and checks that derived columns lie within their bounds. Returns the number of lowered formulas.
fn lower_random_texts(seed: u64, texts: usize) -> usize {
    let declared = by_formula("died ~ 1").unwrap().columns;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut lowered = 0;
    for _ in 0..texts {
        let text = random_text(&mut random).replacen("y ~", "died ~ age +", 1);
        let table = [("formula", text.clone()), ("family", "logistic".to_owned())];
        let table: settings::Table =
            table.into_iter().map(|(key, text)| (key.to_owned(), settings::Value::String(text))).collect();
        let mut raw = RawModel::read(&settings::Value::Table(table)).unwrap();
        let mut columns = declared.clone();
        let Ok(Some(formula)) = read(&mut raw) else { continue };
        drop(formula.model(&raw, &mut columns.clone(), &mut BTreeMap::new()));
        let Ok(of) = crate::job::parse::formula::design::lower(&formula.formula, &mut columns) else { continue };
        lowered += 1;
        for derived in &of.design.derived {
            let mut value = |name: &String| match declared[name] {
                ColumnSpec::Numeric { min, max } => [[min, max, random.random_range(min..max)][random.random_range(0..3)]],
                _ => [f64::from(random.random_range(0..2))],
            };
            let values: Vec<[f64; 1]> = derived.columns.iter().map(&mut value).collect();
            let mut out = [0.0];
            derived.fill(&values.iter().map(<[f64; 1]>::as_slice).collect::<Vec<_>>(), &mut out);
            let ColumnSpec::Numeric { min, max } = columns[&derived.name] else { panic!("{text}") };
            let slack = 1e-12 * min.abs().max(max.abs());
            assert!(min - slack <= out[0] && out[0] <= max + slack, "{text}: {} in {min} to {max}", out[0]);
        }
    }
    lowered
}

#[test]
fn random_formulas_are_lowered_or_refused() {
    let lowered = lower_random_texts(3, 10_000);
    assert!(lowered > 100, "{lowered}");
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn three_hundred_thousand_random_formulas_are_lowered_or_refused() {
    let lowered = lower_random_texts(4, 300_000);
    assert!(lowered > 3_000, "{lowered}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// Whatever the records hold, a feature is a number in [−1, 1], or the whole record is inert.
    #[test]
    fn derived_features_stay_within_their_range(values in prop::collection::vec((any::<f64>(), -200.0..200.0_f64, 0..4_u8), 6), ward in 0..4_u8) {
        let spec = by_formula(
            "died ~ log(dose) + I(age^2 / (dose + bmi^2)) + exp(bmi) + sqrt(days) + ward + ns(bmi, knots = [0, 4]):ward + ls(age, knots = [40]) * sex",
        ).unwrap();
        let scaling = |_: &str, bounds: &ColumnSpec| Some(Scaling::of_numbers(bounds));
        let mut columns = spec.columns.clone();
        columns.insert("ward".to_owned(), ColumnSpec::Levels(["0", "1", "2"].into_iter().collect()));
        let assembly = Assembly::new(&spec.model, &columns, scaling).unwrap();
        let mut values = values.into_iter().map(|(any, near, choice)| match choice { 0 => any, 1 => f64::NAN, _ => near });
        let row: Vec<[f64; 1]> = assembly.columns().iter().map(|name| {
            if name == "ward" { [f64::from(ward)] } else { [values.next().unwrap_or(0.0)] }
        }).collect();
        let data = assembly.data(&row.iter().map(<[f64; 1]>::as_slice).collect::<Vec<_>>(), None);
        let all: Vec<f64> = std::iter::once(&data.outcome).chain(&data.predictors).map(|column| column[0]).collect();
        let is_inert = row.iter().any(|value| value[0].is_nan()) || ward == 3;
        prop_assert_eq!(all.iter().all(|value| value.is_nan()), is_inert);
        prop_assert!(is_inert || all.iter().all(|value| (-1.0..=1.0).contains(value)), "{:?}", all);
    }
}
