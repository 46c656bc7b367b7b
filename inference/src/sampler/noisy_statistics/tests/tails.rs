//! Tests of a count's tails.

use super::*;

fn law(dispersion: f64) -> CountLaw {
    CountLaw { dispersion }
}

/// The probabilities of the cells are those of an enumeration over every count.
#[test]
fn shares_are_those_of_an_enumeration() {
    for dispersion in [0.0, 0.3, 1.0, 4.0] {
        for eta in [-6.0, -1.0, 0.3, 2.0, 3.5] {
            let mean: f64 = libm::exp(eta);
            let sd = (mean * (1.0 + dispersion * mean)).sqrt();
            let mut expected = vec![0.0; EDGES.len() + 1];
            let mut density =
                if dispersion == 0.0 { libm::exp(-mean) } else { libm::pow(1.0 + dispersion * mean, -dispersion.recip()) };
            for y in (0..40_000).map(f64::from) {
                let cell = EDGES.iter().filter(|edge| (y - mean) / sd >= **edge).count();
                expected[cell] += density;
                density *= mean * (1.0 + dispersion * y) / (1.0 + dispersion * mean) / (y + 1.0);
            }
            for (share, expected) in law(dispersion).cells(eta, &EDGES).iter().zip(expected) {
                assert!((share - expected).abs() < 1e-8, "{dispersion} {eta}: {share} {expected}");
            }
        }
    }
}

fn table(law: CountLaw) -> PredictorTable {
    PredictorTable::new(law, [-3.0, 3.0])
}

/// Counts without noise of records that are spread evenly over the table, and the numbers in the tails under their own law.
fn under(law: CountLaw, records: f64) -> (Counts, Vec<f64>) {
    let table = table(law);
    let cells = vec![records / 63.0; 65];
    let held = Counts {
        cells: cells.iter().enumerate().map(|(k, n)| if k % 64 == 0 { 0.0 } else { *n }).collect(),
        unusable: 0.0,
        sd: 1.0,
    };
    let mut counts = vec![0.0; EDGES.len() + 1];
    let steps = 4000;
    for step in 0..steps {
        let eta = -3.0 + 6.0 * (f64::from(step) + 0.5) / f64::from(steps);
        counts.iter_mut().zip(law.cells(eta, &EDGES)).for_each(|(sum, share)| *sum += records * share / f64::from(steps));
    }
    assert_eq!(held.cells.len(), table.informations().len() + 1);
    (held, counts)
}

/// The released tables of the model's own records show hardly any excess: the averages over a cell are close.
#[test]
fn the_expected_numbers_are_those_of_the_records() {
    for dispersion in [0.0, 0.5, 2.0] {
        let (law, records) = (law(dispersion), 20_000.0);
        let (held, counts) = under(law, records);
        let expected = Expected::new(law, &table(law), &held);
        for (expected, count) in expected.cells.iter().zip(&counts) {
            assert!((expected - count).abs() < 12.0, "{dispersion}: {expected} {count}");
        }
        let tails = Tails::new(&Counts { cells: counts, unusable: 0.0, sd: 5.0 }, &expected, records);
        assert_eq!(tails.bias(3.0), 0.0, "{dispersion}");
    }
}

/// Heavier tails move the answer by what the clip withholds, over the root of the number of records.
#[test]
fn heavier_tails_move_the_answer() {
    let (records, law) = (10_000.0, law(0.3));
    let (held, mut cells) = under(law, records);
    let expected = Expected::new(law, &table(law), &held);
    cells.copy_from_slice(&expected.cells);
    (cells[5], cells[6]) = (cells[5] + 300.0, cells[6] + 200.0);
    let tails = Tails::new(&Counts { cells, unusable: 0.0, sd: 10.0 }, &expected, records);
    let root = std::f64::consts::SQRT_2;
    for (clip, moved) in
        [(3.0, 300.0 * (3.0 * root - 3.0) + 200.0 * (6.0 * root - 3.0)), (6.0, 200.0 * (6.0 * root - 6.0)), (12.0, 0.0)]
    {
        assert!((tails.bias(clip) - moved / 100.0).abs() < 1e-9, "{clip}: {}", tails.bias(clip));
    }
}

/// Noise is no excess, a cell holds no more than the one before it, and one behind an empty one needs three sds.
#[test]
fn noise_is_no_excess() {
    let of = |counts: [f64; 4]| excess(counts.into_iter().map(|count| (count, 0.0)), 10.0);
    assert_eq!(of([9.0, 9.0, -9.0, 0.0]), [0.0; 4]);
    assert_eq!(of([50.0, 80.0, 11.0, 9.0]), [50.0, 50.0, 11.0, 0.0]);
    assert_eq!(of([5.0, 25.0, 35.0, 40.0]), [0.0, 0.0, 35.0, 35.0]);
    // The records' own scatter about their expectation is no excess either.
    assert_eq!(excess([(120.0, 100.0)].into_iter(), 18.0), [0.0]);
}

/// Small counts have no residual far below 0.
#[test]
fn nothing_lies_below_what_is_possible() {
    let (held, _) = under(law(0.0), 5000.0);
    let expected = Expected::new(law(0.0), &table(law(0.0)), &held);
    let counts = Counts { cells: vec![30.0, 30.0, 30.0, 300.0, 4000.0, 0.0, 0.0, 0.0, 0.0, 0.0], unusable: 0.0, sd: 10.0 };
    let tails = Tails::new(&counts, &expected, 5000.0);
    // The largest mean is 20: a residual is above -4.5.
    assert!(tails.excess[0][0] > 200.0 && tails.excess[0][1..] == [0.0; 3], "{tails:?}");
}
