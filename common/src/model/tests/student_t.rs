use super::*;

fn density(r: &Record, theta: &[f64]) -> f64 {
    let sigma = theta[3];
    let eta = theta[0] + r.predictors.iter().zip(&theta[1..3]).map(|(x, b)| x * b).sum::<f64>() + r.auxiliary[0] / 5.0;
    let z = (r.outcome - eta) / sigma;
    -sigma.ln() - 2.5 * (1.0 + z * z / 4.0).ln()
}

pub(super) fn case() -> Case {
    let text = "kind = \"student_t\"\ndf = 4\noutcome = \"y\"\npredictors = [\"a\", \"c\"]\noffset = \"o\"";
    let columns = "y = { min = 0, max = 10 }\na = { min = 20, max = 80 }\nc = { binary = true }\no = { min = -1, max = 1 }";
    let case = Case::new("student_t", text, columns, density);
    Case { scales: [0.1, 0.5, 1.0, 3.0], ..case }
}

#[test]
fn sigma_is_in_the_datas_units() {
    let model = case().model;
    assert_eq!(model.parameter_names(), ["intercept", "a", "c", "sigma"]);
    let original = model.to_original(&[0.0, 3.0, 0.0, 0.5]);
    assert_eq!((original[1], original[3]), (0.5, 2.5));
}
