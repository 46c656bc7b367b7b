#![allow(clippy::unwrap_used)]
use crate::job::{Algorithm, JobSpec, Radius};
use crate::parameter::{Constraint, Prior};

fn job(model: &str, rest: &str) -> String {
    format!(
        "name = \"t\"\nalgorithm = \"augmentation\"\nparties = [\"a\", \"b\"]\n[model]\n{model}\n[columns]\n\
         c = {{ levels = [\"a\", \"b\"] }}\nu = {{ levels = [\"x\", \"y\", \"z\"] }}\nv = {{ binary = true }}\n\
         w = {{ min = 0, max = 9 }}\nodd = {{ levels = [\"x|a\", \"x\"] }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{rest}\n"
    )
}

const BAYES: &str = "kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"u\", \"v\"]";

#[test]
fn naive_bayes_has_its_parameters() {
    let spec = JobSpec::parse(&job(BAYES, "[prior]\nu = \"dirichlet(1, 2, 3)\"")).unwrap();
    assert_eq!(spec.algorithm, Algorithm::Augmentation);
    let names = spec.model.parameter_names();
    let given_a = ["u[x|a]", "u[y|a]", "u[z|a]"];
    assert_eq!(
        (&names[..2], &names[2..5], &names[8..]),
        (
            &["c[a]".into(), "c[b]".into()][..],
            &given_a.map(String::from)[..],
            &["v[0|a]", "v[1|a]", "v[0|b]", "v[1|b]"].map(String::from)[..]
        )
    );
    let sizes: Vec<usize> =
        spec.model.constraints().iter().map(|c| if let Constraint::Simplex { size } = c { *size } else { 0 }).collect();
    assert_eq!(sizes, [2, 2, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2]);
    let concentration =
        |at: usize| if let Prior::Dirichlet { concentration, .. } = spec.priors[at] { concentration } else { 0.0 };
    let found: Vec<f64> = (0..12).map(concentration).collect();
    assert_eq!(
        found,
        [2.0, 2.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 2.0],
        "2 unless written; one prior for all classes"
    );
    assert_eq!((spec.sampler.radius, spec.sampler.force), (Radius::Auto, false));
    assert_eq!(spec.model.columns(), ["c", "u", "v"]);
}

#[test]
fn chains_may_be_forced_and_started() {
    let coin = "kind = \"bernoulli\"\noutcome = \"v\"";
    let spec = JobSpec::parse(&job(coin, "[sampler]\nforce = true\nstart = { p = 0.2 }")).unwrap();
    assert_eq!((spec.sampler.start, spec.sampler.force), (Some(vec![0.2]), true));
    assert_eq!(JobSpec::parse(&job(coin, "")).unwrap().releases(), ["statistic"]);
    assert_eq!(JobSpec::parse(&job(BAYES, "")).unwrap().releases(), ["table"]);
}

/// Only a job that imputes records releases these sums: no other algorithm may ask for them.
#[test]
fn regressions_without_a_family_release_sums_of_products() {
    let (unit, centred) = ((-1.0, 1.0), (-0.5, 0.5));
    for (model, ranges) in [
        ("kind = \"logistic\"\noutcome = \"v\"\npredictors = [\"w\"]", vec![unit, (0.0, 1.0), centred, centred]),
        ("kind = \"linear\"\noutcome = \"w\"\npredictors = [\"z\"]", vec![unit, (0.0, 1.0), unit, unit, (0.0, 1.0)]),
    ] {
        let text = job(model, "").replace("w = {", "z = { min = 0, max = 1 }\nw = {");
        let spec = JobSpec::parse(&text).unwrap();
        let built = spec.build_model();
        assert_eq!(spec.releases(), ["statistic"]);
        assert_eq!(built.statistic().unwrap().ranges(), ranges, "{model}");
        assert!(built.exponential_family().is_none());
        assert_eq!((spec.algorithm_protocol(), spec.longest_message().queries), (11, ranges.len()));
        for other in ["penalty", "noisy-statistics"] {
            let spec = JobSpec::parse(&text.replace("\"augmentation\"", &format!("\"{other}\""))).unwrap();
            assert!(spec.build_model().statistic().is_none(), "{model} by {other}");
        }
        let family = JobSpec::parse(&text.replace("\"augmentation\"", "\"penalty-exp-family\"")).unwrap_err();
        assert!(family.message.contains("no exponential family"), "{family}");
    }
    let known = "kind = \"linear\"\noutcome = \"w\"\npredictors = []\nsd = 1.0";
    assert_eq!(JobSpec::parse(&job(known, "")).unwrap().algorithm_protocol(), 3, "an old job asks the same of a party");
}

#[test]
fn keys_that_do_not_apply_are_refused_by_name() {
    let cases = [
        (BAYES, "noise_sd = 1.0", "privacy.noise_sd", "epsilon alone sets the noise"),
        (BAYES, "clip = 1.0", "privacy.clip", "public ranges"),
        (BAYES, "clip_watch_share = 0.1", "privacy.clip_watch_share", "nothing is clipped"),
        (BAYES, "[sampler]\nproposal = { kind = \"guided\" }", "sampler.proposal", "impute"),
        (BAYES, "[sampler]\nstarts = []", "sampler.starts", "starting values are dispersed"),
        (BAYES, "[release]\nstages = \"auto\"", "release", "noisy-statistics"),
        ("kind = \"linear\"\noutcome = \"w\"\npredictors = [\"v\"]\nsd = 1.0", "", "algorithm", "jointly normal"),
        ("kind = \"linear\"\noutcome = \"w\"\npredictors = []\npower = 0.5", "", "model.power", "leave it out"),
        ("kind = \"logistic\"\noutcome = \"v\"\npredictors = [\"u\"]", "", "algorithm", "jointly normal"),
        (
            "kind = \"logistic\"\noutcome = \"v\"\npredictors = [\"w\"]\nincomplete_rows = true",
            "",
            "algorithm",
            "number of usable rows",
        ),
        ("kind = \"logistic\"\noutcome = \"w\"\npredictors = [\"v\"]", "", "columns.w", "binary"),
        ("kind = \"poisson\"\noutcome = \"w\"\npredictors = [\"w\"]", "", "model.predictors", "twice"),
        ("kind = \"student_t\"\ndf = 4\noutcome = \"w\"\npredictors = []", "", "algorithm", "`linear` and `logistic`"),
        (BAYES, "[sampler]\nlocate_share = 0.1", "sampler.locate_share", "one release"),
        (BAYES, "[sampler]\nrecords_guess = 10", "sampler.records_guess", "imputed"),
        ("kind = \"bernoulli\"\noutcome = \"v\"\npower = 0.5", "", "model.power", "leave it out"),
        ("kind = \"gaussian_mixture\"\noutcome = \"w\"\nsd = 1.0", "", "algorithm", "whole records"),
        ("kind = \"naive_bayes\"\noutcome = \"w\"\npredictors = [\"u\"]", "", "columns.w", "levels"),
        ("kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"w\"]", "", "columns.w", "feature `w`"),
        ("kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"u\", \"c\"]", "", "model.predictors", "twice"),
        ("kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = []", "", "model.predictors", "at least one"),
        ("kind = \"naive_bayes\"\noutcome = \"c\"", "", "model.predictors", "missing"),
        ("kind = \"naive_bayes\"\noutcome = \"c\"\npredictors = [\"none\"]", "", "columns.none", "no public bounds"),
        ("kind = \"naive_bayes\"\noutcome = \"odd\"\npredictors = [\"odd\"]", "", "model.predictors", "twice"),
    ];
    for (model, rest, key, word) in cases {
        let error = JobSpec::parse(&job(model, rest)).unwrap_err();
        assert!(error.key == key && error.message.contains(word), "{model} {rest}: {error}");
    }
    let coin = "kind = \"bernoulli\"\noutcome = \"v\"";
    let family = job(coin, "[sampler]\nforce = true").replace("augmentation", "penalty-exp-family");
    assert_eq!(JobSpec::parse(&family).unwrap_err().key, "sampler.force");
}

/// `x` given `a|x|a`, and `x|a` given `x|a`, would get the same name.
#[test]
fn names_of_parameters_are_distinct() {
    let text = job("kind = \"naive_bayes\"\noutcome = \"odd\"\npredictors = [\"twin\"]", "")
        .replace("odd = {", "twin = { levels = [\"1|x\", \"1\"] }\nodd = {")
        .replace("\"x|a\", \"x\"", "\"x|x\", \"x\"");
    let error = JobSpec::parse(&text).unwrap_err();
    assert!(error.key == "model.predictors" && error.message.contains("twin[1|x|x]"), "{error}");
}
