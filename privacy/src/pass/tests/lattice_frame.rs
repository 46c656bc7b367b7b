#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::pass::ModelData;
use crate::pass::bounded_vectors::BoundedVectors;
use crate::pass::shard::Block;
use crate::pass::small_tile::SMALL_TILE;

const D: usize = 5;

fn frame(numbers: &[f64]) -> Frame<'_> {
    Frame::new(numbers, D).unwrap()
}

fn squares(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum()
}

proptest! {
    /// The computed length of a record is never shorter than the true one, and longer only by rounding, also in a rank-deficient
    /// frame.
    #[test]
    fn the_triangle_measures_lengths_as_the_frame_does(
        entries in prop::collection::vec(-1.0..1.0_f64, D * D),
        scale in prop::sample::select(vec![1e-20, 1e-3, 1.0, 1e12]),
        twice in any::<bool>(),
        x in prop::collection::vec(-1.0..1.0_f64, D),
    ) {
        let mut numbers: Vec<f64> = entries.iter().map(|x| x * scale).chain([0.0; D]).collect();
        if twice {
            numbers.copy_within(0..D, D);
        }
        let lattice = LatticeFrame::new(frame(&numbers), D);
        let (rows, _) = lattice.rows();
        let dot = |row: &[f64]| row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>();
        let measured: f64 = rows.iter().map(|row| dot(row).powi(2)).sum();
        let image = lattice.whole.rows.entries.chunks(D).map(|row| dot(&row.iter().map(|a| *a as f64 * power(-ENTRY_DIGITS)).collect::<Vec<_>>()));
        let length: f64 = image.map(|x| x * x).sum();
        prop_assert!(measured >= length * (1.0 - 1e-13), "{measured} {length}");
        prop_assert!(measured <= length + 1e-12 * D as f64 * squares(&rows.concat()), "{measured} {length}");
    }

    /// Along any weights, an integer vector is within the stated distance of the real one, and the bound is nearly attained.
    #[test]
    fn rounding_is_within_its_bound(
        entries in prop::collection::vec(-1.0..1.0_f64, D * D),
        weights in prop::collection::vec(-1.0..1.0_f64, D),
        x in prop::collection::vec(-1.0..1.0_f64, D - 1),
        slope in -1.0..1.0_f64,
        own in -1.0..1.0_f64,
    ) {
        let numbers: Vec<f64> = entries.iter().copied().chain([0.0; D]).collect();
        let lattice = LatticeFrame::new(frame(&numbers), D - 1);
        let weight = |slope: f64, scale: f64| (slope * scale).round_ties_even().clamp(-MOST_WEIGHT, MOST_WEIGHT);
        let (w, o) = (weight(slope, lattice.weights[0]), weight(own, lattice.weights[1]));
        prop_assume!(w.abs().max(o.abs()) < MOST_WEIGHT);
        let along = lattice.whole.along(&weights);
        let rounded = |x: f64| (x * power(DIGITS)).round_ties_even() * power(-DIGITS);
        let found: f64 = x.iter().zip(&along.predictors).map(|(x, v)| w * v * rounded(*x)).sum::<f64>() + o * along.own;
        let component = |k: usize| {
            let row = &numbers[k * D..(k + 1) * D];
            slope * row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>() + own * row[D - 1]
        };
        let wanted: f64 = (0..D).map(|k| weights[k] * GRADIENT_SCALE * component(k)).sum();
        prop_assert!((found - wanted).abs() <= lattice.whole.rounding(&weights) + 1e-6, "{found} {wanted} {}", lattice.whole.rounding(&weights));
    }
}

/// A frame without finite numbers, or with extreme ones, is 0; so is such a shift, and one that is too long is shortened.
#[test]
fn invalid_frames_are_zero() {
    for entry in [0.0, 1e40, 1e-40, f64::NAN, f64::INFINITY] {
        for shift in [0.0, 3.0, f64::NAN] {
            let mut numbers = vec![0.25; D * (D + 1)];
            numbers[0] = entry;
            if entry == 1e-40 {
                numbers[..D * D].fill(entry);
            }
            numbers[D * D..].fill(shift);
            let lattice = LatticeFrame::new(frame(&numbers), D);
            let nothing = !entry.is_finite() || !(1e-30..1e30).contains(&entry) && entry != 0.0;
            assert_eq!(lattice.whole.rows.entries.iter().all(|a| *a == 0), nothing, "{entry}");
            let length =
                squares(&lattice.whole.shift.iter().map(|b| *b as f64 * power(-28 - FRACTION as i32)).collect::<Vec<_>>()).sqrt();
            let expected = if shift == 3.0 { GRADIENT_SCALE / GRADIENT_UNITS as f64 } else { 0.0 };
            assert!((length - expected).abs() < 1e-9 && lattice.room > 0.0, "{shift}: {length}");
        }
    }
}

/// The length of a vector whose product with the shift has only weights that become 0. Without their bound in the slack, the
/// vector is longer than permitted by 2.3 lattice units for one of these weights.
#[test]
fn weights_that_become_zero_count_in_the_length() {
    let (d, coefficients) = (128, 127);
    let most = GRADIENT_UNITS as f64 - (d as f64).sqrt() - 2.0;
    let predictors = (0..coefficients).map(|j| vec![if j == 0 { 0.0 } else { 1.0 }]).collect();
    let data = ModelData { outcome: vec![0.0], predictors, ..ModelData::default() };
    let block = Block::lent(&data);
    for k in (232..252).step_by(2) {
        let mut numbers = vec![0.0; d * (d + 1)];
        numbers[1..coefficients].fill(power(-25) * 0.875);
        numbers[coefficients] = 0.5 + f64::from(k) * power(-30);
        numbers[d] = 0.5;
        numbers[d * d] = -1.0;
        let lattice = LatticeFrame::new(Frame::new(&numbers, d).unwrap(), coefficients);
        let scales = lattice.weights;
        let vectors = BoundedVectors::new(block.arch(), lattice, false);
        for weight in [3000.0, 3250.0, 3500.0, 3750.0, 4000.0] {
            let (mut room, mut sums) = (vectors.room(), vectors.sums());
            let mut tiles = block.tiles(SMALL_TILE);
            let rows = tiles.next_tile().unwrap();
            room.slopes[0].0[0] = weight / scales[0];
            room.slopes[1].0[0] = 4_194_304.0 / scales[1];
            vectors.hold(&rows, &mut room);
            vectors.add(&rows, &room, &mut sums, None);
            let vector: Vec<f64> = vectors.total(&sums).iter().map(|fine| *fine as f64 * power(-(FRACTION as i32))).collect();
            let length = squares(&vector).sqrt();
            assert!(length <= most && length > most - 500.0, "{k}, {weight}: {}", length - most);
        }
    }
}
