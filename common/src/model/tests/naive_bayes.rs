use super::*;

const COLUMNS: &str =
    "blood = { levels = [\"0\", \"A\", \"B\"] }\nward = { levels = [\"m\", \"s\", \"g\", \"i\"] }\nsmokes = { binary = true }";

pub(super) fn case() -> Case {
    let model = "kind = \"naive_bayes\"\noutcome = \"blood\"\npredictors = [\"ward\", \"smokes\"]";
    let case = Case::new("naive_bayes", model, COLUMNS, |r, theta| {
        let class = r.outcome as usize;
        let (ward, smokes) = (r.auxiliary[0] as usize, r.auxiliary[1] as usize);
        theta[class].ln() + theta[3 + 4 * class + ward].ln() + theta[3 + 12 + 2 * class + smokes].ln()
    });
    Case { scales: [0.1, 1.0, 3.0, 6.0], ..case }
}

#[test]
fn a_simplex_of_classes_and_one_for_each_row() {
    let case = case();
    assert_eq!(case.model.parameter_names().len(), 3 + 12 + 6);
    assert_eq!(case.model.parameter_names()[..5], ["blood[0]", "blood[A]", "blood[B]", "ward[m|0]", "ward[s|0]"]);
    assert_eq!(case.model.exponential_family().unwrap().ranges(), [(0.0, 1.0); 18]);
}

/// In the tables of a shard, every record is in one cell of each, and one with a missing value in none.
#[test]
fn tables_count_records() {
    let case = case();
    let family = case.model.exponential_family().unwrap();
    let columns = [vec![0.0, 2.0, 2.0, f64::NAN], vec![3.0, 1.0, 1.0, 0.0], vec![1.0, 0.0, 1.0, 1.0]];
    let mut given = columns.iter();
    let data = assemble(&case.spec.model, &case.spec.columns, None, |_, _| given.next().cloned()).unwrap();
    let counts: Vec<i64> = (0..18).map(|cell| reveal(family.statistic_sum(&data, cell, 1.0, (0, 1)))).collect();
    let mut expected = vec![0; 18];
    for cell in [3, 8 + 1, 8 + 1, 12 + 1, 12 + 4, 12 + 5] {
        expected[cell] += 1;
    }
    assert_eq!(counts, expected);
    let theta = case.theta(&mut ChaCha20Rng::seed_from_u64(1), 1.0);
    let natural: f64 = family.natural(&theta).iter().zip(&counts).map(|(phi, s)| phi * *s as f64).sum();
    assert!((natural - case.model.log_likelihood(&data, &theta)).abs() < 1e-12);
}
