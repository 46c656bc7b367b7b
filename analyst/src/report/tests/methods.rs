//! The text to paste: right for every algorithm, and true of the run.

use serde_json::{Value, json};

use super::Run;

/// Makes a run of a job with this algorithm and lines under `[sampler]`, and its model.
fn run(algorithm: &str, sampler: &str, model: &str) -> Run {
    // Choices among candidates are those of one owner.
    let parties = if algorithm == "ops" || sampler.contains("ops") { "\"a\"" } else { "\"a\", \"b\"" };
    let chains = if algorithm == "ops" { "" } else { "chains = 2\n" };
    let source = format!(
        "name = \"m\"\nparties = [{parties}]\nalgorithm = \"{algorithm}\"\n{model}[sampler]\n{chains}draws = 20\n{sampler}[privacy]\nepsilon = 3.0\n\
         delta = 1e-6\n"
    );
    let mut run = Run::of(source, "");
    run.result["stopped_by"] = json!("draws");
    run
}

/// Returns the text of a block to paste.
fn pasted(run: &Run, id: &str) -> String {
    let page = run.page();
    page.split(&format!("id=\"{id}\">")).nth(1).unwrap().split("</pre>").next().unwrap().to_owned()
}

const LOGISTIC: &str = "[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\ny = { binary = true }\nx = { min = 0, max = 10 }\n";
const LINEAR: &str = "[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\nsd = 1.0\n[columns]\ny = { min = -5, max = 5 }\nx = { min = 0, max = 10 }\n";
const BERNOULLI: &str = "[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n";

#[test]
fn each_algorithm_is_described_by_its_own_sentence() {
    let cases = [
        ("penalty", "", LOGISTIC, "by the penalty algorithm: at each step"),
        ("penalty-exp-family", "", BERNOULLI, "penalty algorithm on sufficient statistics"),
        ("noisy-statistics", "", LOGISTIC, "given these releases"),
        ("auto", "", LOGISTIC, "The algorithm was chosen by `auto`"),
        ("augmentation", "", LINEAR, "data augmentation (Ju, Awan, Gong"),
        ("hmc", "friction = 0\n", LOGISTIC, "Räisä, Koskela"),
        ("hmc", "", LOGISTIC, "noised remainder of the log ratio"),
        ("hmc", "test = \"none\"\n", LOGISTIC, "without an acceptance test"),
        ("barker", "", LOGISTIC, "Barker’s test"),
        ("sgld", "", LOGISTIC, "stochastic gradient Langevin dynamics"),
        ("sghmc", "", LOGISTIC, "stochastic gradient Hamiltonian Monte Carlo"),
        ("sgnht", "", LOGISTIC, "Nosé–Hoover thermostat"),
        ("sgfs", "", LOGISTIC, "Fisher scoring"),
        ("sgld", "polish = 5\n", LOGISTIC, "5 final sweeps of the penalty algorithm"),
        ("sgnht", "start = \"ops\"\n", LOGISTIC, "started at one posterior sample"),
        ("ops", "", LOGISTIC, "exponential mechanism"),
    ];
    let texts: Vec<String> =
        cases.iter().map(|(algorithm, sampler, model, _)| pasted(&run(algorithm, sampler, model), "methods-text")).collect();
    for ((algorithm, sampler, _, part), text) in cases.iter().zip(&texts) {
        assert!(text.contains(part), "{algorithm} {sampler}: {part} in {text}");
        // Only draws that are exact claim the posterior of the pooled records without a qualification.
        let is_exact =
            ["penalty", "penalty-exp-family"].contains(algorithm) || (*algorithm == "hmc" && *sampler != "test = \"none\"\n");
        assert_eq!(
            text.contains("so that the draws follow the posterior of the pooled records"),
            is_exact,
            "{algorithm}: {text}"
        );
    }
}

/// Warm-up and noise are named; an answer from releases has no warm-up, and states the share of the noise.
#[test]
fn the_paragraph_names_warm_up_and_noise() {
    let text = pasted(&run("penalty", "warmup = 250\n", LOGISTIC), "methods-text");
    assert!(text.contains("Warm-up: 250 sweeps, excluded from the draws."), "{text}");
    assert!(text.contains("standard deviation ") && text.contains("log-likelihood units for every answer"), "{text}");
    let mut once = run("noisy-statistics", "", LOGISTIC);
    once.result["conditional_on"] = json!("noisy_release");
    once.result["posterior"][0]["noise_share"] = json!(0.24);
    let text = pasted(&once, "methods-text");
    assert!(!text.contains("Warm-up") && text.contains("It accounts for 24% of the variance of a parameter at most."), "{text}");
}

#[test]
fn the_data_s_availability_is_stated() {
    let text = pasted(&run("penalty", "", LOGISTIC), "availability-text");
    for part in ["Data availability: the records stay with their owners (a, b)", "the log of job 4f-1", "job file (SHA-256 "] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_paragraph_has_the_run_s_own_figures() {
    let mut of = run("penalty", "", LOGISTIC);
    for row in of.result["posterior"].as_array_mut().unwrap() {
        (row["rhat"], row["ess_bulk"], row["ess_tail"]) = (json!(1.0042), json!(811.7), json!(900));
    }
    let text = pasted(&of, "methods-text");
    for part in [
        "logistic regression of y on x, with an intercept",
        "2,468 records at 2 data owners",
        "normal(0, 2.5)",
        "x 0 to 10",
        "at most 48,000 releases",
        "ε = 3, δ = 1e-6 for one row, against replacement by any other",
        "2 chains of 20 draws; split R-hat at most 1.004; effective sample sizes of at least 811",
        "job 4f-1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let guarantee = pasted(&of, "guarantee-text");
    for part in [
        "one row, against replacement",
        "ε = 3 at δ = 1e-6",
        "spent at most ε = 1.24.",
        "Gaussian differential privacy",
        "nobody else",
    ] {
        assert!(guarantee.contains(part), "{part} in {guarantee}");
    }
    of.result["aggregation"] = json!({"mode": "secure", "colluders": 1, "honest": 2, "parties": 3});
    let masked = pasted(&of, "guarantee-text");
    assert!(masked.contains("at most 1 of the other owners collude") && !masked.contains("nobody else"), "{masked}");
    // Units that differ are named by party, and a number that is not public leaves no total.
    of.result["parties"][1]["protects"] = json!("person of at most 5 records, add-remove");
    of.result["parties"][1]["records"] = json!(null);
    let text = pasted(&of, "methods-text");
    assert!(
        text.contains("against replacement by any other at a; one person") || text.contains("addition or removal at b; one row"),
        "{text}"
    );
    assert!(text.contains("to the records at 2 data owners"), "{text}");
    of.result["refit_of"] = json!("3e-9");
    assert!(
        pasted(&of, "methods-text").contains("reuse the releases of job 3e-9")
            && pasted(&of, "guarantee-text").contains("spent nothing")
    );
    // A share of noise that is not known is not said to be small.
    of.result["conditional_on"] = json!("noisy_release");
    for (row, share) in of.result["posterior"].as_array_mut().unwrap().iter_mut().zip([json!(0.001), Value::Null]) {
        row["noise_share"] = share;
    }
    let text = pasted(&of, "methods-text");
    assert!(text.contains("less than 1% of the variance of every parameter whose share is known."), "{text}");
}

/// An answer that cannot be relied on has no text to paste, but its guarantee; and no limit of publication beside that of its failed check.
#[test]
fn an_answer_that_is_not_usable_has_no_text_to_paste() {
    let mut of = run("noisy-statistics", "", LOGISTIC);
    assert!(of.page().contains("Monte Carlo error of the mean at most"));
    of.result["adequacy"] = json!({"adequate": false, "mcse_to_sd": {"value": 0.9, "limit": 0.4}, "reasons": ["too noisy"]});
    let page = of.page();
    assert!(!page.contains("id=\"methods-text\"") && page.contains("No methods text is offered"), "{page}");
    assert!(page.contains("id=\"guarantee-text\"") && page.contains("Monte Carlo error of a mean, in posterior sds"), "{page}");
    assert!(
        !page.contains("Monte Carlo error of the mean at most") && page.contains("The checks under “Result” decide"),
        "{page}"
    );
    let mut poor = run("penalty", "", LOGISTIC);
    poor.result["verdict"] = json!({"grade": "not_usable", "reasons": ["R-hat of x is 1.4, above 1.01"]});
    assert!(!poor.page().contains("id=\"methods-text\""));
}

/// The citation names the project and no person, and no DOI, since there is none.
#[test]
fn the_citation_invents_nothing() {
    let of = run("penalty", "", LOGISTIC);
    let (text, bibtex) = (pasted(&of, "citation-text"), pasted(&of, "citation-bibtex"));
    assert!(text.contains(env!("CARGO_PKG_VERSION")) && bibtex.starts_with("@misc{conclave,"));
    assert!(bibtex.contains("author  = {{The Conclave project}}") && !bibtex.contains("doi"), "{bibtex}");
}

/// Sections stand in the order of an article, and the four parameters with the fewest effective draws come first.
#[test]
fn sections_and_plots_are_in_order() {
    let mut of = Run::new(6, 2, 60, "");
    for (at, row) in of.result["posterior"].as_array_mut().unwrap().iter_mut().enumerate() {
        (row["ess_bulk"], row["ess_tail"]) = (json!(1000 - 100 * at), json!(1000 - 100 * at));
    }
    let page = of.page();
    let anchors: Vec<&str> = page.split("<h2 id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(anchors, ["estimates", "methods", "diagnostics", "privacy", "model", "posterior", "run", "repeat"]);
    let plots = page.split("class=\"draws\"").nth(1).unwrap().split("class=\"fold\"").next().unwrap();
    let shown: Vec<&str> = plots.split("<figcaption>Trace of ").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(shown, ["x6", "x5", "x4", "x3"]);
    assert!(page.contains("The draws of 3 more parameters") && page.contains("Trace of intercept"));
    // Many parameters fold long tables, which a print leaves out.
    let many = Run::new(20, 2, 20, "").page();
    for folded in ["The figures of 13 more parameters", "The formula", "Priors and boxes", "On the scale of the priors"] {
        assert!(many.contains(&format!("<details class=\"fold\"><summary>{folded}")), "{folded}");
        assert!(!page.contains(&format!("<summary>{folded}")), "{folded}");
    }
}
