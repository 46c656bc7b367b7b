use super::*;

const COLUMNS: &str = "blood = { levels = [\"0\", \"A\", \"B\", \"AB\"] }";

pub(super) fn case() -> Case {
    let case = Case::new("multinomial", "kind = \"multinomial\"\noutcome = \"blood\"", COLUMNS, |r, theta| {
        theta[r.outcome as usize].ln()
    });
    Case { scales: [0.1, 1.0, 3.0, 8.0], ..case }
}

#[test]
fn one_probability_per_level() {
    let case = case();
    assert_eq!(case.model.parameter_names(), ["p[0]", "p[A]", "p[B]", "p[AB]"]);
    assert_eq!(case.spec.model.constraints(), [Constraint::Simplex { size: 4 }; 4]);
    assert_eq!(case.model.exponential_family().unwrap().ranges(), [(0.0, 1.0); 4]);
    assert_eq!(case.model.to_original(&[0.4, 0.3, 0.2, 0.1]), [0.4, 0.3, 0.2, 0.1]);
}

#[test]
fn a_value_outside_the_levels_adds_nothing() {
    let model = case().model;
    let (from, to) = ([0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.1, 0.2]);
    let k_t = Sensitivity::from_units(1 << 40).unwrap();
    let sum =
        |outcome: f64| reveal(model.lattice_sum(&ModelData { outcome: vec![outcome], ..ModelData::default() }, &from, &to, k_t));
    assert!([f64::NAN, -1.0, 0.5, 4.0, 1e300, f64::INFINITY].iter().all(|wrong| sum(*wrong) == 0));
    assert!(sum(0.0) < 0 && sum(3.0) > 0);
    // The same with a centre, which is subtracted from every record and added back, and for a statistic.
    let (centre, unlisted) = (model.centre(&from, &to), ModelData { outcome: vec![f64::NAN], ..ModelData::default() });
    let left = reveal(model.lattice_sums(&unlisted, &[Step { centre, ..Step::new(&from, &to, k_t) }]).pop().unwrap());
    assert_eq!(left, (-centre / conclave_privacy::mechanism::STEP).round_ties_even() as i64);
    assert!(model.half_range(&from, &to) >= centre.abs());
    let family = model.exponential_family().unwrap();
    assert!((0..4).all(|k| reveal(family.statistic_sum(&unlisted, k, 0.5, (0, 2))) == 0));
}

#[test]
fn the_outcome_has_levels() {
    let text = "name = \"m\"\nparties = [\"a\"]\nmodel = { kind = \"multinomial\", outcome = \"y\" }\n\
                columns = { y = { binary = true } }\nprivacy = { epsilon = 1.0, delta = 1e-6 }\n";
    let error = JobSpec::parse(text).unwrap_err();
    assert!(error.key == "columns.y" && error.message.contains("levels"), "{error}");
}
