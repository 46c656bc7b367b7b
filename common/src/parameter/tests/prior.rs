use statrs::distribution as reference;
use statrs::distribution::Continuous;

use crate::parameter::*;

#[test]
fn every_family_parses_and_prints() {
    for text in [
        "normal(0, 2.5)",
        "student_t(3, 0.5, 1)",
        "cauchy(-1, 2)",
        "half_normal(1)",
        "half_student_t(3, 1)",
        "half_cauchy(1.5)",
        "uniform(-1, 1)",
        "gamma(2, 3)",
        "inverse_gamma(2, 3)",
        "beta(0.5, 2)",
        "exponential(4)",
        "lognormal(0, 1)",
    ] {
        let spaced = text.replace('(', " ( ").replace(',', " ,") + " ";
        assert_eq!(Prior::parse(&spaced).unwrap().to_string(), text);
    }
    assert_eq!(Prior::parse_simplex("dirichlet(2)", 3), Prior::parse_simplex("dirichlet(2, 2, 2)", 3));
    assert_eq!(
        Prior::parse_simplex("dirichlet(1, 2, 4)", 3).unwrap(),
        [(1.0, 6.0), (2.0, 4.0), (4.0, 0.0)].map(|(concentration, after)| Prior::Dirichlet { concentration, after })
    );
}

#[test]
fn bad_text_names_the_fault() {
    for (text, word) in [
        ("normal(0)", "takes 2 (mean, sd) arguments, not 1"),
        ("norml(0, 1)", "the nearest is `normal`"),
        ("normal 0 1", "is not a prior"),
        ("normal(a, 1)", "is not a prior"),
        ("normal(0, 0)", "sd must be positive"),
        ("normal(0, -0.0)", "sd must be positive"),
        ("normal(nan, 1)", "within"),
        ("gamma(1, 1e300)", "within"),
        ("gamma(-1, 1)", "shape must be positive"),
        ("beta(1, 0)", "b must be positive"),
        ("student_t(0, 0, 1)", "df must be positive"),
        ("uniform(1, 1)", "min must be below max"),
        ("dirichlet(1, 1)", "beta(1, 1)"),
        ("dirichlet(1, 0)", "concentration must be positive"),
    ] {
        let error = Prior::parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
    for (text, word) in [("dirichlet(1, 2)", "one argument or 3"), ("beta(1, 1)", "write `dirichlet(1)`")] {
        let error = Prior::parse_simplex(text, 3).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

/// Compares differences of log densities with statrs; half densities are twice the whole ones, which differences do not show.
#[test]
fn densities_are_those_of_the_literature() {
    type Reference = Box<dyn Fn(f64) -> f64>;
    let t = |df, at, scale| -> Reference {
        let d = reference::StudentsT::new(at, scale, df).unwrap();
        Box::new(move |x| d.ln_pdf(x))
    };
    let normal = |mean, sd| -> Reference {
        let d = reference::Normal::new(mean, sd).unwrap();
        Box::new(move |x| d.ln_pdf(x))
    };
    let gamma = reference::Gamma::new(2.5, 3.0).unwrap();
    let inverse = reference::InverseGamma::new(2.5, 3.0).unwrap();
    let beta = reference::Beta::new(0.7, 2.5).unwrap();
    let exponential = reference::Exp::new(0.4).unwrap();
    let lognormal = reference::LogNormal::new(0.3, 0.8).unwrap();
    let cases: Vec<(&str, Reference)> = vec![
        ("normal(0.3, 1.7)", normal(0.3, 1.7)),
        ("half_normal(1.7)", normal(0.0, 1.7)),
        ("student_t(3, 0.2, 1.5)", t(3.0, 0.2, 1.5)),
        ("half_student_t(4, 1.5)", t(4.0, 0.0, 1.5)),
        ("cauchy(0.2, 1.5)", t(1.0, 0.2, 1.5)),
        ("half_cauchy(1.5)", t(1.0, 0.0, 1.5)),
        ("uniform(0, 1)", Box::new(|_| 0.0)),
        ("gamma(2.5, 3)", Box::new(move |x| gamma.ln_pdf(x))),
        ("inverse_gamma(2.5, 3)", Box::new(move |x| inverse.ln_pdf(x))),
        ("beta(0.7, 2.5)", Box::new(move |x| beta.ln_pdf(x))),
        ("exponential(0.4)", Box::new(move |x| exponential.ln_pdf(x))),
        ("lognormal(0.3, 0.8)", Box::new(move |x| lognormal.ln_pdf(x))),
    ];
    for (text, log_density) in cases {
        let prior = Prior::parse(text).unwrap();
        let at = |i: i32| f64::from(i) / 41.0;
        for i in 1..=40 {
            let (ours, theirs) = (prior.log_density(at(i)) - prior.log_density(0.5), log_density(at(i)) - log_density(0.5));
            assert!((ours - theirs).abs() < 1e-12, "{text} at {}: {ours} against {theirs}", at(i));
        }
    }
}

#[test]
fn a_dirichlet_adds_up() {
    let parts = Prior::parse_simplex("dirichlet(1.5, 2, 0.5)", 3).unwrap();
    let log_density = |x: [f64; 3]| parts.iter().zip(x).map(|(p, x)| p.log_density(x)).sum::<f64>();
    let exact = |x: [f64; 3]| 0.5 * x[0].ln() + x[1].ln() - 0.5 * x[2].ln();
    let (x, y) = ([0.2, 0.3, 0.5], [0.6, 0.1, 0.3]);
    assert!((log_density(x) - log_density(y) - exact(x) + exact(y)).abs() < 1e-14);
}

#[test]
fn nothing_is_dense_outside_the_support() {
    for text in ["half_normal(1)", "gamma(2, 1)", "inverse_gamma(2, 1)", "exponential(1)", "lognormal(0, 1)", "half_cauchy(1)"] {
        assert_eq!(Prior::parse(text).unwrap().log_density(-1e-9), f64::NEG_INFINITY, "{text}");
    }
    assert_eq!(Prior::parse("beta(1, 1)").unwrap().log_density(1.5), f64::NEG_INFINITY);
    assert_eq!(Prior::parse("inverse_gamma(2, 1)").unwrap().log_density(0.0), f64::NEG_INFINITY);
    assert_eq!(Prior::parse("lognormal(0, 1)").unwrap().log_density(0.0), f64::NEG_INFINITY);
    assert_eq!(Prior::parse("uniform(-2, 3)").unwrap().log_density(3.5), f64::NEG_INFINITY);
    assert_eq!(Prior::parse("beta(1, 1)").unwrap().log_density(0.0), 0.0);
    assert_eq!(Prior::parse("normal(0, 1)").unwrap().log_density(f64::NAN), f64::NEG_INFINITY);
}

/// Compares centre and precision on the unconstrained scale with differences of log density plus Jacobian.
#[test]
fn centres_and_precisions_are_those_of_the_unconstrained_density() {
    use crate::parameter::Transform;
    use Constraint::{Positive, Real, UnitInterval};
    for (text, constraint) in [
        ("normal(0.3, 1.7)", Real),
        ("student_t(3, 0.2, 1.5)", Real),
        ("cauchy(0.2, 1.5)", Real),
        ("half_normal(1.7)", Positive),
        ("half_student_t(4, 1.5)", Positive),
        ("half_cauchy(1.5)", Positive),
        ("gamma(2.5, 3)", Positive),
        ("inverse_gamma(2.5, 3)", Positive),
        ("exponential(0.4)", Positive),
        ("lognormal(0.3, 0.8)", Positive),
        ("beta(0.7, 2.5)", UnitInterval),
    ] {
        let prior = Prior::parse(text).unwrap();
        let transform = Transform::new(&[constraint]);
        let f = |u: f64| prior.log_density(transform.constrain(&[u])[0]) + transform.log_jacobian(&[u]);
        let (u, h) = (transform.unconstrain(&[prior.location()])[0], 1e-4);
        let slope = (f(u + h) - f(u - h)) / (2.0 * h);
        let precision = -(f(u + h) - 2.0 * f(u) + f(u - h)) / (h * h);
        assert!(slope.abs() < 1e-6, "{text}: slope {slope}");
        assert!((precision - prior.precision(constraint)).abs() < 1e-5, "{text}: {precision}");
        let scale = prior.scale(constraint);
        assert!(scale.is_finite() && scale > 0.0);
    }
}

/// The log density of the result is the power of the prior's, up to a constant, for every family.
#[test]
fn a_prior_to_a_power_is_a_prior() {
    for (text, power) in [
        ("normal(0.3, 1.7)", 0.1),
        ("student_t(30, 0.2, 1.5)", 0.1),
        ("cauchy(0.2, 1.5)", 0.6),
        ("half_normal(1.7)", 0.1),
        ("half_student_t(30, 1.5)", 0.1),
        ("half_cauchy(1.5)", 0.6),
        ("uniform(0.1, 0.9)", 0.1),
        ("gamma(2.5, 3)", 0.1),
        ("gamma(0.5, 3)", 0.1),
        ("inverse_gamma(2.5, 3)", 0.4),
        ("exponential(0.4)", 0.1),
        ("lognormal(0.3, 0.8)", 0.1),
        ("beta(0.7, 2.5)", 0.1),
    ] {
        let prior = Prior::parse(text).unwrap();
        let raised = Prior::to_the_power(&[prior], power).unwrap()[0];
        let difference = |x: f64| raised.log_density(x) - power * prior.log_density(x);
        let constant = difference(0.5);
        for x in [0.15, 0.3, 0.7, 0.85] {
            assert!((difference(x) - constant).abs() < 1e-12, "{text}: {} at {x}", difference(x) - constant);
        }
        assert_eq!(Prior::to_the_power(&[prior], 1.0).unwrap()[0].log_density(0.3), raised_by_one(text).log_density(0.3));
    }
    // A component of a Dirichlet prior holds the sum of those after it.
    let simplex = Prior::dirichlet(&[1.0, 3.0, 0.5]);
    let normal = Prior::parse("normal(0, 2)").unwrap();
    let raised = Prior::to_the_power(&[vec![normal], simplex.clone(), simplex].concat(), 0.5).unwrap();
    assert_eq!(raised[1..4], Prior::dirichlet(&[1.0, 2.0, 0.75]));
    assert_eq!(raised[4..], raised[1..4]);
    assert!(matches!(raised[0], Prior::Normal { mean: 0.0, sd } if (sd - 8.0_f64.sqrt()).abs() < 1e-12), "{}", raised[0]);
    // Heavy tails to a small power have no finite integral.
    for text in ["cauchy(0, 1)", "half_cauchy(1)", "student_t(1, 0, 1)", "half_student_t(1, 1)", "inverse_gamma(1, 1)"] {
        assert_eq!(Prior::to_the_power(&[normal, Prior::parse(text).unwrap()], 0.5), Err(1), "{text}");
    }
}

/// Returns a prior to the power 1: the Student form of a Cauchy prior, else the prior itself.
fn raised_by_one(text: &str) -> Prior {
    match Prior::parse(text).unwrap() {
        Prior::Cauchy { location, scale } => Prior::StudentT { df: 1.0, location, scale },
        Prior::HalfCauchy { scale } => Prior::HalfStudentT { df: 1.0, scale },
        other => other,
    }
}
