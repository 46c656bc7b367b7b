use super::*;
use crate::sampler::matrix::dot;

fn near(a: &Matrix, b: &Matrix) {
    assert!(a.entries().iter().zip(b.entries()).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?} {b:?}");
}

const V: [f64; 4] = [0.3, -1.2, 0.7, 1.0];
const W: [f64; 4] = [-0.9, 0.4, 2.0, 0.5];

#[test]
fn with_all_entries_released_it_is_the_pages_formula() {
    let noise = MomentsNoise::new(4, 3.0, &[]);
    let inner = dot(&V, &W);
    let expected = Matrix::from_fn(4, |i, j| 9.0 * (W[i] * V[j] + if i == j { inner } else { 0.0 }));
    near(&noise.covariance(&V, &W), &expected);
    assert!((noise.quadratic_variance(&W) - 18.0 * dot(&W, &W).powi(2)).abs() < 1e-9);
}

#[test]
fn an_exact_count_takes_its_term_off() {
    let noise = MomentsNoise::new(4, 3.0, &[Tie::Known { at: (0, 0) }]);
    let mut expected = MomentsNoise::new(4, 3.0, &[]).covariance(&W, &W);
    expected[(0, 0)] -= 18.0 * W[0] * W[0];
    near(&noise.covariance(&W, &W), &expected);
    assert_eq!(noise.variance((0, 0)), 0.0);
    assert_eq!(noise.covariance_with_entry(&W, (0, 0)), [0.0; 4]);
}

#[test]
fn tied_entries_share_their_noise() {
    // Column 1 is ±1: its square is the count. Column 2 is an indicator: its square is its sum. The ties include one to a tied
    // entry, one to a constant, and a cycle.
    let ties = [
        Tie::Same { at: (1, 1), source: (0, 0) },
        Tie::Same { at: (2, 2), source: (2, 0) },
        Tie::Known { at: (2, 1) },
        Tie::Same { at: (3, 3), source: (1, 1) },
    ];
    let noise = MomentsNoise::new(4, 2.0, &ties);
    let root = |a: usize, b: usize| match sorted((a, b)) {
        (1, 2) => None,
        (1, 1) | (3, 3) => Some((0, 0)),
        (2, 2) => Some((0, 2)),
        other => Some(other),
    };
    let joint = |left: (usize, usize), right: (usize, usize)| match (root(left.0, left.1), root(right.0, right.1)) {
        (Some(a), Some(b)) if a == b => 4.0 * if a.0 == a.1 { 2.0 } else { 1.0 },
        _ => 0.0,
    };
    let sum = |i: usize, j: usize| (0..16).map(|k| V[k / 4] * W[k % 4] * joint((i, k / 4), (j, k % 4))).sum();
    near(&noise.covariance(&V, &W), &Matrix::from_fn(4, sum));
    let with = noise.covariance_with_entry(&V, (1, 1));
    assert!((0..4).all(|i| (with[i] - (0..4).map(|a| V[a] * joint((i, a), (0, 0))).sum::<f64>()).abs() < 1e-12));
    assert_eq!((noise.variance((3, 3)), noise.variance((2, 1)), noise.variance((2, 2))), (8.0, 0.0, 4.0));
    let circle = [Tie::Same { at: (0, 0), source: (1, 1) }, Tie::Same { at: (1, 1), source: (0, 0) }];
    assert_eq!(MomentsNoise::new(2, 2.0, &circle).variance((0, 0)), 0.0);
}

#[test]
fn a_part_of_a_matrix_has_the_noise_of_that_part() {
    // Column 1 is ±1; columns 2 and 3 are indicators that are never both 1.
    let ties = [
        Tie::Same { at: (1, 1), source: (0, 0) },
        Tie::Same { at: (2, 2), source: (2, 0) },
        Tie::Same { at: (3, 3), source: (0, 3) },
        Tie::Known { at: (2, 3) },
    ];
    let whole = MomentsNoise::new(5, 2.0, &ties);
    for kept in [vec![0, 1, 4], vec![0, 2, 4], vec![0, 3, 1, 4], vec![1, 2, 4], vec![0, 1, 2, 3, 4]] {
        let part = whole.restricted(&kept);
        // Directions without the omitted rows behave as in the whole matrix.
        let inside =
            |part: &[f64]| (0..5).map(|row| kept.iter().position(|k| *k == row).map_or(0.0, |at| part[at])).collect::<Vec<f64>>();
        let (v, w): (Vec<f64>, Vec<f64>) = (0..kept.len()).map(|k| (0.3 - k as f64, 1.0 + 0.7 * k as f64)).unzip();
        let all = whole.covariance(&inside(&v), &inside(&w));
        near(&part.covariance(&v, &w), &Matrix::from_fn(kept.len(), |i, j| all[(kept[i], kept[j])]));
        let count = whole.covariance_with_entry(&inside(&v), (kept[0], kept[0]));
        let counted = part.covariance_with_entry(&v, (0, 0));
        assert!((0..kept.len()).all(|i| (counted[i] - count[kept[i]]).abs() < 1e-12));
    }
    assert_eq!(whole.restricted(&[0, 1, 2, 3, 4]), whole);
}

impl MomentsNoise {
    /// Returns `Var(w' E w)`.
    pub(crate) fn quadratic_variance(&self, w: &[f64]) -> f64 {
        dot(w, &self.covariance(w, w).apply(w))
    }
}
