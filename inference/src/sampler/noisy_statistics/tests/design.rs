#![allow(clippy::unwrap_used)]
use super::*;
use conclave_common::job::JobSpec;
use conclave_common::schema::ModelSpec;

/// Compares the moments of a design with an interaction of each kind to those of many uniform records.
#[test]
fn moments_are_those_of_records_that_fill_their_bounds() {
    let spec = JobSpec::parse(
        "name = \"d\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"u\", \"b\", \"w\", \"u:b\", \"u:w\"]\n\
         [columns]\ny = { binary = true }\nu = { min = 0, max = 10 }\nb = { binary = true }\nw = { levels = [\"p\", \"q\", \"r\"] }\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
    )
    .unwrap();
    let ModelSpec::Regression(regression) = &spec.model else { panic!("a regression") };
    for (case, filled, ones, levels) in [(Case::Best, 1.0, 0.5, [1.0 / 3.0; 3]), (Case::Worse, 0.2, 0.2, [0.8, 0.1, 0.1])] {
        let order = 1 + regression.design.features.len();
        let mut seen = Matrix::zeros(order);
        let places = 400;
        for place in 0..places {
            let u = filled * ((2 * place + 1) as f64 / places as f64 - 1.0);
            for (b, share_b) in [(0.0, 1.0 - ones), (1.0, ones)] {
                for (w, share_w) in levels.into_iter().enumerate() {
                    let (q, r) = (f64::from(u8::from(w == 1)), f64::from(u8::from(w == 2)));
                    let x = [1.0, u, b, q, r, u * b, u * q, u * r];
                    assert_eq!(x.len(), order);
                    seen = seen.plus(&Matrix::outer(&x, 1.0), share_b * share_w / f64::from(places));
                }
            }
        }
        let found = predictor_moments(&regression.design, &spec.columns, case);
        for (i, j) in (0..order).flat_map(|i| (0..order).map(move |j| (i, j))) {
            assert!((found[(i, j)] - seen[(i, j)]).abs() < 1e-5, "{case:?} ({i}, {j}): {} of {}", found[(i, j)], seen[(i, j)]);
        }
    }
}
