#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::needless_range_loop)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::intervals::Followed;
use super::piecewise::PiecewiseModel;
use super::scores::SurvivalScores;
use crate::job::JobSpec;
use crate::model::Model;
use crate::model::registry::UNDECLARED;
use crate::schema::ModelSpec;
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::DIAGONAL;
use conclave_privacy::pass::{Block, GRADIENT_SCALE, ModelData};

/// Two intervals of years 0 to 4 and 4 to 10, a number, a 0/1 predictor, and an entry if asked.
fn model(entry: bool, cap: f64) -> PiecewiseModel {
    let entry = if entry { "entry = \"e\"\n" } else { "" };
    let job = format!(
        "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"piecewise_exponential\"\noutcome = \"t\"\nevent = \"d\"\n\
         {entry}cuts = [4]\nhazard_cap = {cap}\npredictors = [\"x\", \"g\"]\n[columns]\nt = {{ min = 0, max = 10 }}\nd = {{ binary = true }}\n\
         e = {{ min = 0, max = 8 }}\nx = {{ min = -1, max = 1 }}\ng = {{ binary = true }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    );
    let spec = JobSpec::parse(&job).unwrap();
    let ModelSpec::PiecewiseExponential(survival) = &spec.model else { panic!() };
    let column = |name: &str| spec.columns.get(name).cloned().unwrap_or(UNDECLARED);
    PiecewiseModel::new(spec.model.parameter_names(), survival, false, &column)
}

/// A record as its owner holds it.
#[derive(Clone, Copy, Debug)]
struct Record {
    time: f64,
    event: bool,
    entry: f64,
    x: f64,
    g: f64,
}

fn data(records: &[Record], entry: bool) -> ModelData {
    let column = |of: &dyn Fn(&Record) -> f64| records.iter().map(of).collect::<Vec<f64>>();
    let mut auxiliary = vec![column(&|r| f64::from(u8::from(r.event)))];
    if entry {
        auxiliary.push(column(&|r| r.entry));
    }
    ModelData {
        outcome: column(&|r| r.time / 5.0 - 1.0),
        predictors: vec![column(&|r| r.x), column(&|r| r.g)],
        auxiliary,
        persons: None,
    }
}

/// Records of the model itself, a part of which is censored, and whose entry is at random.
fn simulated(n: usize, theta: [f64; 4], entry: bool, seed: u64) -> Vec<Record> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut records = Vec::with_capacity(n);
    while records.len() < n {
        let (x, g) = (rng.random_range(-1.0..1.0), f64::from(u8::from(rng.random_bool(0.4))));
        let rate = |log: f64| (log + x * theta[2] + g * theta[3]).exp() / 10.0;
        let (first, second) = (rate(theta[0]), rate(theta[1]));
        let hazard = -rng.random_range(f64::MIN_POSITIVE..1.0_f64).ln();
        let at = if hazard < 4.0 * first { hazard / first } else { 4.0 + (hazard - 4.0 * first) / second };
        let end: f64 = rng.random_range(0.5..12.0_f64).min(10.0);
        let from = if entry { rng.random_range(0.0..6.0) } else { 0.0 };
        // Who is no longer at risk at the entry is never seen.
        if at.min(end) > from {
            records.push(Record { time: at.min(end), event: at <= end, entry: from, x, g });
        }
    }
    records
}

fn gradient(model: &PiecewiseModel, data: &ModelData, at: &[f64], frame: &[f64]) -> Vec<i64> {
    let scores = model.scores().unwrap();
    scores.gradient_sum(&Block::lent(data), at, Frame::new(frame, at.len()).unwrap()).open_components_for_test()
}

/// A frame that only divides by a length.
fn round(length: f64) -> Vec<f64> {
    (0..4).flat_map(|i| (0..4).map(move |j| if i == j { 1.0 / length } else { 0.0 })).chain([0.0; 4]).collect()
}

/// Without a record at the cap, the score is the slope of the log likelihood.
#[test]
fn a_score_is_the_slope_of_the_log_likelihood() {
    for entry in [false, true] {
        let (model, at) = (model(entry, 10.0), [0.2, -0.3, 0.4, -0.5]);
        let records: Vec<Record> =
            simulated(3000, [0.0, 0.3, 0.3, -0.2], entry, 1).into_iter().filter(|r| r.time < 10.0).collect();
        let data = data(&records, entry);
        let length = model.scores().unwrap().gradient_bound(&at)[0];
        let found = gradient(&model, &data, &at, &round(length));
        for j in 0..4 {
            let along = |by: f64| {
                let mut moved = at;
                moved[j] += by;
                model.log_likelihood(&data, &moved)
            };
            let slope = (along(1e-5) - along(-1e-5)) / 2e-5;
            let value = found[j] as f64 / GRADIENT_SCALE * length;
            assert!((value - slope).abs() < 1e-4 * slope.abs().max(1.0), "{entry} {j}: {value} {slope}");
        }
    }
}

/// The events and hazards of a capped follow-up, by arithmetic on one record at a time.
fn followed(model: &PiecewiseModel, record: &Record, at: &[f64; 4]) -> ([f64; 2], [f64; 2]) {
    let entry = if model.intervals.entry { record.entry } else { 0.0 };
    let (mut events, mut hazards, mut total) = ([0.0; 2], [0.0; 2], 0.0);
    for (k, (start, end)) in [(0.0, 4.0), (4.0, 10.0)].into_iter().enumerate() {
        let rate = (at[k] + record.x * at[2] + record.g * at[3]).exp() / 10.0;
        let exposure = (record.time.min(end) - entry.max(start)).max(0.0);
        hazards[k] = (rate * exposure).min(model.cap - f64::min(total, model.cap));
        total += rate * exposure;
        if record.event && exposure > 0.0 && record.time > start && record.time <= end && record.time < 10.0 {
            events[k] = 1.0;
        }
    }
    if total > model.cap { ([0.0; 2], hazards) } else { (events, hazards) }
}

/// The kernel's sums are those of single records, and the information is the mean of the hazards' and the events'.
#[test]
fn sums_are_those_of_single_records() {
    let at = [1.0, 0.4, 0.8, -0.6];
    for entry in [false, true] {
        let model = model(entry, 1.5);
        let records = simulated(2000, [0.5, 0.9, 0.6, 0.4], entry, 2);
        let scores = model.scores().unwrap();
        let (scales, length) = (scores.most_information(&at), scores.gradient_bound(&at)[0]);
        let (mut slopes, mut information) = ([0.0; 4], [[0.0; 4]; 4]);
        let mut cut = 0;
        for record in &records {
            let (events, hazards) = followed(&model, record, &at);
            cut += usize::from(hazards.iter().sum::<f64>() > 1.4999);
            for k in 0..2 {
                let mut v = [0.0, 0.0, record.x, record.g];
                v[k] = 1.0;
                // A 0/1 predictor counts as -1 and 1 in the information.
                let coded = [v[0], v[1], record.x, 2.0 * record.g - 1.0];
                for i in 0..4 {
                    slopes[i] += (events[k] - hazards[k]) * v[i];
                    (0..4).for_each(|j| information[i][j] += 0.5 * (events[k] + hazards[k]) * coded[i] * coded[j]);
                }
            }
        }
        assert!(cut > 50, "{cut}");
        let data = data(&records, entry);
        let found = gradient(&model, &data, &at, &round(length));
        for (found, expected) in found.iter().zip(slopes) {
            assert!((*found as f64 / GRADIENT_SCALE * length - expected).abs() < 2e-3, "{found} {expected}");
        }
        let triangle = scores.curvature_sum(&Block::lent(&data), &at, scales).open_components_for_test();
        let mut entries = triangle.iter();
        for i in 0..4 {
            for j in i..4 {
                let found = *entries.next().unwrap() as f64 / 2_f64.powi(32) * scales[0] / if i == j { DIAGONAL } else { 1.0 };
                assert!((found - information[i][j]).abs() < 0.3, "{entry} {i} {j}: {found} {}", information[i][j]);
            }
        }
    }
}

/// Follow-up that ends at a cap by another point leaves a score of expectation 0 at the truth: the greatest of 4 z values of 6 cases
/// is below 3 with probability .94 at random; these are fixed. Without the cap's censoring of events they exceed 20.
#[test]
fn the_cap_leaves_the_score_unbiased() {
    let truth = [0.3, 0.8, 0.7, 0.5];
    for entry in [false, true] {
        let records = simulated(200_000, truth, entry, 3);
        for (cap, off) in [(0.7, 0.6), (1.5, -0.6), (3.0, 0.6)] {
            let (model, at) = (model(entry, cap), truth.map(|t| t + off));
            let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
            for record in &records {
                let (events, hazards) = followed(&model, record, &at);
                for k in 0..2 {
                    let mut v = [0.0, 0.0, record.x, record.g];
                    v[k] = 1.0;
                    let log = |theta: &[f64; 4]| theta[k] + record.x * theta[2] + record.g * theta[3];
                    // The hazard at the truth over the same follow-up.
                    let hazard = hazards[k] * (log(&truth) - log(&at)).exp();
                    for j in 0..4 {
                        sums[j] += (events[k] - hazard) * v[j];
                        squares[j] += hazard * v[j] * v[j];
                    }
                }
            }
            let z: Vec<f64> = sums.iter().zip(squares).map(|(sum, square)| sum / square.sqrt()).collect();
            assert!(z.iter().all(|z| z.abs() < 3.0), "{entry} {cap} {off}: {z:?}");
        }
    }
}

/// The kernel's follow-up is that of the test above.
#[test]
fn the_kernel_follows_as_the_arithmetic_does() {
    for entry in [false, true] {
        let (model, at) = (model(entry, 1.5), [1.0, 0.5, 0.9, -0.8]);
        let mut records = simulated(200, [0.5, 0.9, 0.6, 0.4], entry, 4);
        // Ties at the cut, at the start and at the end, and an entry that is no earlier than the time.
        for (time, from) in [(4.0, 0.0), (0.0, 0.0), (10.0, 0.0), (3.0, 3.0), (5.0, 4.0), (2.0, 7.0)] {
            records.push(Record { time, event: true, entry: from, x: 0.5, g: 1.0 });
        }
        let data = data(&records, entry);
        let block = Block::lent(&data);
        let (mut tiles, mut room) = (block.tiles(256), Followed::new(2));
        while let Some(rows) = tiles.next_tile() {
            model.hazards((&at[..2], &at[2..]), model.cap).follow(&rows, &mut room);
            for (i, record) in records[rows.range()].iter().enumerate() {
                let (events, hazards) = followed(&model, record, &at);
                for k in 0..2 {
                    let found = (room.events[k].0[i], room.hazards[k].0[i]);
                    assert!(
                        found.0 == events[k] && (found.1 - hazards[k]).abs() < 1e-12,
                        "{record:?} {k} {found:?} {events:?} {hazards:?}"
                    );
                }
            }
        }
    }
}

/// An event at a cut is in the interval that the cut ends, whatever the rounding of scaled values, in double and in single precision.
#[test]
fn an_event_at_a_cut_belongs_to_the_interval_before_it() {
    for longest in [12_u32, 15, 60, 120, 3650] {
        for cut in 1..longest.min(400) {
            let job = format!(
                "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"auto\"\n[model]\nkind = \"piecewise_exponential\"\noutcome = \"t\"\nevent = \"d\"\n\
                 entry = \"e\"\ncuts = [{cut}]\n[columns]\nt = {{ min = 0, max = {longest} }}\nd = {{ binary = true }}\ne = {{ min = 0, max = {longest} }}\n\
                 [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            );
            let spec = JobSpec::parse(&job).unwrap();
            let ModelSpec::PiecewiseExponential(survival) = &spec.model else { panic!() };
            let column = |name: &str| spec.columns.get(name).cloned().unwrap_or(UNDECLARED);
            let model = PiecewiseModel::new(spec.model.parameter_names(), survival, false, &column);
            let scaled = spec.columns["t"].scale(f64::from(cut));
            for time in [scaled, f64::from(scaled as f32)] {
                // The second record enters at its time.
                let auxiliary = vec![vec![1.0; 2], vec![0.0, f64::from(cut)]];
                let data = ModelData { outcome: vec![time; 2], auxiliary, ..ModelData::default() };
                let block = Block::lent(&data);
                let (mut tiles, mut room) = (block.tiles(256), Followed::new(2));
                model.hazards((&[-5.0, -5.0], &[]), model.cap).follow(&tiles.next_tile().unwrap(), &mut room);
                assert_eq!([room.events[0].0[0], room.events[1].0[0]], [1.0, 0.0], "{cut} of {longest}");
                assert_eq!([room.events[0].0[1], room.events[1].0[1]], [0.0, 0.0], "{cut} of {longest}");
            }
        }
    }
}

#[test]
fn a_record_that_is_not_a_number_contributes_nothing() {
    let model = model(true, 1.5);
    let frame: Vec<f64> = (0..16).map(|i| f64::from(i) / 64.0).chain([0.25, -0.5, 0.0, 0.125]).collect();
    for missing in 0..5 {
        let value = |place: usize, value: f64| vec![if place == missing { f64::NAN } else { value }];
        let data = ModelData {
            outcome: value(0, 0.2),
            predictors: vec![value(1, 0.3), value(2, 1.0)],
            auxiliary: vec![value(3, 1.0), value(4, 1.0)],
            persons: None,
        };
        let shift = gradient(&model, &data, &[0.0; 4], &frame);
        assert_eq!(shift, [0.25, -0.5, 0.0, 0.125].map(|b| (b * GRADIENT_SCALE).round() as i64), "{missing}");
        let scores = model.scores().unwrap();
        assert_eq!(scores.curvature_sum(&Block::lent(&data), &[0.0; 4], [1.25, 1.0]).open_components_for_test(), [0; 10]);
    }
}

/// No record of the declared columns is much longer than the listed ones, in any frame.
#[test]
fn listed_extremes_are_extreme() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    for entry in [false, true] {
        let (model, at) = (model(entry, 1.5), [1.2, 0.7, 1.8, -0.9]);
        let listed = SurvivalScores { model: &model }.extremes(&at).unwrap();
        for _ in 0..20 {
            let rows: Vec<f64> = (0..16).map(|_| rng.random_range(-1.0..1.0)).collect();
            let length = |score: &[f64]| {
                rows.chunks(4).map(|row| row.iter().zip(score).map(|(a, s)| a * s).sum::<f64>().powi(2)).sum::<f64>().sqrt()
            };
            let most = listed.iter().map(|score| length(score)).fold(0.0, f64::max);
            for _ in 0..5000 {
                let (entry, time) = (rng.random_range(0.0..8.0), rng.random_range(0.0..10.0));
                let g = f64::from(u8::from(rng.random_bool(0.5)));
                let record = Record { time, event: rng.random_bool(0.5), entry, x: rng.random_range(-1.0..1.0), g };
                let (events, hazards) = followed(&model, &record, &at);
                let [a, b] = [0, 1].map(|k| events[k] - hazards[k]);
                let found = length(&[a, b, (a + b) * record.x, (a + b) * record.g]);
                assert!(found <= 1.02 * most, "{record:?} {found} {most}");
            }
        }
    }
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![-1.0..1.0_f64, Just(f64::NAN), Just(f64::INFINITY), -1e9..1e9_f64, Just(0.0), Just(1.0)]
}

proptest! {
    /// The charge bounds the contribution of any record, at any point, in any frame and scale.
    #[test]
    fn no_contribution_exceeds_its_charge(
        values in proptest::array::uniform5(any_number()),
        at in proptest::array::uniform4(-100.0..100.0_f64),
        frame in prop::collection::vec(-1e3..1e3_f64, 20),
        part in 1e-6..1e3_f64,
    ) {
        let [time, event, entry, x, g] = values.map(|value| vec![value]);
        let one = ModelData { outcome: time, predictors: vec![x, g], auxiliary: vec![event, entry], persons: None };
        let model = model(true, 1.5);
        let vector = gradient(&model, &one, &at, &frame);
        let squares: i128 = vector.iter().map(|x| i128::from(*x) * i128::from(*x)).sum();
        prop_assert!(squares <= i128::from(GRADIENT_UNITS) * i128::from(GRADIENT_UNITS), "{vector:?}");
        let scores = model.scores().unwrap();
        let triangle = scores.curvature_sum(&Block::lent(&one), &at, [part, 1.0]).open_components_for_test();
        let trace: f64 = [0, 4, 7, 9].iter().map(|entry| triangle[*entry] as f64 / DIAGONAL).sum();
        prop_assert!(trace <= 3.0 * 2_f64.powi(32), "{triangle:?}");
    }
}

/// 100,000 neighbours: in a frame that the listed records fill, two records' contributions are never farther apart than is charged, and some
/// are nearly as far.
#[test]
fn neighbours_move_a_sum_by_at_most_the_charge() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let (model, at) = (model(false, 1.5), [0.9, 0.4, 0.6, -0.5]);
    let listed = SurvivalScores { model: &model }.extremes(&at).unwrap();
    let longest = listed.iter().map(|score| score.iter().map(|s| s * s).sum::<f64>().sqrt()).fold(0.0, f64::max);
    let one = |rng: &mut ChaCha20Rng| {
        // Near the ends of intervals and of the columns more often.
        let time = *[rng.random_range(0.0..10.0), 0.001, 4.0, 4.001, 9.999].get(rng.random_range(0..5_usize)).unwrap();
        let x = *[rng.random_range(-1.0..1.0), -1.0, 1.0].get(rng.random_range(0..3_usize)).unwrap();
        let g = f64::from(u8::from(rng.random_bool(0.5)));
        let record = Record { time, event: rng.random_bool(0.5), entry: 0.0, x, g };
        gradient(&model, &data(&[record], false), &at, &round(longest))
    };
    let (mut farthest, mut before) = (0.0_f64, one(&mut rng));
    for _ in 0..100_000 {
        let next = one(&mut rng);
        let apart = before.iter().zip(&next).map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum::<f64>().sqrt();
        farthest = farthest.max(apart / GRADIENT_UNITS as f64);
        before = next;
    }
    assert!(farthest <= 2.0 && farthest > 1.4, "{farthest}");
}
