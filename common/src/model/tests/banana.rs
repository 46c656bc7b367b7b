use super::*;

const MODEL: &str = "kind = \"banana\"\noutcome = \"y1\"\nsecond_outcome = \"y2\"\na = 20.0\ntau1 = 0.0005\ntau2 = 0.0004";
const COLUMNS: &str = "y1 = { min = -300, max = 300 }\ny2 = { min = -400, max = 400 }";

pub(super) fn case() -> Case {
    let case = Case::with("banana", MODEL, COLUMNS, "", |r, theta| {
        let (first, second) = (300.0 * r.outcome, 400.0 * r.auxiliary[0]);
        let mean = theta[1] + 20.0 * theta[0] * theta[0];
        -0.5 * 0.0005 * (first - theta[0]).powi(2) - 0.5 * 0.0004 * (second - mean).powi(2)
    });
    Case { scales: [0.1, 1.0, 3.0, 10.0], ..case }
}

/// Without a clip its ratios have the bound of the declared columns; a job's own clip replaces that bound, so that its effect can
/// be studied.
#[test]
fn a_clip_replaces_its_bound() {
    let of = |privacy: &str| {
        let text = format!(
            "name = \"b\"\nparties = [\"a\"]\n[model]\n{MODEL}\n[columns]\n{COLUMNS}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{privacy}\n"
        );
        let model = JobSpec::parse(&text).unwrap().build_model();
        (model.bound(&[0.0, 0.0], &[1.0, 0.0]), model.centre(&[0.0, 0.0], &[1.0, 0.0]))
    };
    // tau_1 |300| + tau_2 20 |400| and their constants, -tau_1 / 2 - tau_2 20^2 / 2.
    for none in ["", "clip = \"auto\""] {
        let (bound, centre) = of(none);
        assert!((bound - 3.43025).abs() < 1e-6 && (centre + 0.08025).abs() < 1e-9, "{bound} {centre}");
    }
    assert_eq!(of("clip = 0.5"), (f64::INFINITY, 0.0));
}

#[test]
fn known_constants_are_checked() {
    let fault = |from: &str, to: &str| {
        let text = format!(
            "name = \"b\"\nparties = [\"a\"]\n[model]\n{}\n[columns]\n{COLUMNS}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\nclip = 1.0\n",
            MODEL.replace(from, to)
        );
        JobSpec::parse(&text).unwrap_err().key
    };
    assert_eq!(fault("tau1 = 0.0005", "tau1 = 0.0"), "model.tau1");
    assert_eq!(fault("tau2 = 0.0004", "tau2 = inf"), "model.tau2");
    assert_eq!(fault("a = 20.0\n", "a = nan\n"), "model.a");
    assert_eq!(fault("a = 20.0\n", "a = 1e-300\n"), "model.a");
    assert_eq!(fault("a = 20.0\n", ""), "model.a");
    assert_eq!(fault("second_outcome = \"y2\"\n", ""), "model.second_outcome");
    assert_eq!(fault("second_outcome = \"y2\"\n", "second_outcome = \"y1\"\n"), "model.second_outcome");
}

/// Algorithms that assume one local normal posterior are refused, with the key that selects them.
#[test]
fn algorithms_for_a_normal_posterior_are_refused() {
    let fault = |algorithm: &str, sampler: &str| {
        let text = format!(
            "name = \"b\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\n{MODEL}\n[columns]\n{COLUMNS}\n[sampler]\n{sampler}\n[privacy]\n\
             epsilon = 1.0\ndelta = 1e-6\n"
        );
        JobSpec::parse(&text).err().map(|error| error.key)
    };
    for algorithm in ["noisy-statistics", "sgld", "sghmc", "sgnht", "sgfs"] {
        assert_eq!(fault(algorithm, "").as_deref(), Some("algorithm"), "{algorithm}");
    }
    assert_eq!(fault("hmc", "test = \"none\"").as_deref(), Some("sampler.test"));
    for (algorithm, sampler) in
        [("hmc", ""), ("hmc", "friction = 0"), ("penalty", ""), ("penalty", "locate = \"gradients\""), ("barker", "")]
    {
        assert_eq!(fault(algorithm, sampler), None, "{algorithm} {sampler}");
    }
}
