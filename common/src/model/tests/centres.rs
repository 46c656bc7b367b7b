//! The public centre: its savings where the log density is concave, and its restitution for unusable rows.

use super::*;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::STEP;

const COUNTS: &str = "y = { min = 3, max = 20 }\na = { min = 20, max = 80 }\nc = { binary = true }\n\
    w = { levels = [\"p\", \"q\", \"r\"] }\ndays = { min = 0.5, max = 3 }\no = { min = -1, max = 0.5 }";

fn linear_predictor(r: &Record, coefficients: &[f64]) -> f64 {
    r.auxiliary.iter().sum::<f64>() + r.predictors.iter().zip(coefficients).map(|(x, b)| x * b).sum::<f64>()
}

/// Returns a count from 3 to 20.
fn count(r: &Record) -> f64 {
    (11.5 + 8.5 * r.outcome).round_ties_even()
}

/// Returns regressions with concave log densities beyond those in [`cases`]: minimal counts above 0, levels, interactions,
/// offsets, no intercept.
fn concave() -> Vec<Case> {
    let text = |kind: &str, more: &str| {
        format!("kind = \"{kind}\"\noutcome = \"y\"\npredictors = [\"a\", \"w\", \"c\", \"a:c\"]\nintercept = false\n{more}")
    };
    let binary = COUNTS.replace("y = { min = 3, max = 20 }", "y = { binary = true }");
    let more = [
        Case::new("logistic without intercept", &text("logistic", "offset = \"o\""), &binary, |r, theta| {
            let eta = linear_predictor(r, theta);
            r.outcome * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
        }),
        Case::new("poisson without intercept", &text("poisson", "exposure = \"days\""), COUNTS, |r, theta| {
            let eta = linear_predictor(r, theta);
            count(r) * eta - eta.exp()
        }),
        Case::new("negative_binomial with levels", &text("negative_binomial", "offset = \"o\""), COUNTS, |r, theta| {
            let (coefficients, a) = theta.split_at(theta.len() - 1);
            let (y, a, eta) = (count(r), a[0], linear_predictor(r, coefficients));
            let rising: f64 = (0..y as u32).map(|i| (a * f64::from(i)).ln_1p()).sum();
            let log_a_mu = a.ln() + eta;
            rising + y * eta - (y + 1.0 / a) * (log_a_mu.max(0.0) + (-log_a_mu.abs()).exp().ln_1p())
        }),
    ];
    let ours = [logistic::case(), poisson::case(), negative_binomial::case(), tempered::logistic()];
    let more = more.into_iter().map(|case| Case { scales: [0.1, 0.5, 1.0, 3.0], ..case });
    more.chain(ours).chain(logistic::wide()).collect()
}

/// Returns all models under test, and more that may have inert rows.
fn all() -> Vec<Case> {
    let mut all = cases();
    all.extend(concave().into_iter().take(3));
    all.extend(logistic::wide().map(|case| {
        let mut spec = case.spec.clone();
        spec.power = 0.3;
        Case { name: "tempered logistic with levels", model: spec.build_model(), spec, ..case }
    }));
    all.extend(cases().iter().chain(&concave()).map(incomplete));
    all
}

/// Returns the case with rows any of which may be inert.
fn incomplete(case: &Case) -> Case {
    let spec = JobSpec { incomplete_rows: true, ..case.spec.clone() };
    Case {
        name: case.name,
        model: spec.build_model(),
        spec,
        density: case.density,
        scales: case.scales,
        tight: case.tight.clone(),
    }
}

/// Returns true where a row may be inert: the job permits it, or the row has a value outside its column's levels. Any other value
/// is a number.
fn may_be_inert(case: &Case) -> bool {
    case.spec.spares_inert_rows()
}

/// Returns the sum over `rows` in lattice units, with its public constants, at a party that protects rows against replacement.
fn centred(case: &Case, rows: &[Record], from: &[f64], to: &[f64]) -> (i64, Contribution) {
    let part = contribution(&*case.model, &case.spec.privacy, PrivacyUnit::row(Adjacency::Replace), from, to).unwrap();
    let step = Step { centre: part.centre, ..Step::new(from, to, part.sensitivity) };
    (reveal(case.model.lattice_sums(&shard(rows), &[step]).pop().unwrap()), part)
}

/// At every corner of the columns and for records inside, the ratio less the centre stays within the half range, for small and
/// large steps.
#[test]
fn no_record_of_a_concave_model_exceeds_the_half_range() {
    let mut rng = ChaCha20Rng::seed_from_u64(61);
    for case in concave() {
        let corners = case.corners();
        for _ in 0..200_000 / corners.len() {
            let (from, to) = case.step(&mut rng);
            let model = &case.model;
            let (centre, half, bound) = (model.centre(&from, &to), model.half_range(&from, &to), model.bound(&from, &to));
            assert!(half <= bound * (1.0 + 1e-9), "{}: {half} {bound}", case.name);
            // 0 is within the range where a row may be inert, and wherever only the predictor moves; it need not be for every
            // record.
            let alone = model.parameter_names().last().is_none_or(|name| name != "dispersion");
            assert!(!(may_be_inert(&case) || alone) || centre.abs() <= half, "{}: {centre} {half}", case.name);
            assert_eq!(half.to_bits(), model.half_range(&to, &from).to_bits());
            assert_eq!(centre, -model.centre(&to, &from));
            let inside: Vec<Record> = (0..20).map(|_| case.record(&mut rng)).collect();
            for record in corners.iter().chain(&inside) {
                let off = (case.ratio(record, &from, &to) - centre).abs();
                let slack = case.rounding(record, &from, &to) + 1e-12;
                assert!(off <= half + slack, "{}: {record:?} {from:?} {to:?}: {off} beyond {half}", case.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_centre_of_a_concave_model_is_odd_and_its_half_range_holds(seed in any::<u64>()) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for case in concave() {
            let (from, to) = case.step(&mut rng);
            let (centre, half) = (case.model.centre(&from, &to), case.model.half_range(&from, &to));
            prop_assert_eq!(centre, -case.model.centre(&to, &from), "{}", case.name);
            prop_assert_eq!(half.to_bits(), case.model.half_range(&to, &from).to_bits(), "{}", case.name);
            for _ in 0..50 {
                let record = case.record(&mut rng);
                let off = (case.ratio(&record, &from, &to) - centre).abs();
                let slack = case.rounding(&record, &from, &to) + 1e-12;
                prop_assert!(off <= half + slack, "{}: {:?} {:?} {:?}: {} beyond {}", case.name, record, from, to, off, half);
            }
        }
    }
}

/// A row with a value outside the levels is inert. The centre subtracted from it is within the clamp, so that adding the centre
/// back for every row gives exactly the total without it, up to the rounding of the centre itself.
#[test]
fn an_unusable_row_adds_nothing_with_a_centre_either() {
    let mut rng = ChaCha20Rng::seed_from_u64(62);
    for case in all() {
        let missing = case.filled(&mut || f64::NAN);
        for _ in 0..200 {
            let (from, to) = case.step(&mut rng);
            let Ok(_) = contribution(&*case.model, &case.spec.privacy, PrivacyUnit::row(Adjacency::Replace), &from, &to) else {
                // Without a bound there is no such query.
                continue;
            };
            let (alone, part) = centred(&case, std::slice::from_ref(&missing), &from, &to);
            let clamp = part.sensitivity.units() as i64;
            assert!(alone.abs() <= clamp, "{}", case.name);
            if !may_be_inert(&case) {
                continue;
            }
            assert!(part.centre.abs() <= clamp as f64 * STEP, "{}: {part:?}", case.name);
            assert_eq!(alone, (-part.centre / STEP).round_ties_even() as i64, "{}: {part:?}", case.name);
            // It is not cut among other rows either, at any position.
            let rows: Vec<Record> = (0..30).map(|_| case.record(&mut rng)).collect();
            let more: Vec<Record> = rows[..11].iter().chain([&missing]).chain(&rows[11..]).cloned().collect();
            assert_eq!(centred(&case, &more, &from, &to).0 - centred(&case, &rows, &from, &to).0, alone, "{}", case.name);
        }
    }
}

/// Without room for it an inert row would contribute: where every record's log ratio has the same sign, given the declarations,
/// the centre exceeds the clamp. A job that admits incomplete rows makes the room, and changes nothing else.
#[test]
fn incomplete_rows_have_room_where_every_ratio_has_the_same_sign() {
    let (mut rng, unit) = (ChaCha20Rng::seed_from_u64(66), PrivacyUnit::row(Adjacency::Replace));
    let mut cut = std::collections::BTreeSet::new();
    for bare in cases().into_iter().chain(concave()) {
        let (roomy, missing) = (incomplete(&bare), bare.filled(&mut || f64::NAN));
        for _ in 0..400 {
            let (from, to) = bare.step(&mut rng);
            let part = |case: &Case| contribution(&*case.model, &case.spec.privacy, unit, &from, &to);
            let (Ok(less), Ok(more)) = (part(&bare), part(&roomy)) else { continue };
            let ratios = bare.model.ratios(&from, &to);
            if ratios == ratios.or_none() {
                assert_eq!(less, more, "{}: there was room", bare.name);
            }
            let added_back = |part: Contribution| (-part.centre / STEP).round_ties_even() as i64;
            let (alone, _) = centred(&bare, std::slice::from_ref(&missing), &from, &to);
            if alone != added_back(less) {
                cut.insert(bare.name);
            }
            let (alone, _) = centred(&roomy, std::slice::from_ref(&missing), &from, &to);
            assert_eq!(alone, added_back(more), "{}: {from:?} {to:?}", bare.name);
        }
    }
    for name in ["gaussian_mean", "linear, sd known"] {
        assert!(cut.contains(name), "an inert row added something to no step of {name}: {cut:?}");
    }
}

/// An inert row adds 0 to every component of a statistic, and nothing to components counted once per record.
#[test]
fn incomplete_rows_add_nothing_to_a_statistic() {
    let mut rng = ChaCha20Rng::seed_from_u64(67);
    let mut seen = 0;
    for case in cases().iter().map(incomplete) {
        // A model that counts every row is not a family here.
        let Some(family) = case.model.exponential_family() else { continue };
        seen += 1;
        let rows: Vec<Record> = (0..20).map(|_| case.record(&mut rng)).collect();
        let more: Vec<Record> = rows.iter().cloned().chain([case.filled(&mut || f64::NAN)]).collect();
        for (j, (low, high)) in family.ranges().into_iter().enumerate() {
            let limits = ((low / STEP).floor() as i64, (high / STEP).ceil() as i64);
            let sum = |rows: &[Record]| reveal(family.statistic_sum(&shard(rows), j, STEP, limits));
            assert_eq!(sum(&rows), sum(&more), "{}, component {j}", case.name);
        }
        let theta = case.theta(&mut rng, 1.0);
        assert_eq!(family.log_normaliser(&theta), 0.0, "{}", case.name);
    }
    assert!(seen >= 3, "{seen} families");
}

/// Replacing any record by any other, including an inert one, moves a centred sum by at most the charged sensitivity.
#[test]
fn a_centred_sum_moves_by_at_most_its_sensitivity() {
    let mut rng = ChaCha20Rng::seed_from_u64(63);
    for case in all() {
        for _ in 0..100 {
            let (from, to) = case.step(&mut rng);
            let unit = PrivacyUnit::row(Adjacency::Replace);
            if contribution(&*case.model, &case.spec.privacy, unit, &from, &to).is_err() {
                continue;
            }
            let mut rows: Vec<Record> = (0..5).map(|_| case.record(&mut rng)).collect();
            let (before, part) = centred(&case, &rows, &from, &to);
            for other in [case.record(&mut rng), case.any_record(&mut rng), case.filled(&mut || f64::NAN)] {
                rows[2] = other;
                let moved = centred(&case, &rows, &from, &to).0.abs_diff(before);
                assert!(moved <= 2 * part.sensitivity.units(), "{}: {moved} {part:?}", case.name);
            }
        }
    }
}

/// Under add-or-remove adjacency membership in the data is protected, and for persons only the limit of their records is public.
#[test]
fn units_without_a_public_count_get_no_centre() {
    let mut rng = ChaCha20Rng::seed_from_u64(64);
    for case in concave() {
        let (from, to) = case.step(&mut rng);
        let others = [
            PrivacyUnit::row(Adjacency::AddRemove),
            PrivacyUnit::person(Adjacency::Replace, 3).unwrap(),
            PrivacyUnit::person(Adjacency::AddRemove, 3).unwrap(),
        ];
        for unit in others {
            let Ok(part) = contribution(&*case.model, &case.spec.privacy, unit, &from, &to) else { continue };
            let per_record = conclave_privacy::mechanism::sensitivity(case.model.bound(&from, &to), None).unwrap();
            assert_eq!((part.centre, part.sensitivity), (0.0, unit.sensitivity(per_record).unwrap()), "{}", case.name);
        }
    }
}

/// Returns the cost of a step of one coefficient with the centre relative to that without: `(half range / bound)^2`.
fn share(case: &Case, theta: &[f64], moved: usize, by: f64) -> f64 {
    let mut to = theta.to_vec();
    to[moved] += by;
    (case.model.half_range(theta, &to) / case.model.bound(theta, &to)).powi(2)
}

/// A step up moves the predictor of every record equally, or of every record whose indicator is 1. The ratio rises most where the
/// outcome is greatest and the predictor low, and falls most at the other end; the bound is the larger of the two, the half range
/// their mean.
#[test]
fn the_centre_saves_what_was_computed_for_it() {
    let numeric =
        |k: usize| (1..=k).map(|i| format!("x{i} = {{ min = -1, max = 1 }}\n")).collect::<String>() + "c = { binary = true }\n";
    let job = |kind: &str, predictors: &str, outcome: &str, k: usize, more: &str| {
        let model = format!("kind = \"{kind}\"\noutcome = \"y\"\npredictors = [{predictors}, \"c\"]\n{more}");
        Case::new("", &model, &format!("y = {outcome}\ne = {{ min = 0.5, max = 3 }}\n{}", numeric(k)), |_, _| f64::NAN)
    };
    let (two, four) = ("\"x1\", \"x2\"", "\"x1\", \"x2\", \"x3\", \"x4\"");
    let counts = "{ min = 0, max = 20 }";
    let logistic = job("logistic", four, "{ binary = true }", 4, "");
    let poisson = job("poisson", two, counts, 2, "exposure = \"e\"");
    let negative_binomial = job("negative_binomial", two, counts, 2, "exposure = \"e\"");
    let rows: [(&Case, &[f64], usize, f64, f64); 3] = [
        (&logistic, &[-1.0, 0.5, -0.3, 0.8, 0.2, 0.0], 5, 0.0008, 0.75),
        (&poisson, &[0.3, 0.4, -0.2, 0.0], 3, 0.0003, 0.47),
        (&negative_binomial, &[0.3, 0.4, -0.2, 0.0, 0.5], 3, 0.0004, 0.30),
    ];
    for (case, theta, indicator, by, expected) in rows {
        for moved in [0, indicator] {
            for by in [by, -by] {
                let found = share(case, theta, moved, by);
                assert!((found - expected).abs() < 0.01, "{moved} {by}: {found}, not {expected}");
            }
        }
        // A numeric predictor moves equally far up and down.
        assert!((share(case, theta, 1, by) - 1.0).abs() < 1e-9 && case.model.centre(theta, theta) == 0.0);
    }
}

/// A party sums the ratios less the centre, on the lattice.
#[test]
fn kernels_of_concave_models_subtract_the_centre() {
    let mut rng = ChaCha20Rng::seed_from_u64(65);
    for case in concave() {
        for _ in 0..50 {
            let (from, to) = (case.theta(&mut rng, 0.5), case.theta(&mut rng, 0.5));
            let record = case.record(&mut rng);
            let (found, part) = centred(&case, std::slice::from_ref(&record), &from, &to);
            let units = part.sensitivity.units() as f64;
            // Not-a-number counts as 0.
            let off = (case.ratio(&record, &from, &to) - part.centre) / STEP;
            let expected = off.clamp(-units, units).round_ties_even() as i64;
            assert!(part.centre != 0.0 && found.abs_diff(expected) <= 1, "{}: {found} {expected} {part:?}", case.name);
        }
    }
}

/// A clip tighter than the half range limits each record's ratio around 0: it cuts the ratios beyond it, and an inert row adds
/// nothing. A wider clip changes nothing.
#[test]
fn a_clip_that_cuts_subtracts_no_centre() {
    let mut rng = ChaCha20Rng::seed_from_u64(65);
    let unit = PrivacyUnit::row(Adjacency::Replace);
    let mut bitten = 0;
    for mut case in all() {
        let auto = case.spec.privacy.clone();
        for share in [0.1, 0.9, 0.999_999, 1.000_001, 2.0].repeat(4) {
            let (from, to) = case.step(&mut rng);
            let (bound, half) = (case.model.bound(&from, &to), case.model.half_range(&from, &to));
            // A step for which the lattice resolves such shares.
            let clip = share * half;
            if !(1e-2..1e5).contains(&clip) {
                continue;
            }
            case.spec.privacy.clip = Some(crate::job::ClipRule::PerRecord(clip));
            let privacy = &case.spec.privacy;
            let part = contribution(&*case.model, privacy, unit, &from, &to).unwrap();
            let back = contribution(&*case.model, privacy, unit, &to, &from).unwrap();
            assert_eq!((part.centre, part.sensitivity), (-back.centre, back.sensitivity), "{}", case.name);
            assert_eq!(crate::query::centre(&*case.model, privacy, &from, &to), part.centre, "{}", case.name);
            if share > 1.0 {
                assert_eq!(Ok(part), contribution(&*case.model, &auto, unit, &from, &to), "{}", case.name);
                continue;
            }
            bitten += u32::from(case.model.centre(&from, &to) != 0.0);
            let expected = conclave_privacy::mechanism::sensitivity(bound, Some(clip)).unwrap();
            assert_eq!((part.centre, part.sensitivity), (0.0, expected), "{}", case.name);
            let missing = case.filled(&mut || f64::NAN);
            if may_be_inert(&case) {
                assert_eq!(centred(&case, std::slice::from_ref(&missing), &from, &to).0, 0, "{}", case.name);
            }
            // A tempered model is not repeated here: its base model covers its records.
            for _ in 0..if case.spec.power == 1.0 { 20 } else { 0 } {
                let record = case.record(&mut rng);
                let (ratio, slack) = (case.ratio(&record, &from, &to), case.rounding(&record, &from, &to) + 2.0 * STEP);
                let found = centred(&case, std::slice::from_ref(&record), &from, &to).0 as f64 * STEP;
                assert!((found - ratio.clamp(-clip, clip)).abs() <= slack, "{}: {found} {ratio} {clip}", case.name);
            }
        }
    }
    assert!(bitten > 20, "{bitten} steps had a centre to lose");
}
