use super::*;

fn spec() -> JobSpec {
    job_with(
        "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]",
        "y = { binary = true }\nx = { min = 0, max = 2 }",
        "[parameters]\nintercept = { by = \"party\" }\nx = { by = \"party\" }",
    )
}

/// Values of a draw: intercept and x at their means, then each at party a, at party b, and its sd.
fn draws(count: usize) -> Vec<Vec<f64>> {
    vec![vec![-0.5, 0.8, -1.0, 0.1, 0.6, 1.5, 0.2, 0.4]; count]
}

fn at(site: Site<'_>, count: usize) -> Summary {
    let spec = spec();
    assert_eq!(spec.draw_names(), ["intercept", "x", "intercept[a]", "intercept[b]", "intercept.sd", "x[a]", "x[b]", "x.sd"]);
    let posterior = Posterior::new(&spec, &chain(&draws(count)), site).unwrap();
    let rows = rows(&spec, table(&["x"], &[&["2"]]));
    Predictor::new(&spec, &[]).unwrap().expected(&posterior, &rows, Level::DEFAULT)[0][0]
}

#[test]
fn a_prediction_is_at_a_party_or_at_the_mean_over_them() {
    assert!(close(at(Site::Mean, 2).mean, logistic(-0.5 + 0.8)));
    assert!(close(at(Site::Party("a"), 2).mean, logistic(-1.0 + 1.5)));
    assert!(close(at(Site::Party("b"), 2).mean, logistic(0.1 + 0.2)));
    let fault = |spec: &JobSpec, draws: &[Vec<f64>], site| Posterior::new(spec, &chain(draws), site).unwrap_err().to_string();
    assert!(fault(&spec(), &draws(1), Site::Party("c")).contains("no party `c`; it has a, b"));
    assert!(fault(&study(), &[vec![0.0; 5]], Site::Party("a")).contains("share every parameter"));
    assert!(fault(&study(), &[vec![0.0; 5]], Site::New { seed: 1 }).contains("share every parameter"));
    assert!(fault(&study(), &[vec![0.0; 4]], Site::Mean).contains("do not fit"));
}

/// With x = 2, which is coded 1, the linear predictor of a new party is N(0.3, 0.6² + 0.4²): its quantiles are known, and those of the
/// probability are their logistic. Four Monte Carlo errors of a 5% quantile of 20,000 normal draws are 0.06 sds.
#[test]
fn a_new_party_is_drawn_from_the_parties_law() {
    let new = at(Site::New { seed: 9 }, 20_000);
    let sd = (0.6_f64 * 0.6 + 0.4 * 0.4).sqrt();
    let logit = |p: f64| (p / (1.0 - p)).ln();
    for (found, z) in [(new.low, -1.644_853_6), (new.median, 0.0), (new.high, 1.644_853_6)] {
        assert!(((logit(found) - 0.3) / sd - z).abs() < 0.06, "{found} {z}");
    }
    assert_eq!(new, at(Site::New { seed: 9 }, 20_000));
    assert_ne!(new, at(Site::New { seed: 10 }, 20_000));
}
