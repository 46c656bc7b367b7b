#![allow(clippy::unwrap_used)]
use crate::job::{Algorithm, JobSpec};
use crate::parameter::Constraint;

fn job(model: &str, columns: &str, more: &str) -> String {
    format!(
        "name = \"t\"\nparties = [\"a\", \"b\"]\nalgorithm = \"auto\"\n[model]\nkind = \"life_table\"\noutcome = \"months\"\nevent = \"died\"\n{model}\n[columns]\n\
         months = {{ min = 0, max = 60 }}\ndied = {{ binary = true }}\n{columns}\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n{more}"
    )
}

#[test]
fn a_life_table_has_a_probability_for_each_interval_and_group() {
    let spec = JobSpec::parse(&job("cuts = [12, 24]", "", "")).unwrap();
    assert_eq!(spec.algorithm, Algorithm::NoisyStatistics);
    assert_eq!(spec.model.parameter_names(), ["hazard[1]", "hazard[2]", "hazard[3]"]);
    assert_eq!((spec.releases(), spec.most_rounds()), (vec!["table"], Some(1)));
    let spec = JobSpec::parse(&job("cuts = [12]\nby = \"arm\"", "arm = { levels = [\"old\", \"new\"] }", "")).unwrap();
    assert_eq!(spec.model.parameter_names(), ["hazard[1|old]", "hazard[2|old]", "hazard[1|new]", "hazard[2|new]"]);
    assert_eq!(spec.model.constraints(), [Constraint::UnitInterval; 4]);
    assert_eq!(spec.model.columns(), ["months", "died", "arm"]);
    assert_eq!(spec.priors[0].to_string(), "beta(0.5, 1)");
    let spec =
        JobSpec::parse(&job("by = \"arm\"", "arm = { binary = true }", "[prior]\n\"hazard[1|1]\" = \"beta(2, 8)\"\n")).unwrap();
    assert_eq!(spec.model.parameter_names(), ["hazard[1|0]", "hazard[1|1]"]);
    assert_eq!(spec.priors[1].to_string(), "beta(2, 8)");
}

#[test]
fn each_error_names_its_key() {
    let arm = "arm = { levels = [\"old\", \"new\"] }";
    for (model, columns, key, word) in [
        ("cuts = [12, 6]", "", "model.cuts", "must increase"),
        ("cuts = [60]", "", "model.cuts", "not between 0 and 60"),
        ("by = \"arm\"", "", "columns.arm", "no public bounds"),
        ("by = \"arm\"", "arm = { min = 0, max = 3 }", "columns.arm", "levels"),
        ("by = \"died\"", "", "model.by", "twice"),
        ("by = \"months\"", "", "model.by", "twice"),
        ("predictors = [\"arm\"]", arm, "model.predictors", "does not take it"),
        ("power = 0.5", "", "model.power", "leave it out"),
    ] {
        let error = JobSpec::parse(&job(model, columns, "")).unwrap_err();
        assert!(error.key == key && error.message.contains(word), "{model}: {error}");
    }
    for (from, to, key) in [
        ("algorithm = \"auto\"", "algorithm = \"penalty\"", "algorithm"),
        ("algorithm = \"auto\"", "algorithm = \"augmentation\"", "algorithm"),
        ("event = \"died\"\n", "", "model.event"),
        ("event = \"died\"", "event = \"months\"", "model.event"),
        ("died = { binary = true }", "died = { min = 0, max = 1 }", "columns.died"),
        ("min = 0, max = 60", "min = -1, max = 60", "columns.months"),
    ] {
        let text = job("", "", "").replace(from, to);
        let error = JobSpec::parse(&text).unwrap_err();
        assert_eq!(error.key, key, "{to}: {error}");
    }
    let cuts: Vec<String> = (1..32).map(|cut| cut.to_string()).collect();
    let many = job(
        &format!("cuts = [{}]\nby = \"g\"", cuts.join(", ")),
        "g = { levels = [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"] }",
        "",
    );
    assert_eq!(JobSpec::parse(&many).unwrap_err().key, "model.cuts");
}
