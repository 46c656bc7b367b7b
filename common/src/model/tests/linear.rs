use super::*;

const AGE: ColumnSpec = ColumnSpec::Numeric { min: 20.0, max: 80.0 };
const COLUMNS: &str = "y = { min = 0, max = 10 }\na = { min = 20, max = 80 }\nb = { min = 0, max = 1 }\nc = { binary = true }\n\
    w = { levels = [\"p\", \"q\", \"r\"] }\no = { min = -2, max = 4 }";

fn density(r: &Record, theta: &[f64], sigma: f64) -> f64 {
    // An offset is in the outcome's units, 5 of which are a half width.
    let offset = r.auxiliary.first().map_or(0.0, |o| o / 5.0);
    let eta = offset + theta[0] + r.predictors.iter().zip(&theta[1..]).map(|(x, b)| x * b).sum::<f64>();
    -sigma.ln() - (r.outcome - eta).powi(2) / (2.0 * sigma * sigma)
}

fn text(predictors: &str, more: &str) -> String {
    format!("kind = \"linear\"\noutcome = \"y\"\npredictors = [{predictors}]\n{more}")
}

fn known() -> Case {
    Case::new("linear, sd known", &text("\"a\", \"b\", \"c\"", "sd = 2.0"), COLUMNS, |r, theta| density(r, theta, 0.4))
}

/// A case with levels, an interaction and an offset.
fn wide() -> Case {
    let model = text("\"a\", \"w\", \"a:w\"", "sd = 2.0\noffset = \"o\"");
    let case = Case::new("linear with levels", &model, COLUMNS, |r, theta| density(r, theta, 0.4));
    // The other terms of an indicator that is 1 are bounded as if it could be 0.
    Case { tight: 0..1, ..case }
}

fn unknown() -> Case {
    let case = Case::new("linear", &text("\"a\", \"b\", \"c\"", ""), COLUMNS, |r, theta| density(r, &theta[..4], theta[4]));
    Case { scales: [0.1, 0.5, 1.0, 3.0], ..case }
}

pub(super) fn cases() -> [Case; 3] {
    [known(), wide(), unknown()]
}

#[test]
fn the_centre_shrinks_what_one_record_contributes() {
    let model = known().model;
    let (from, to) = ([0.8, 0.0, 0.0, 0.0], [0.81, 0.0, 0.0, 0.0]);
    // A step of the intercept: Delta / v (1 + 0.805) without a centre, Delta / v with one.
    assert!((model.bound(&from, &to) - 0.01 * 1.805 / 0.16).abs() < 1e-9);
    assert!((model.half_range(&from, &to) - 0.01 / 0.16).abs() < 1e-9);
    assert!((model.centre(&from, &to) + 0.01 * 0.805 / 0.16).abs() < 1e-9);
}

#[test]
fn a_joint_steps_bound_is_near_the_supremum_too() {
    // The step and the residuals depend on different directions: the product of the two ranges would be nearly four times the
    // supremum.
    let model = known().model;
    let (from, to) = ([0.0, 4.0, -6.0, 0.0], [0.0, 5.0, -5.0, 0.0]);
    let grid = (0..=20).map(|i| f64::from(i) / 10.0 - 1.0);
    let ratio = |y: f64, a: f64, b: f64| {
        let record = Record { outcome: y, predictors: vec![a, b, 0.0], auxiliary: Vec::new() };
        (density(&record, &to, 0.4) - density(&record, &from, 0.4)).abs()
    };
    let all = grid.clone().flat_map(|a| grid.clone().map(move |b| (a, b)));
    let greatest = all.map(|(a, b)| ratio(1.0, a, b).max(ratio(-1.0, a, b))).fold(0.0, f64::max);
    let bound = model.bound(&from, &to);
    assert!(greatest <= bound && bound <= 1.5 * greatest, "{greatest} {bound}");
}

#[test]
fn parameters_are_reported_in_the_datas_units() {
    let model = wide().model;
    let theta = [0.5, -1.2, 2.0, 0.7, 0.3, -0.4];
    let original = model.to_original(&theta);
    let (a, q, r) = (33.0, 0.0, 1.0);
    let x = AGE.scale(a);
    let scaled = theta[0] + theta[1] * x + theta[2] * q + theta[3] * r + theta[4] * x * q + theta[5] * x * r;
    let raw = original[0] + original[1] * a + original[2] * q + original[3] * r + original[4] * a * q + original[5] * a * r;
    assert!((5.0 + 5.0 * scaled - raw).abs() < 1e-12);
    assert_eq!(unknown().model.to_original(&[0.0, 0.0, 0.0, 0.0, 0.2])[4], 1.0);
}

#[test]
fn a_record_with_an_unlisted_level_adds_nothing() {
    let case = wide();
    let mut rng = ChaCha20Rng::seed_from_u64(41);
    let rows: Vec<Record> = (0..600).map(|_| case.record(&mut rng)).collect();
    let lost = case.assembled(&[0.3, 0.5, f64::NAN, 0.1]);
    assert!(lost.outcome.is_nan() && lost.predictors.iter().chain(&lost.auxiliary).all(|x| x.is_nan()));
    let more: Vec<Record> = rows[..300].iter().chain([&lost]).chain(&rows[300..]).cloned().collect();
    let (from, to) = case.step(&mut rng);
    let k_t = Sensitivity::from_units(1 << 40).unwrap();
    let sum = |rows: &[Record]| reveal(case.model.lattice_sum(&shard(rows), &from, &to, k_t));
    assert_eq!(sum(&rows), sum(&more));
    // The receiver adds back the centre subtracted from it, as for every record.
    let centre = case.model.centre(&from, &to);
    let centred = |rows: &[Record]| {
        let step = Step { centre, ..Step::new(&from, &to, k_t) };
        reveal(case.model.lattice_sums(&shard(rows), &[step]).pop().unwrap())
    };
    assert!(centre != 0.0 && case.model.half_range(&from, &to) >= centre.abs());
    assert_eq!(centred(&more) - centred(&rows), (-centre / conclave_privacy::mechanism::STEP).round_ties_even() as i64);
    let plain = |rows: &[Record]| case.model.log_likelihood(&shard(rows), &to);
    assert_eq!(plain(&rows), plain(&more));
    let family = case.model.exponential_family().unwrap();
    for (j, (low, high)) in family.ranges().into_iter().enumerate() {
        let limits = ((low * 1e6).floor() as i64, (high * 1e6).ceil() as i64);
        let sum = |rows: &[Record]| reveal(family.statistic_sum(&shard(rows), j, 1e-6, limits));
        assert_eq!(sum(&rows), sum(&more), "component {j}");
    }
}
