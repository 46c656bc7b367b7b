//! A prediction from the command's rows to its table, object and file.
#![allow(clippy::unwrap_used)]

use conclave_common::job::JobSpec;
use conclave_predict::Level;
use conclave_proto::error::ErrorCode;
use serde_json::json;

use super::answer::{Answer, Request, answer};
use super::command::check;
use super::{csv_file, input, shown, structured};

const JOB: &str = "name = \"p\"\nparties = [\"a\", \"b\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
    predictors = [\"age\", \"ward\"]\n[columns]\ny = { binary = true }\nage = { min = 20, max = 80 }\nward = { levels = [\"a\", \"b, c\"] }\n[privacy]\n\
    epsilon = 1.0\ndelta = 1e-6\n";

/// Two chains of two draws of intercept, age and ward[b, c].
fn samples() -> Vec<Vec<Vec<f64>>> {
    vec![vec![vec![-0.5, -0.4], vec![-0.6, -0.5]], vec![vec![0.8, 0.9], vec![0.7, 0.8]], vec![vec![0.3, 0.3], vec![0.3, 0.3]]]
}

fn request(at: &[&str]) -> Request {
    let at: Vec<String> = at.iter().map(|text| (*text).to_owned()).collect();
    Request {
        tables: input::tables(&at, None).unwrap(),
        party: None,
        new_party: false,
        times: Vec::new(),
        outcome: false,
        contrast: false,
        average: Vec::new(),
        level: Level::DEFAULT,
        seed: None,
    }
}

fn predicted(request: &Request) -> Answer {
    answer(&JobSpec::parse(JOB).unwrap(), &samples(), request).unwrap()
}

const TWO: [&str; 2] = ["age=65, ward=a", "age=95, ward=\"b, c\""];

#[test]
fn a_prediction_has_a_table_an_object_and_a_file() {
    let mut asked = request(&TWO);
    asked.level = "0.95".parse().unwrap();
    (asked.outcome, asked.contrast) = (true, true);
    let found = Answer { estimand: Some("weighted".to_owned()), ..predicted(&asked) };
    let mean = [-0.1, 0.05, -0.25, -0.1].map(|eta: f64| 1.0 / (1.0 + libm::exp(-eta))).iter().sum::<f64>() / 4.0;
    assert!((found.expected[0][0].mean - mean).abs() < 1e-12 && found.draws == 4);

    let text = shown::text("4f-1", &found);
    for part in [
        "Predictions of job 4f-1 (logistic model), from 4 draws.",
        "Probability of y = 1, with 95% intervals:",
        "2.5%",
        "97.5%",
        "new record 97.5%",
        "b, c",
        "Difference from row 1: probability of y = 1, with 95% intervals:",
        "Odds ratio to row 1, with 95% intervals:",
        "Estimand: weighted.",
        // Two digits of the sd.
        "0.1699  0.0068",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let object = structured::object("4f-1", &found);
    assert_eq!((&object["interval"], &object["estimand"], &object["party"]), (&json!(0.95), &json!("weighted"), &json!(null)));
    assert_eq!(object["quantities"], json!([{ "name": "probability", "description": "probability of y = 1" }]));
    assert_eq!(object["predictions"][1]["at"], json!({ "age": 80.0, "ward": "b, c" }));
    assert_eq!(object["predictions"][0]["outcome"]["high"], json!(1.0));
    assert_eq!((&object["contrasts"][0]["row"], &object["contrasts"][0]["against"]), (&json!(2), &json!(1)));
    assert!(object["contrasts"][0]["odds_ratio"]["median"].as_f64().unwrap() > 1.0, "{object:#}");
    let warning = object["warnings"][0].as_str().unwrap();
    for part in ["age = 95", "20 to 80", "80 is used"] {
        assert!(warning.contains(part), "{part} in {warning}");
    }
    let (file, lines) = csv_file::text(&found).unwrap();
    assert!(file.starts_with("result,row,age,ward,quantity,mean,sd,low,median,high,outcome_low,"), "{file}");
    assert_eq!((lines, file.lines().count()), (4, 5));
    assert!(file.contains("prediction,2,80,\"b, c\",probability,") && file.contains("odds ratio to row 1,2,80,"), "{file}");
}

#[test]
fn average_effects_take_the_place_of_rows() {
    let mut asked = request(&TWO);
    asked.average = vec!["ward".to_owned(), "age".to_owned()];
    let found = predicted(&asked);
    let object = structured::object("4f-1", &found);
    assert!(object["predictions"].is_null() && object["average_effects"].as_array().unwrap().len() == 2, "{object:#}");
    assert_eq!(object["average_effects"][0]["change"], "b, c against a");
    let text = shown::text("4f-1", &found);
    assert!(text.contains("Average change over 2 rows: probability of y = 1") && text.contains("per unit"), "{text}");
    assert!(csv_file::text(&found).unwrap().0.contains("\"average effect of ward: b, c against a\",,,,probability,"));
}

#[test]
fn rows_come_from_a_file_with_its_lines_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.csv");
    std::fs::write(&path, "\u{feff}id, age,ward\n1,65,a\n2,70,\"b, c\"\n").unwrap();
    let tables = input::tables(&["age=50, ward=a".to_owned()], Some(&path)).unwrap();
    let found = predicted(&Request { tables, ..request(&[]) });
    assert_eq!(found.rows.iter().map(|row| row[0].1.to_string()).collect::<Vec<_>>(), ["50", "65", "70"]);
    std::fs::write(&path, "age,ward\n1,65,a\n").unwrap();
    let uneven = input::tables(&[], Some(&path)).unwrap_err();
    assert!(uneven.code == ErrorCode::InvalidInput && uneven.message.contains("new.csv cannot be read"), "{uneven}");
    std::fs::write(&path, "age,ward\n65,a\n66,e\n").unwrap();
    let tables = input::tables(&[], Some(&path)).unwrap();
    let fault = answer(&JobSpec::parse(JOB).unwrap(), &samples(), &Request { tables, ..request(&[]) }).unwrap_err();
    assert!(fault.to_string().contains("new.csv line 3: ward = \"e\" is not a level; it has a, b, c"), "{fault}");
    let fault = input::tables(&["age".to_owned()], None).unwrap_err();
    assert!(fault.message.starts_with("--at \"age\""), "{fault}");
    assert!(input::tables(&[], Some(&folder.path().join("none.csv"))).unwrap_err().message.contains("none.csv"));
}

#[test]
fn a_request_that_does_not_fit_is_an_error() {
    let spec = JobSpec::parse(JOB).unwrap();
    let fault = |request: &Request| answer(&spec, &samples(), request).unwrap_err().to_string();
    assert!(fault(&request(&[])).contains("with --at or --data: the model has age, ward"));
    let missing = fault(&request(&["age=65"]));
    assert_eq!(missing, "--at \"age=65\": no value for ward; a row states every predictor");
    assert!(fault(&Request { contrast: true, ..request(&TWO[..1]) }).contains("at least two rows"));
    assert!(fault(&Request { party: Some("a".to_owned()), ..request(&TWO) }).contains("share every parameter"));
    assert!(fault(&Request { times: vec![1.0], ..request(&TWO) }).contains("times are for weibull"));
}

#[test]
fn an_answer_that_is_not_adequate_predicts_nothing() {
    let adequate = json!({ "adequacy": { "adequate": true, "reasons": [] } });
    check(&adequate, "4f-1").unwrap();
    let not =
        json!({ "conditional_on": "noisy_release", "adequacy": { "adequate": false, "reasons": ["the information is noise"] } });
    let fault = check(&not, "4f-1").unwrap_err();
    assert!(fault.message.contains("the information is noise") && fault.message.contains("larger epsilon"), "{fault}");
    assert_eq!(fault.code.exit_code(), 1);
}
