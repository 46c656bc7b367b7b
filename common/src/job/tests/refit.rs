#![allow(clippy::unwrap_used)]
use super::*;
use crate::parameter::Prior;

const JOB: &str = r#"
name = "stay"
algorithm = "auto"
parties = ["a", "b"]
[model]
kind = "linear"
outcome = "days"
predictors = ["age", "ward", "age:ward", "smoker"]
[columns]
days = { min = 0, max = 60 }
age = { min = 20, max = 80 }
smoker = { binary = true }
ward = { levels = ["a", "b", "c"] }
[prior]
default = "normal(0, 2)"
"ward[b]" = "normal(0, 0.5)"
[parameters]
"age:ward[c]" = { min = -3, max = 3 }
smoker = { min = -2 }
[sampler]
chains = 3
draws = 40
seed = 7
[sampler.start]
intercept = 0
age = 0
"ward[b]" = 0
"ward[c]" = 0
"age:ward[b]" = 0
"age:ward[c]" = 0
smoker = 0
sigma = 1
[plan]
records = 100
[privacy]
epsilon = 3.0
delta = 1e-6
"#;

const NOTHING: Refit<'static> = Refit { priors: &[], drop: &[], without: &[], draws: None, chains: None, seed: None };

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

fn normal(mean: f64, sd: f64) -> Prior {
    Prior::Normal { mean, sd }
}

#[test]
fn a_refit_without_changes_is_the_job_except_for_its_start() {
    let (old, new) = (JobSpec::parse(JOB).unwrap(), NOTHING.of(JOB).unwrap());
    let mut same = new.clone();
    (same.sampler.start, same.sampler.locate_share, same.plan) = (old.sampler.start.clone(), 0.0, old.plan.clone());
    assert_eq!(same, old);
    assert!(new.sampler.start.is_none() && new.plan.is_none());
}

#[test]
fn a_predictor_is_dropped_with_all_keys_of_its_coefficients() {
    let drop = ["ward", "age:ward"].map(str::to_owned);
    let new = Refit { drop: &drop, draws: Some(9), chains: Some(2), seed: Some(8), ..NOTHING }.of(JOB).unwrap();
    assert_eq!(new.model.parameter_names(), ["intercept", "age", "smoker", "sigma"]);
    assert_eq!(new.support[2].min, -2.0);
    assert_eq!((new.sampler.draws, new.sampler.chains, new.sampler.seed), (9, 2, 8));
    // An interaction is a predictor of its own.
    let one = Refit { drop: &drop[..1], ..NOTHING }.of(JOB).unwrap();
    assert_eq!(one.model.parameter_names(), ["intercept", "age", "age:ward[b]", "age:ward[c]", "smoker", "sigma"]);
    assert_eq!(one.support[3].max, 3.0);
    let all = ["age", "ward", "age:ward", "smoker", "age"].map(str::to_owned);
    assert_eq!(Refit { drop: &all, ..NOTHING }.of(JOB).unwrap().model.parameter_names(), ["intercept", "sigma"]);
}

#[test]
fn priors_take_the_place_of_the_jobs_own() {
    let priors = owned(&[("default", "normal(1, 3)"), ("age", " normal(0, 0.1) ")]);
    let new = Refit { priors: &priors, ..NOTHING }.of(JOB).unwrap();
    assert_eq!(new.priors[..4], [normal(1.0, 3.0), normal(0.0, 0.1), normal(0.0, 0.5), normal(1.0, 3.0)]);
    // The prior of probabilities is under one of several keys.
    let colours = "name = \"c\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"multinomial\"\noutcome = \"c\"\n[columns]\n\
                   c = { levels = [\"r\", \"g\"] }\n[prior]\np = \"dirichlet(2)\"\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
    let of_first = owned(&[("p[r]", "dirichlet(5)")]);
    let new = Refit { priors: &of_first, ..NOTHING }.of(colours).unwrap();
    assert_eq!(new.priors, Prior::dirichlet(&[5.0, 5.0]));
}

#[test]
fn an_impossible_refit_names_possible_ones() {
    let refused = |priors: &[(&str, &str)], drop: &[&str]| {
        let (priors, drop) = (owned(priors), drop.iter().map(|d| (*d).to_owned()).collect::<Vec<_>>());
        Refit { priors: &priors, drop: &drop, ..NOTHING }.of(JOB).unwrap_err().to_string()
    };
    let n = "normal(0, 1)";
    for (said, words) in [
        (
            refused(&[], &["smokre"]),
            vec!["drop: ", "no predictor `smokre`", "did you mean `smoker`", "age, ward, age:ward, smoker"],
        ),
        (refused(&[], &["intercept"]), vec!["intercept is not dropped", "age, ward"]),
        (refused(&[], &["ward[b]"]), vec!["one coefficient of the predictor `ward`"]),
        (refused(&[("smoker", n)], &["smoker"]), vec!["prior.smoker", "no parameter `smoker`"]),
        (refused(&[("height", n)], &[]), vec!["prior.height", "no parameter `height`"]),
        (refused(&[("age", "nromal(0, 1)")], &[]), vec!["prior.age", "the nearest is `normal`"]),
        (refused(&[("sigma", n)], &[]), vec!["prior.sigma", "half_normal"]),
        (refused(&[("age", n), ("age", n)], &[]), vec!["prior.age", "twice"]),
    ] {
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let share = "name = \"s\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\n\
                 y = { binary = true }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
    let (priors, drop) = (owned(&[("default", n)]), ["y".to_owned()]);
    let said = Refit { priors: &priors, ..NOTHING }.of(share).unwrap_err().to_string();
    assert!(said.contains("prior.default: no parameter takes it") && said.ends_with("one of p"), "{said}");
    let said = Refit { drop: &drop, ..NOTHING }.of(share).unwrap_err().to_string();
    assert!(said.contains("`bernoulli` has no predictors"), "{said}");
}

#[test]
fn a_term_of_a_formula_is_dropped_by_its_text() {
    let job = JOB
        .replace("kind = \"linear\"\noutcome = \"days\"\npredictors = [\"age\", \"ward\", \"age:ward\", \"smoker\"]", FORMULA)
        .replace("[sampler.start]", "[other]");
    let job = job.split("[other]").next().unwrap().to_owned() + "[privacy]\nepsilon = 3.0\ndelta = 1e-6\n";
    let names = |drop: &[&str]| {
        let drop: Vec<String> = drop.iter().map(|name| (*name).to_owned()).collect();
        Refit { drop: &drop, ..NOTHING }.of(&job).map(|spec| spec.model.parameter_names()).map_err(|error| error.to_string())
    };
    let all =
        ["intercept", "age", "ward[b]", "ward[c]", "smoker", "ls(age)[1]", "ls(age)[2]", "age:ward[b]", "age:ward[c]", "sigma"];
    assert_eq!(names(&[]).unwrap(), all);
    assert_eq!(names(&["ls(age, knots = [50])", "smoker"]).unwrap(), [&all[..4], &all[7..]].concat());
    assert_eq!(names(&["ward", "age:ward"]).unwrap(), [&all[..2], &all[4..7], &all[9..]].concat());
    assert!(names(&["ward:smoker"]).unwrap_err().contains("not among the terms"));
    let recoded = names(&["age"]).unwrap_err();
    assert!(recoded.contains("by `age:ward[a]`, which was not released"), "{recoded}");
}

const FORMULA: &str = "formula = \"days ~ age * ward + smoker + ls(age, knots = [50])\"\nfamily = \"linear\"";
