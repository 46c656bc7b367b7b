//! An assembly gives, for any values, the bits of the plain arithmetic of a record, in parts of any length and in either precision.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::job::JobSpec;
use crate::schema::{Offset, level_at};

const JOB: &str = r#"
    name = "t"
    parties = ["a"]
    [model]
    kind = "poisson"
    outcome = "y"
    predictors = ["age", "ward", "age:ward", "sex", "age:sex"]
    exposure = "time"

    [columns]
    y = { min = 0, max = 40 }
    age = { min = 20, max = 80 }
    ward = { levels = ["1", "2.5", "4"] }
    sex = { binary = true }
    time = { min = 0.5, max = 3.0 }

    [privacy]
    epsilon = 1.0
    delta = 1e-6
"#;

/// Values of `y`, `age`, `ward`, `sex` and `time` of a record, as a file stores them.
fn record() -> impl Strategy<Value = [f64; 5]> {
    let number =
        || prop_oneof![6 => -100.0..100.0_f64, 1 => Just(f64::NAN), 1 => Just(-0.0), 1 => Just(50.0 + 1e-31), 1 => any::<f64>()];
    let ward = prop_oneof![4 => Just(1.0), 4 => Just(2.5), 4 => Just(4.0), 1 => Just(3.0), 1 => Just(f64::NAN)];
    (number(), number(), ward, number(), number()).prop_map(|(y, age, ward, sex, time)| [y, age, ward, sex, time])
}

/// The outcome, the predictors and the offset of a record, by [`ColumnSpec::scale`].
fn by_hand(spec: &JobSpec, names: &[String], record: &[f64]) -> Vec<f64> {
    let scaled = |name: &str| {
        let (bounds, value) = (&spec.columns[name], record[names.iter().position(|n| n == name).unwrap()]);
        bounds.level_numbers().map_or(bounds.scale(value), |levels| level_at(&levels, value))
    };
    let missing: f64 = names.iter().map(|name| 0.0 * scaled(name)).sum();
    let design = spec.model.design().unwrap();
    let feature = |feature: &Feature| {
        let factor = |f: &crate::schema::Factor| {
            let x = scaled(&f.column);
            f.level.map_or(x, |level| if x == level as f64 { 1.0 } else { 0.0 })
        };
        feature.factors.iter().map(factor).reduce(|product, x| flushed(product * x)).unwrap()
    };
    let Some(Offset::Exposure(time)) = &design.offset else { panic!("no exposure") };
    let bounds = &spec.columns[time];
    let offset = (bounds.centre() + bounds.half_width() * scaled(time)).clamp(0.5, 3.0);
    let values = std::iter::once(scaled("y")).chain(design.features.iter().map(feature)).chain([flushed(libm::log(offset))]);
    values.map(|value| value + missing).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn records_are_assembled_bit_for_bit(records in prop::collection::vec(record(), 1..700), repeats in 1..60_usize) {
        let spec = JobSpec::parse(JOB).unwrap();
        let scaling = |_: &str, bounds: &ColumnSpec| Some(Scaling::of_numbers(bounds));
        let assembly = Assembly::new(&spec.model, &spec.columns, scaling).unwrap();
        let names = assembly.columns().to_vec();
        let file = ["y", "age", "ward", "sex", "time"];
        let column = |name: &String| {
            let at = file.iter().position(|n| n == name).unwrap();
            (0..repeats).flat_map(|_| records.iter().map(|r| r[at])).collect::<Vec<f64>>()
        };
        let columns: Vec<Vec<f64>> = names.iter().map(column).collect();
        let values: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let (data, copy, single) = (assembly.data(&values, None), assembly.copy::<f64>(&values, None), assembly.copy::<f32>(&values, None));
        // NaN has many bits, and none of them counts.
        let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
        for i in 0..columns[0].len() {
            let expected = by_hand(&spec, &names, &columns.iter().map(|column| column[i]).collect::<Vec<_>>());
            for data in [&data, &copy] {
                let found = std::iter::once(&data.outcome).chain(&data.predictors).chain(&data.auxiliary).map(|c| bits(c[i]));
                prop_assert!(found.eq(expected.iter().map(|x| bits(*x))), "record {i}");
            }
            let found = std::iter::once(&single.outcome).chain(&single.predictors).chain(&single.auxiliary).map(|c| c[i]);
            prop_assert!(found.map(|x| bits(f64::from(x))).eq(expected.iter().map(|x| bits(f64::from(*x as f32)))), "record {i}");
        }
    }
}
