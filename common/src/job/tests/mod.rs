#![allow(clippy::unwrap_used)]

use super::*;
use crate::parameter::*;
use crate::schema::*;
use conclave_privacy::mechanism::QueryKind;

const JOB: &str = r#"
name = "readmission"
parties = ["hospital-a", "hospital-b", "hospital-c"]

[model]
kind = "logistic"
outcome = "readmitted"
predictors = ["age", "bmi"]

[columns]
age = { min = 0, max = 100 }
bmi = { min = 10, max = 60 }
readmitted = { binary = true }

[sampler]
chains = 4

[privacy]
epsilon = 3.0
delta = 1e-6
"#;

#[test]
fn defaults_are_those_of_the_documentation() {
    let job = JobSpec::parse(JOB).unwrap();
    assert_eq!(job.algorithm, Algorithm::Penalty);
    assert_eq!(job.model.parameter_names(), ["intercept", "age", "bmi"]);
    assert_eq!(job.priors, vec![Prior::Normal { mean: 0.0, sd: 2.5 }; 3]);
    assert_eq!(job.support, vec![Interval { min: -1e3, max: 1e3 }; 3]);
    assert_eq!((job.sampler.chains, job.sampler.draws, job.sampler.warmup), (4, 5000, Warmup::Sweeps(100)));
    assert_eq!((job.sampler.proposal, &job.sampler.radius), (ProposalKind::Guided, &Radius::Auto));
    assert_eq!((job.sampler.seed, job.sampler.locate_share), (1, 0.2));
    let sd = 1.75 / 3f64.sqrt();
    assert!(job.privacy.noise.sd() >= sd && job.privacy.noise.sd() < sd + 2f64.powi(-16));
    assert_eq!(job.privacy.clip, None);
}

/// A penalty chain queries ratios only, unless it finds the mode by gradients.
#[test]
fn the_mode_is_found_by_gradients_where_the_job_says_so() {
    let (gradient, curvature) = (QueryKind::Gradient { parameters: 3 }, QueryKind::Curvature { parameters: 3 });
    let plain = JobSpec::parse(JOB).unwrap();
    assert_eq!((plain.releases(), plain.asks(gradient), plain.asks(curvature)), (vec!["ratio"], false, false));
    let job = |more: &str| JobSpec::parse(&JOB.replace("chains = 4", &format!("chains = 4\n{more}")));
    let searching = job("locate = \"gradients\"").unwrap();
    assert_eq!((searching.releases(), searching.asks(gradient), searching.asks(curvature)), (vec!["score", "ratio"], true, true));
    assert!(searching.asks(QueryKind::Ratio) && !searching.asks(QueryKind::Remainder { parameters: 3 }));
    assert_eq!(searching.sampler.locate_share, 0.05);
    assert_eq!(job("locate = \"ratios\"").unwrap(), plain);
    assert_eq!(searching.by(Algorithm::NoisyStatistics).unwrap(), plain.by(Algorithm::NoisyStatistics).unwrap());
    assert_eq!(job("locate = \"gradients\"\nlocate_share = 0.1").unwrap().sampler.locate_share, 0.1);
    for (model, columns, what) in [
        ("kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }", "no gradient"),
        ("kind = \"poisson_mean\"\noutcome = \"y\"", "y = { min = 0, max = 5 }", "no gradient"),
    ] {
        let text = format!(
            "name = \"n\"\nparties = [\"a\"]\n[model]\n{model}\n[columns]\n{columns}\n[sampler]\nlocate = \"gradients\"\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        let fault = JobSpec::parse(&text).unwrap_err().to_string();
        assert!(fault.contains("sampler.locate") && fault.contains(what), "{fault}");
        let hmc = format!("algorithm = \"hmc\"\n{text}");
        assert!(JobSpec::parse(&hmc).unwrap_err().to_string().contains("applies to algorithm = \"penalty\""));
    }
}

#[test]
fn the_written_order_of_keys_does_not_matter() {
    let moved = JOB.replace("name = \"readmission\"\n", "").replace("parties = [", "name = \"readmission\"\nparties = [");
    assert_eq!(JobSpec::parse(&moved).unwrap(), JobSpec::parse(JOB).unwrap());
}

/// Each fault is reported with its key and a hint at the remedy.
#[test]
fn every_fault_names_its_key() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("chains = 4", "chanis = 4", "sampler.chanis", "did you mean `chains`"),
        ("chains = 4", "chains = 0", "sampler.chains", "between 1 and 256"),
        ("chains = 4", "chains = 4\ndraws = -1", "sampler.draws", "between 1"),
        ("chains = 4", "locate_share = 0.0", "sampler.locate_share", "starting values"),
        ("chains = 4", "locate_share = 1.0", "sampler.locate_share", "below 1"),
        ("chains = 4", "locate = \"slopes\"", "sampler.locate", "known: ratios, gradients"),
        (
            "chains = 4",
            "locate = \"gradients\"\nstart = { intercept = 0, age = 0, bmi = 0 }",
            "sampler.locate",
            "leave locate out",
        ),
        ("chains = 4", "start = { intercept = 0, age = 0 }", "sampler.start", "`bmi`"),
        ("chains = 4", "start = { intercept = 0, age = 0, bmi = 2000 }", "sampler.start.bmi", "outside"),
        ("chains = 4", "start = { intercept = 0, age = 0, bmy = 0 }", "sampler.start.bmy", "did you mean `bmi`"),
        ("name = ", "extends = \"../x\"\nname = ", "extends", "id of a job"),
        ("name = ", "study = { purpose = \"a\\u001bb\" }\nname = ", "study.purpose", "control characters"),
        ("name = ", "study = { contact = \"a\\u202eb\" }\nname = ", "study.contact", "bidirectional"),
        ("name = ", "study = { contcat = \"a\" }\nname = ", "study.contcat", "did you mean `contact`"),
        (
            "chains = 4",
            "chains = 1\nstart = { intercept = 0, age = 0, bmi = 0 }\nstarts = [{ intercept = 0, age = 0, bmi = 0 }]",
            "sampler.starts",
            "set either start",
        ),
        ("chains = 4", "starts = [{ intercept = 0, age = 0, bmi = 0 }]", "sampler.starts", "1 tables for 4 chains"),
        (
            "chains = 4",
            "chains = 1\nstarts = [{ intercept = 0, age = 0, bmi = 0 }]",
            "sampler.starts",
            "set proposal.radius to numbers",
        ),
        (
            "chains = 4",
            "chains = 1\nlocate_share = 0.1\nproposal = { radius = 0.1 }\nstarts = [{ intercept = 0, age = 0, bmi = 0 }]",
            "sampler.starts",
            "leave locate_share out",
        ),
        (
            "chains = 4",
            "chains = 2\nproposal = { radius = 0.1 }\nstarts = [{ intercept = 0, age = 0, bmi = 0 }, { intercept = 0, age = 0, bmi = 2000 }]",
            "sampler.starts[1].bmi",
            "outside",
        ),
        (
            "chains = 4",
            "chains = 1\nproposal = { radius = 0.1 }\nstarts = [{ intercept = 0, age = 0 }]",
            "sampler.starts[0]",
            "`bmi`",
        ),
        ("chains = 4", "warmup = { until_rhat = 1.0, max = 5 }", "sampler.warmup.until_rhat", "above 1"),
        ("chains = 4", "chains = 1\nuntil = { ess = 100 }", "sampler.until", "at least two"),
        ("chains = 4", "until = { ess = 0 }", "sampler.until.ess", "positive"),
        ("chains = 4", "until = { rhat = 1.0 }", "sampler.until.rhat", "above 1"),
        ("chains = 4", "until = { ees = 100 }", "sampler.until.ees", "did you mean `ess`"),
        ("chains = 4", "proposal = { kind = \"nuts\" }", "sampler.proposal.kind", "truncated_walk"),
        ("chains = 4", "proposal = { kind = \"truncated_walk\", rotate = true }", "sampler.proposal.rotate", "use guided"),
        ("chains = 4", "proposal = { radius = 0.1, rotate = true }", "sampler.proposal.rotate", "\"auto\""),
        ("chains = 4", "warmup = 0\nproposal = { rotate = true }", "sampler.proposal.rotate", "a positive number of sweeps"),
        ("chains = 4", "proposal = { kind = \"guided\", radius = -1 }", "sampler.proposal.radius", "positive"),
        ("chains = 4", "proposal = { kind = \"guided\", radius = { age = 1.0 } }", "sampler.proposal.radius", "`intercept`"),
        ("epsilon = 3.0", "epsilon = 0", "privacy.epsilon", "positive"),
        ("epsilon = 3.0", "epsilon = -1.0", "privacy.epsilon", "positive"),
        ("epsilon = 3.0", "epsilon = nan", "privacy.epsilon", "positive"),
        ("delta = 1e-6", "delta = 1.0", "privacy.delta", "strictly between"),
        ("delta = 1e-6", "delta = 0.0", "privacy.delta", "strictly between"),
        ("delta = 1e-6", "delta = 1e-6\nnoise_sd = 0", "privacy.noise_sd", ""),
        ("delta = 1e-6", "delta = 1e-6\nclip = 0", "privacy.clip", "positive"),
        ("bmi = { min = 10, max = 60 }", "", "columns.bmi", "no public bounds"),
        ("bmi = { min = 10, max = 60 }", "bmi = { min = 60, max = 10 }", "columns.bmi", "min < max"),
        ("bmi = { min = 10, max = 60 }", "bmi = { min = 10 }", "columns.bmi", "declare either"),
        ("bmi = { min = 10, max = 60 }", "bmi = { levels = [\"a\"] }", "columns.bmi", "2 to 256"),
        ("bmi = { min = 10, max = 60 }", "bmi = { levels = [1, \"1.0\"] }", "columns.bmi", "twice"),
        ("bmi = { min = 10, max = 60 }", "bmi = { levels = [\"a\", \" b\"] }", "columns.bmi", "blanks"),
        ("bmi = { min = 10, max = 60 }", "bmi = { levels = [\"a\", \"b\"], min = 0 }", "columns.bmi", "declare either"),
        ("[\"age\", \"bmi\"]", "[\"age\", \"age:bmi:sex\"]", "columns.sex", "no public bounds"),
        ("[\"age\", \"bmi\"]", "[\"age:bmi\", \"bmi:age\"]", "model.predictors", "twice"),
        ("[\"age\", \"bmi\"]", "[\"age:age\"]", "model.predictors", "twice"),
        ("[\"age\", \"bmi\"]", "[\"age\"]\noffset = \"bmy\"", "columns.bmy", "no public bounds"),
        ("[\"age\", \"bmi\"]", "[\"age\"]\noffset = \"readmitted\"", "model.offset", "twice"),
        ("[\"age\", \"bmi\"]", "[\"age\"]\nexposure = \"bmi\"", "model.exposure", "does not take"),
        ("[\"age\", \"bmi\"]", "[\"age\"]\nexposure_fixed = true", "model.exposure_fixed", "does not take"),
        ("[\"age\", \"bmi\"]", "[\"age\"]\nsd = 1.0", "model.sd", "does not take"),
        ("bmi = { min = 10, max = 60 }", "bmi = { mim = 10, max = 60 }", "columns.bmi.mim", "did you mean `min`"),
        ("readmitted = { binary = true }", "readmitted = { min = 0, max = 1 }", "columns.readmitted", "binary = true"),
        ("[\"age\", \"bmi\"]", "[\"age\", \"age\"]", "model.predictors", "twice"),
        ("[\"age\", \"bmi\"]", "[\"age\", \"readmitted\"]", "model.predictors", "twice"),
        ("\"logistic\"", "\"logistik\"", "model.kind", "did you mean `logistic`"),
        ("\"logistic\"", "\"student_t\"", "model.df", "missing"),
        ("\"hospital-b\"", "\"hospital-a\"", "parties", "twice"),
        ("\"hospital-b\"", "\"Hospital B\"", "parties", "not a valid party name"),
        ("\"hospital-b\"", "\"b\\u001b[2K\\r  at most   epsilon 0.01\\u202e\"", "parties", "not a valid party name"),
        ("\"readmission\"", "\"r\\u001b[2K\\u202e\"", "name", "control characters"),
        ("bmi = { min = 10", "\"b\\u202emi\" = { min = 10", "columns", "bidirectional marks"),
        ("bmi = { min = 10, max = 60 }", "bmi = { levels = [\"a\", \"b\\u2066c\"] }", "columns.bmi", "bidirectional marks"),
        ("[\"hospital-a\", \"hospital-b\", \"hospital-c\"]", "[]", "parties", "at least one"),
        ("[privacy]", "[prior]\ndefault = \"cauchy(0, 0)\"\n[privacy]", "prior.default", "scale must be positive"),
        ("[privacy]", "[prior]\nage = \"dirichlet(1)\"\n[privacy]", "prior.age", "add up to 1"),
        ("[privacy]", "[prior]\nage = \"uniform(2e6, 3e6)\"\n[privacy]", "parameters.age", "lies outside the box"),
        (
            "chains = 4",
            "start = { intercept = 0, age = 0, bmi = 0 }\n[prior]\nage = \"gamma(2, 1)\"",
            "sampler.start.age",
            "edge",
        ),
        ("[privacy]", "[prior]\nage = \"normal(5e6, 100)\"\n[privacy]", "parameters.age", "declare the box"),
        ("[privacy]", "[prior]\nage = \"uniform(-1.5e6, 0)\"\n[privacy]", "parameters.age", "declare the box"),
        ("bmi\"]", "bmi\"]\npower = 1e-7", "model.power", "between 1e-6 and 1"),
        ("bmi\"]", "bmi\"]\npower = 1.5", "model.power", "between 1e-6 and 1"),
        ("[privacy]", "[prior]\nagee = \"normal(0, 1)\"\n[privacy]", "prior.agee", "did you mean `age`"),
        ("[privacy]", "[parameters]\nage = { min = 1, max = 0 }\n[privacy]", "parameters.age", "min < max"),
        (
            "chains = 4",
            "chains = 4\nproposal = { kind = \"guided\", jitter = 0.6 }",
            "sampler.proposal.jitter",
            "between 0 and 0.5",
        ),
        ("[privacy]", "[plan]\nrecords = 0\n[privacy]", "plan.records", "between 1 and"),
        ("[privacy]", "[plan.records]\nhospital-a = 5\n[privacy]", "plan.records", "hospital-b"),
        ("[privacy]", "[plan.records]\nhospital-z = 5\n[privacy]", "plan.records.hospital-z", "did you mean"),
        ("[privacy]", "[plan.posterior]\nage = { mean = 0, sd = 1 }\n[privacy]", "plan.posterior", "intercept"),
        ("[privacy]", "[plan.posterior]\nagee = { mean = 0, sd = 1 }\n[privacy]", "plan.posterior.agee", "did you mean `age`"),
        (
            "name = \"readmission\"",
            "name = \"readmission\"\nalgorithm = \"penalty-exp-family\"",
            "algorithm",
            "no exponential family",
        ),
    ];
    for (from, to, key, word) in cases {
        let text = JOB.replacen(from, to, 1);
        assert_ne!(text, JOB, "{from}");
        let error = JobSpec::parse(&text).expect_err(to);
        assert_eq!(error.key, *key, "{error}");
        assert!(error.message.contains(word), "{error}");
        // The message contains no text that could control a terminal.
        assert!(crate::text::is_plain(&error.to_string()), "{error:?}");
    }
    assert!(JobSpec::parse("name = ").unwrap_err().message.contains("1"));
}

#[test]
fn levels_and_interactions_become_parameters() {
    let text = JOB
        .replace("[\"age\", \"bmi\"]", "[\"age\", \"ward\", \"ward:age\", \"sex:ward\"]\noffset = \"bmi\"")
        .replace("readmitted = ", "ward = { levels = [\"a\", \"b\", 7] }\nsex = { binary = true }\nreadmitted = ");
    let job = JobSpec::parse(&text).unwrap();
    let names = ["intercept", "age", "ward[b]", "ward[7]", "ward[b]:age", "ward[7]:age", "sex:ward[b]", "sex:ward[7]"];
    assert_eq!(job.model.parameter_names(), names);
    assert_eq!(job.model.columns(), ["readmitted", "age", "ward", "sex", "bmi"]);
    assert_eq!(job.model.auxiliary(), [Auxiliary::Natural("bmi")]);
    assert_eq!(job.model.constraints(), [Constraint::Real; 8]);
    let linear = JOB.replace("logistic", "linear").replace("readmitted = { binary = true }", "readmitted = { min = 0, max = 9 }");
    let job = JobSpec::parse(&linear).unwrap();
    assert_eq!(job.model.parameter_names(), ["intercept", "age", "bmi", "sigma"]);
    assert_eq!(job.model.constraints()[3], Constraint::Positive);
    let known =
        linear.replace("intercept = true", "").replace("[columns]", "[columns]\n").replace("\"bmi\"]", "\"bmi\"]\nsd = 2.0");
    assert_eq!(JobSpec::parse(&known).unwrap().model.parameter_names(), ["intercept", "age", "bmi"]);
    let error = JobSpec::parse(&known.replace("sd = 2.0", "sd = -2.0")).unwrap_err();
    assert_eq!(error.key, "model.sd");
}

/// The example of the documentation.
#[test]
fn the_documents_example_is_a_job() {
    let text = include_str!("../../../../docs/reference/job-file.md");
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let example = blocks.into_iter().find(|block| block.contains("parties = ")).unwrap();
    let job = JobSpec::parse(example).unwrap();
    let names =
        ["intercept", "age", "ward[surgery]", "ward[geriatrics]", "age:ward[surgery]", "age:ward[geriatrics]", "dispersion"];
    assert_eq!(job.model.parameter_names(), names);
    assert!(BUILT.iter().all(|kind| text.contains(&format!("| `{kind}` |"))));
}

#[test]
fn gaussian_mean_needs_its_own_keys() {
    let text = r#"
name = "m"
parties = ["a"]
[model]
kind = "gaussian_mean"
outcome = "y"
sd = 2.0
[columns]
y = { min = -5, max = 5 }
[privacy]
epsilon = 1
delta = 1e-6
noise_sd = 2
clip = 0.5
"#;
    let job = JobSpec::parse(text).unwrap();
    assert_eq!(job.model.parameter_names(), ["mean"]);
    assert_eq!((job.privacy.noise.sd(), job.privacy.clip), (2.0, Some(ClipRule::PerRecord(0.5))));
    assert_eq!(JobSpec::parse(&text.replace("sd = 2.0", "")).unwrap_err().key, "model.sd");
    assert_eq!(JobSpec::parse(&text.replace("sd = 2.0", "sd = 2.0\npredictors = []")).unwrap_err().key, "model.predictors");
    assert_eq!(JobSpec::parse(&text.replace("min = -5, max = 5", "binary = true")).unwrap_err().key, "columns.y");
}

/// Omitted targets are those that a verdict on the draws requires.
#[test]
fn targets_of_a_run_may_be_left_to_the_verdict() {
    let of = |until: &str| JobSpec::parse(&JOB.replace("chains = 4", &format!("chains = 4\n{until}"))).unwrap().sampler.until;
    assert_eq!(of(""), None);
    assert_eq!(of("until = {}"), Some(Until { ess: 400.0, rhat: 1.01 }));
    assert_eq!(of("until = { ess = 1000 }"), Some(Until { ess: 1000.0, rhat: 1.01 }));
    assert_eq!(of("until = { rhat = 1.05 }"), Some(Until { ess: 400.0, rhat: 1.05 }));
}

/// A prior on a half-line or an interval narrows the box.
#[test]
fn a_priors_support_narrows_the_box() {
    let text = JOB.replace("[sampler]", "[prior]\nage = \"half_normal(1)\"\nbmi = \"uniform(-2, 3)\"\n[sampler]");
    let job = JobSpec::parse(&text).unwrap();
    let ends: Vec<(f64, f64)> = job.support.iter().map(|i| (i.min, i.max)).collect();
    assert_eq!(ends, [(-1e3, 1e3), (0.0, 1e3), (-2.0, 3.0)]);
    assert_eq!(job.priors[0], Prior::Normal { mean: 0.0, sd: 2.5 });
}

/// A default box covers an explicit prior and grows with it.
#[test]
fn a_default_box_does_not_cut_a_written_prior() {
    let of = |prior: &str, table: &str| {
        let text = JOB.replace("[sampler]", &format!("[prior]\nage = \"{prior}\"\n{table}\n[sampler]"));
        JobSpec::parse(&text).map(|job| (job.support[1].min, job.support[1].max))
    };
    assert_eq!(of("normal(5000, 100)", ""), Ok((-6e3, 6e3)));
    assert_eq!(of("uniform(500, 3000)", ""), Ok((500.0, 3e3)));
    assert_eq!(of("cauchy(0, 100)", ""), Ok((-1e4, 1e4)));
    assert_eq!(of("normal(0, 3e5)", ""), Ok((-1e6, 1e6)));
    // An explicit box is kept.
    assert_eq!(of("normal(5000, 100)", "[parameters]\nage = { min = 0, max = 10 }"), Ok((0.0, 10.0)));
    assert_eq!(of("normal(5000, 100)", "[parameters]\nage = { min = 0 }"), Ok((0.0, 6e3)));
    let error = of("normal(0, 2e6)", "").unwrap_err();
    assert!(error.key == "parameters.age" && error.message.contains("`min`"), "{error}");
    assert_eq!(of("normal(0, 2e6)", "[parameters]\nage = { min = -1e6, max = 1e6 }"), Ok((-1e6, 1e6)));
}

/// Parameters in the data's units have a default prior and box of that size.
#[test]
fn defaults_grow_with_the_declared_counts() {
    let of = |max: &str, prior: &str| {
        JobSpec::parse(&format!(
            "name = \"r\"\nparties = [\"a\"]\nmodel = {{ kind = \"poisson_mean\", outcome = \"n\" }}\n\
             columns = {{ n = {{ min = 0, max = {max} }} }}\nprior = {{ {prior} }}\nprivacy = {{ epsilon = 1.0, delta = 1e-6 }}\n"
        ))
    };
    for max in [1.0, 200.0, 5000.0, 1e9] {
        let job = of(&max.to_string(), "").unwrap();
        assert_eq!(job.priors, [Prior::HalfNormal { sd: 2.5 * max }]);
        assert_eq!(job.support, [Interval { min: LEAST_POSITIVE, max: 1e3 * max }]);
    }
    // A prior on rates near 2000, with a box beyond.
    let job = of("5000", "rate = \"gamma(20, 0.01)\"").unwrap();
    assert!(job.support[0].max >= 1e5, "{:?}", job.support);
    assert_eq!(of("9", "rate = \"gamma(2, 1e8)\"").unwrap_err().key, "parameters.rate", "its mean is below the least rate");
    assert_eq!(of("9", "rate = \"gamma(2, 1e-8)\"").unwrap_err().key, "parameters.rate");
    assert_eq!(of("9", "rate = \"inverse_gamma(0.001, 0.001)\"").unwrap().support[0].max, 9e6);
    assert_eq!(of("2e9", "").unwrap_err().key, "columns.n");
    let banana = "name = \"b\"\nparties = [\"a\"]\ncolumns = { y = { min = -300, max = 200 }, z = { min = 0, max = 40 } }\n\
                  model = { kind = \"banana\", outcome = \"y\", second_outcome = \"z\", a = 1.0, tau1 = 1.0, tau2 = 1.0 }\n\
                  privacy = { epsilon = 1.0, delta = 1e-6, clip = 1.0 }\n";
    let job = JobSpec::parse(banana).unwrap();
    assert_eq!(job.priors, [750.0, 100.0].map(|sd| Prior::Normal { mean: 0.0, sd }));
    assert_eq!(job.support, [3e5, 4e4].map(|max| Interval { min: -max, max }));
}
