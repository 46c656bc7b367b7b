//! The result as a forest plot: its figures are those of the result's object.

use conclave_common::job::JobSpec;
use conclave_pages::plot::{Estimate, ForestRow};
use serde_json::{Value, json};

use super::{Run, is_self_contained};
use crate::report::forest::forest;
use crate::report::material::Material;
use crate::report::units::{Per, Units};

/// Makes the run of a job of two parties with these lines of the model and the columns, with figures in the data's units.
fn run(kind: &str, predictors: &str, columns: &str, more: &str) -> Run {
    let outcome = if kind == "logistic" { "y = { binary = true }" } else { "y = { min = 0, max = 9 }" };
    let source = format!(
        "name = \"r\"\nparties = [\"a\", \"b\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
         predictors = [{predictors}]\n[columns]\n{outcome}\n{columns}\n[sampler]\nchains = 2\ndraws = 100\n{more}[privacy]\nepsilon = 3.0\n\
         delta = 1e-6\n"
    );
    Run::in_units(source)
}

/// Makes the run of a linear regression without an intercept, in which the first factor has all its levels.
fn without_intercept(predictors: &str, terms: &str) -> Run {
    let listed = format!("kind = \"linear\"\noutcome = \"y\"\npredictors = [{predictors}]");
    let source = run("linear", predictors, COLUMNS, "").source;
    Run::in_units(source.replace(&listed, &format!("formula = \"y ~ 0 + {terms}\"\nfamily = \"linear\"")))
}

fn units(spec: &JobSpec, per: &[&str]) -> Units {
    let per: Vec<Per> = per.iter().map(|text| text.parse().unwrap()).collect();
    Units::new(&per, spec).unwrap()
}

/// Returns the rows of the plot with these units.
fn rows(run: &Run, per: &[&str]) -> Vec<ForestRow> {
    let units = units(&run.spec, per);
    let Run { status, source, spec, result, draws } = run;
    let material = Material {
        status,
        source,
        spec,
        result,
        draws: Some(draws),
        units: &units,
        log: None,
        coordinator: "https://c.example:1",
    };
    forest(&material).unwrap().rows
}

fn estimate<'a>(rows: &'a [ForestRow], label: &str) -> &'a Estimate {
    rows.iter().filter_map(ForestRow::estimate).find(|row| row.label == label).unwrap_or_else(|| panic!("{label} in {rows:#?}"))
}

fn labels(rows: &[ForestRow]) -> Vec<&str> {
    rows.iter().map(ForestRow::label).collect()
}

const COLUMNS: &str = "age = { min = 0, max = 100 }\nsex = { binary = true }\nward = { levels = [\"p\", \"q\", \"r\"] }";

#[test]
fn the_figures_are_those_of_the_result_in_the_units_chosen() {
    let run = run("logistic", "\"age\", \"sex\", \"ward\", \"age:sex\"", COLUMNS, "");
    let rows = rows(&run, &["age=10 years"]);
    let expected = ["age, per 10 years", "sex, 1 against 0", "ward", "p", "q", "r", "age × sex, per 10 years"];
    assert_eq!(labels(&rows), expected);
    assert!(matches!(&rows[2], ForestRow::Heading(_)) && matches!(&rows[3], ForestRow::Reference(_)));
    let object = |name: &str| run.result["ratios"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
    for (label, name, scale) in [
        ("age, per 10 years", "age", 10.0),
        ("sex, 1 against 0", "sex", 1.0),
        ("q", "ward[q]", 1.0),
        ("age × sex, per 10 years", "age:sex", 10.0),
    ] {
        let (found, row) = (estimate(&rows, label), object(name));
        let of = |key: &str| libm::pow(row[key].as_f64().unwrap(), scale);
        assert!(
            near(found.median, of("median")) && near(found.ends[0], of("q5")) && near(found.ends[1], of("q95")),
            "{label} {found:?} {row}"
        );
    }
    assert!(run.page().contains("within an interaction holds where the other predictors"));
    // The inner half and the probability are those of the draws in the data's units.
    let draws = run.in_original_units();
    let (_, sex) = draws.iter().find(|(row, _)| row["name"] == "sex").unwrap();
    let found = estimate(&rows, "sex, 1 against 0");
    let [low, high] = found.half.unwrap();
    let within = sex.iter().filter(|x| (low..=high).contains(&libm::exp(**x))).count() as f64 / sex.len() as f64;
    assert!((within - 0.5).abs() < 0.02 && found.ends[0] < low && high < found.ends[1], "{within} {found:?}");
    let above = sex.iter().filter(|x| **x > 0.0).count() as f64 / sex.len() as f64;
    assert_eq!(found.above, Some(above));
}

/// A predictor within an interaction with a numeric one mixes coefficients in the data's units, so its share of the noise is not known there.
#[test]
fn rows_that_an_interaction_mixes_have_no_share_of_noise() {
    let mut run = run("logistic", "\"age\", \"sex\", \"age:sex\"", COLUMNS, "");
    run.result["conditional_on"] = json!("noisy_release");
    run.result["posterior"].as_array_mut().unwrap().iter_mut().for_each(|row| row["noise_share"] = json!(0.4));
    let found = rows(&run, &[]);
    let share = |label: &str| estimate(&found, label).noise;
    // Age is measured from 0, the middle of its code is 50: the effect of sex at age 0 mixes that at 50 with the slope.
    assert_eq!(share("sex, 1 against 0"), None);
    assert_eq!([share("age, per 1 unit"), share("age × sex, per 1 unit")], [Some(0.4); 2]);
    assert!(run.page().contains("Its share of the noise is not known in these units"));
}

/// Without an intercept, a level's coefficient is its own mean: no difference.
#[test]
fn levels_with_means_of_their_own_are_no_differences() {
    let run = without_intercept("\"ward\", \"age\"", "ward + age");
    let found = rows(&run, &[]);
    assert_eq!(labels(&found), ["age, per 1 unit"], "{found:#?}");
    assert!(run.page().contains("the levels of ward have means of their own"));
    // Where nothing else is left, the parameters are shown as values.
    let only = without_intercept("\"ward\"", "ward");
    assert!(only.page().contains("Value, in the data’s units"));
}

/// The page shows every figure with all digits, and its object at the end does not depend on the units.
#[test]
fn the_page_leads_with_the_plot_and_the_object_stays() {
    let mut run = run("logistic", "\"age\", \"ward\"", COLUMNS, "");
    run.status.result_json = run.result.to_string();
    let units = units(&run.spec, &["age=10"]);
    let page = run.page_in(&units);
    let sections: Vec<&str> = page.split("<h2 id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(sections[0], "estimates");
    let section = page.split("<h2 id=\"estimates\">").nth(1).unwrap().split("</section>").next().unwrap();
    let age = estimate(&rows(&run, &["age=10"]), "age, per 10 units").clone();
    for part in [
        format!("<data value=\"{}\">", Value::from(age.median)),
        format!("<data value=\"{}\">", Value::from(age.ends[1])),
        "1 (reference)".to_owned(),
        "Pr(OR &gt; 1)".to_owned(),
        "n = 2,468.".to_owned(),
        "download=\"result.svg\"".to_owned(),
        "\\begin{tabular}{lrr}".to_owned(),
        "| ward: q |".to_owned(),
        "group,predictor,Odds ratio".to_owned(),
    ] {
        assert!(section.contains(&part), "{part} in {section}");
    }
    assert!(!section.contains("intercept") && is_self_contained(&page), "{section}");
    let object = page.split("id=\"result\">").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&object.replace("&quot;", "\"")).unwrap(), run.result);
}

#[test]
fn a_linear_model_has_differences_and_a_line_at_0() {
    let run = run("linear", "\"age\"", "age = { min = 0, max = 100 }", "");
    let found = rows(&run, &["age=10"]);
    let row = &run.result["posterior_original"][1];
    let age = estimate(&found, "age, per 10 units");
    assert!((age.median / (10.0 * row["median"].as_f64().unwrap()) - 1.0).abs() < 1e-12, "{age:?} {row}");
    assert_eq!(labels(&found), ["age, per 10 units"], "neither intercept nor sigma");
    assert!(run.page().contains("Pr(difference &gt; 0)"));
}

/// A coefficient that varies by party has a row at each of them, one of their mean, and one of a new party.
#[test]
fn parties_are_rows_where_a_coefficient_varies() {
    let run = run("logistic", "\"age\", \"sex\"", COLUMNS, "[parameters]\nsex = { by = \"party\" }\n");
    let rows = rows(&run, &[]);
    assert_eq!(labels(&rows), ["age, per 1 unit", "sex, 1 against 0", "a", "b", "mean over the parties", "a new party"]);
    let (mean, new) = (estimate(&rows, "mean over the parties"), estimate(&rows, "a new party"));
    assert!(new.ends[0] < mean.ends[0] && mean.ends[1] < new.ends[1], "{mean:?} {new:?}");
    assert!(new.above.unwrap() > 0.5 && new.half.is_some(), "{new:?}");
    let page = run.page();
    assert!(
        page.contains("Every owner has its own value of <bdi>sex</bdi>") && page.contains("<code>half_normal(1)</code>"),
        "{page}"
    );
}

/// The release's noise has a column of its own.
#[test]
fn a_release_states_the_noise_of_each_row() {
    let mut run = run("logistic", "\"age\"", "age = { min = 0, max = 100 }", "");
    run.result["posterior"][1]["noise_share"] = json!(0.001);
    let found = rows(&run, &[]);
    assert_eq!(estimate(&found, "age, per 1 unit").noise, Some(0.001));
    assert!(run.page().contains("&lt;1%"));
}

#[test]
fn a_model_without_coefficients_shows_its_parameters() {
    let source = "name = \"r\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n[sampler]\nchains = 2\n\
                  draws = 50\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n";
    let run = Run::of(source.to_owned(), "");
    assert_eq!(labels(&rows(&run, &[])), ["p"]);
    assert!(!run.page().contains("Pr(value"));
}
