use super::*;

/// Three combinations with an intercept and two predictors.
fn rows() -> Vec<Vec<f64>> {
    vec![vec![1.0, -1.0, 0.0], vec![1.0, 1.0, 0.0], vec![1.0, 1.0, 1.0]]
}

/// Returns the matrix of errors of each released number by itself, with its standard deviation at an sd of 1.
fn errors(noise: &CellNoise) -> Vec<(f64, Matrix)> {
    let entries = [(0, 0), (1, 1), (2, 2), (0, 3), (1, 3), (2, 3), (3, 3)];
    let none = noise.matrix(&Matrix::zeros(4), Some(0.0));
    let of = |(a, b): (usize, usize)| {
        let one = Matrix::from_fn(4, |i, j| f64::from(u8::from((i, j) == (a, b) || (i, j) == (b, a))));
        (if a == b { 2.0_f64.sqrt() } else { 1.0 }, noise.matrix(&one, Some(0.0)).plus(&none, -1.0))
    };
    entries.into_iter().map(of).collect()
}

/// The covariance is that of the matrix's own linear map of independent errors, with and without a public number of records.
#[test]
fn the_covariance_is_that_of_the_released_errors() {
    let (v, w) = ([0.3, -1.2, 0.7, 1.0], [-0.9, 0.4, 2.0, 0.5]);
    for counted in [false, true] {
        let noise = CellNoise::new(&rows(), counted);
        let mut expected = Matrix::zeros(4);
        let mut squares = 0.0;
        for (sd, error) in errors(&noise) {
            let (a, b) = (error.apply(&v), error.apply(&w));
            expected = Matrix::from_fn(4, |i, j| expected[(i, j)] + sd * sd * a[i] * b[j]);
            squares += (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).map(|at| sd * sd * error[at] * error[at]).sum::<f64>();
        }
        let found = noise.covariance(&v, &w);
        assert!(found.entries().iter().zip(expected.entries()).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
        for at in [(0, 0), (1, 2)] {
            let (shared, variance) = noise.with_entry(&v, at);
            let entry = |i: usize| errors(&noise).iter().map(|(sd, e)| sd * sd * e.apply(&v)[i] * e[at]).sum::<f64>();
            assert!((0..4).all(|i| (shared[i] - entry(i)).abs() < 1e-12), "{shared:?}");
            let own: f64 = errors(&noise).iter().map(|(sd, e)| sd * sd * e[at] * e[at]).sum();
            assert!((variance - own).abs() < 1e-12, "{variance} {own}");
        }
        if !counted {
            // The last row is the longest, with three squares.
            let (all, one) = ((squares / 4.0_f64).sqrt(), 3.0 * 2.0_f64.sqrt());
            assert!((noise.beside_identity(&Matrix::identity(3)) - all.max(one)).abs() < 1e-12);
        }
    }
}

/// A released matrix becomes the predictors' own moments, and the count among them is the public one.
#[test]
fn combinations_become_predictors() {
    let released = Matrix::from_fn(4, |i, j| match (i.min(j), i.max(j)) {
        (3, 3) => 5.0,
        (cell, 3) => [1.5, -2.0, 0.25][cell],
        (a, b) if a == b => [10.0, 20.0, 7.0][a],
        _ => 0.0,
    });
    let counts = |shift: f64| [10.0 + shift, 20.0 + shift, 7.0 + shift];
    for (counted, shift) in [(false, 0.0), (true, 1.0)] {
        let matrix = CellNoise::new(&rows(), counted).matrix(&released, Some(40.0));
        let [a, b, c] = counts(shift);
        let expected = [[a + b + c, b + c - a, c], [b + c - a, a + b + c, c], [c, c, c]];
        for (i, row) in expected.iter().enumerate() {
            assert!(row.iter().enumerate().all(|(j, value)| (matrix[(i, j)] - value).abs() < 1e-12), "{matrix:?}");
        }
        assert_eq!([0, 1, 2, 3].map(|j| matrix[(3, j)]), [-0.25, -3.25, 0.25, 5.0]);
    }
}

/// Rows that are left out leave the others' noise as it was.
#[test]
fn a_part_has_its_own_noise() {
    let whole = CellNoise::new(&rows(), true);
    let part = whole.restricted(&[0, 2, 3]);
    let (v, w) = ([0.3, 0.7, 1.0], [-0.9, 2.0, 0.5]);
    let all = whole.covariance(&[v[0], 0.0, v[1], v[2]], &[w[0], 0.0, w[1], w[2]]);
    let kept = [0, 2, 3];
    let found = part.covariance(&v, &w);
    assert!((0..9).all(|k| (found[(k / 3, k % 3)] - all[(kept[k / 3], kept[k % 3])]).abs() < 1e-12));
}
