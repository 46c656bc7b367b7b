#![allow(clippy::unwrap_used)]

mod driven;

use super::*;
use crate::sampler::acceptance;
use conclave_common::job::*;

fn mean_job(sampler: &str, privacy: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"m\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
         y = {{ min = -3, max = 5 }}\n[prior]\ndefault = \"normal(0, 2.5)\"\n[sampler]\n{sampler}\n[privacy]\n{privacy}"
    ))
    .unwrap()
}

/// The small-step law holds for the walk: kappa is the measured figure of each proposal, and acceptance follows Proposition 1.
///
/// 120,000 queries determine effective sample sizes to about 5%, and acceptance to 0.005.
#[test]
fn the_walk_obeys_the_law() {
    for (kind, radius, noise) in [("guided", 0.44, "auto"), ("componentwise", 0.44, "auto"), ("guided", 0.2, "1.0")] {
        let sd = 0.01;
        let noise = if noise == "auto" { "\"auto\"" } else { noise };
        let spec = mean_job(
            &format!("start = {{ mean = 0 }}\nproposal = {{ kind = \"{kind}\", radius = {} }}\ndraws = 2000", radius * sd),
            &format!("epsilon = 3.0\ndelta = 1e-6\nnoise_sd = {noise}"),
        );
        let plan = plan(&spec, &Guess::independent(vec![1000, 3000], vec![0.1], &[sd])).unwrap();
        let sigma = (2.0 * spec.privacy.noise.variance()).sqrt();
        // A step of radius r posterior sds has a log ratio N(-r^2/2, r^2): with the noise, acceptance is 2 Phi(-sqrt(r^2 + sigma^2)/2).
        let expected = acceptance::expected_acceptance(0.0, (sigma * sigma + radius * radius).sqrt());
        assert!((plan.acceptance_rate - expected).abs() < 0.01, "{kind}: {} against {expected}", plan.acceptance_rate);
        assert!((plan.acceptance_small_steps - acceptance::expected_acceptance(0.0, sigma)).abs() < 1e-12);
        if sigma > 1.5 {
            let ratio = plan.ess[0].kappa / kappa(spec.sampler.proposal);
            assert!((0.8..1.25).contains(&ratio), "{kind}: kappa {}", plan.ess[0].kappa);
        }
    }
}

/// Subsampled ratios are answered with sampling noise and paid in blocks. Half of the short steps are accepted, and a larger
/// budget buys the draws.
#[test]
fn barker_over_samples_is_planned_in_blocks() {
    let spec = |epsilon: f64| {
        let text = format!(
            "name = \"m\"\nalgorithm = \"barker\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n\
             [columns]\ny = {{ min = -3, max = 5 }}\n[sampler]\ndraws = 1000\nchains = 2\nwarmup = 10\nbatch = 0.5\n\
             [privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\nclip = 0.05\n"
        );
        JobSpec::parse(&text).unwrap()
    };
    let guess = Guess::independent(vec![20_000, 20_000], vec![0.1], &[0.005]);
    let (small, large) = (plan(&spec(3.0), &guess).unwrap(), plan(&spec(40.0), &guess).unwrap());
    println!("{small:?}\n{large:?}");
    assert!((large.acceptance_rate - 0.49).abs() < 0.03, "{}", large.acceptance_rate);
    assert_eq!((large.draws, large.stopped_by), (1000, "draws"));
    assert!(large.ess[0].ess > 60.0 && large.ess[0].ess < 200.0, "{:?}", large.ess);
    assert!(small.draws <= large.draws && small.budget_share > large.budget_share);
}

/// A job by any algorithm has a row of its own, and its chains have a plan: with the requested draws if the budget is ample, and
/// with fewer or none if it is not.
#[test]
fn every_algorithm_of_the_papers_is_planned() {
    let spec = |algorithm: &str, more: &str, epsilon: f64| {
        let text = format!(
            "name = \"l\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n\
             [columns]\ny = {{ binary = true }}\nx = {{ min = -1, max = 1 }}\n[sampler]\nchains = 1\ndraws = 150\n{more}\n\
             [privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\n"
        );
        JobSpec::parse(&text).unwrap()
    };
    let guess = || Guess::independent(vec![50_000], vec![0.1, 0.2], &[0.009, 0.016]);
    for (algorithm, more) in [
        ("barker", ""),
        ("sgld", ""),
        ("sghmc", ""),
        ("sgnht", ""),
        ("sgfs", ""),
        ("sgld", "batch = 0.5"),
        ("hmc", "friction = 0\nrefresh = 5"),
    ] {
        let ample = spec(algorithm, more, 60.0);
        let planned = plan(&ample, &guess()).unwrap();
        assert_eq!((planned.draws, planned.stopped_by), (150, "draws"), "{algorithm} {more}: {planned:?}");
        assert!(planned.budget_share > 0.0 && planned.budget_share <= 1.0, "{algorithm} {more}: {}", planned.budget_share);
        let ess = planned.ess[0].ess;
        let rows = compare(&ample, &[50_000], &[(ample.algorithm, planned)]).unwrap();
        let row = rows.iter().find(|row| row.algorithm == algorithm).unwrap();
        assert!(!row.refused && row.expected_error.is_some_and(|error| error.best > 0.0 && error.best < 1.0), "{row:?}");
        // A thousandth of that budget promises less: no draws, fewer draws, or steps so short that the draws are worth less.
        let scant = plan(&spec(algorithm, more, 0.06), &guess());
        let less = |plan: Plan| plan.draws < 150 || plan.ess[0].ess < 0.5 * ess;
        assert!(scant.map_or(true, less), "{algorithm} {more}");
    }
    let choice = spec("ops", "candidates = 512", 60.0);
    let rows = compare(&choice, &[50_000], &[]).unwrap();
    assert!(rows.iter().any(|row| row.algorithm == "ops" && !row.refused && row.note.contains("512 candidates")), "{rows:?}");
}

#[test]
fn accountings_stand_in_their_order_and_a_budget_of_any_size_is_counted() {
    for epsilon in [0.5, 3.0, 30.0] {
        let spec = mean_job(
            "chains = 2\nwarmup = 10\nstart = { mean = 0 }\nproposal = { kind = \"guided\", radius = 0.001 }",
            &format!("epsilon = {epsilon}\ndelta = 1e-6"),
        );
        let plan = plan(&spec, &Guess::independent(vec![5_000_000, 5_000_000], vec![0.0], &[0.002])).unwrap();
        let PartyPlan { iterations_gdp, iterations_zcdp, iterations_advanced, .. } = plan.parties[0].clone();
        assert!(iterations_gdp > iterations_zcdp && iterations_zcdp > iterations_advanced, "{plan:?}");
        let looser = iterations_gdp as f64 / iterations_zcdp as f64;
        assert!((1.0..1.3).contains(&looser), "{looser}");
    }
}

#[test]
fn advice_says_what_ends_the_run() {
    let sampler = |draws: u64| {
        format!("warmup = 0\nstart = {{ mean = 0 }}\nproposal = {{ kind = \"componentwise\", radius = 0.004 }}\ndraws = {draws}")
    };
    let privacy = "epsilon = 3.0\ndelta = 1e-6\nnoise_sd = 6";
    let guess = Guess::independent(vec![10_000, 10_000], vec![0.0], &[0.01]);
    let short = plan(&mean_job(&sampler(50), privacy), &guess).unwrap();
    assert_eq!((short.stopped_by, short.draws), ("draws", 50));
    let words = short.advice.join("\n");
    for word in ["would use it all", "effective draws", "noise_sd at \"auto\"", "guided"] {
        assert!(words.contains(word), "{word} in {words}");
    }
    let long = plan(&mean_job(&sampler(10_000_000), privacy), &guess).unwrap();
    assert_eq!(long.stopped_by, "budget");
    // The remaining budget does not buy another round.
    assert!(
        long.budget_share > 1.0 - 1.0 / long.iterations as f64 && long.iterations == long.parties[0].iterations_gdp,
        "{long:?}"
    );
    assert!(long.ess[0].ess < 1.0, "chains that hardly ever move: {long:?}");
    assert!(long.advice[0].contains("the budget ends the run"), "{:?}", long.advice);
}

#[test]
fn a_guess_that_does_not_fit_is_refused() {
    let spec = mean_job("start = { mean = 0 }", "epsilon = 1\ndelta = 1e-6");
    for guess in [
        Guess::independent(vec![10], vec![0.0], &[0.1]),
        Guess::independent(vec![10, 0], vec![0.0], &[0.1]),
        Guess::independent(vec![10, 10], vec![0.0, 1.0], &[0.1, 0.1]),
        Guess::independent(vec![10, 10], vec![f64::NAN], &[0.1]),
        Guess::independent(vec![10, 10], vec![0.0], &[0.0]),
    ] {
        assert!(matches!(plan(&spec, &guess), Err(PlanError::Guess(_))));
    }
}

/// The forecast for a chain without a guess of the posterior agrees with the plan from the exact posterior of best-case records
/// within a factor of 1.7. The law assumes small steps and independent coordinates, and the walk's start has a cost.
#[test]
fn a_chains_error_is_expected_as_it_is_planned() {
    let n = 90_000.0_f64;
    let plain = |information: &[f64]| information.iter().map(|one| (n * one).sqrt().recip()).collect::<Vec<f64>>();
    let u = "u = { min = -1, max = 1 }\nv = { min = -1, max = 1 }";
    let third = 1.0 / 3.0;
    for (model, columns, mean, sd) in [
        (
            "kind = \"logistic\"\npredictors = [\"u\", \"v\"]",
            "y = { binary = true }",
            vec![0.0; 3],
            plain(&[0.25, 0.25 * third, 0.25 * third]),
        ),
        (
            "kind = \"linear\"\nsd = 0.3\npredictors = [\"u\", \"v\"]",
            "y = { min = -1, max = 1 }",
            vec![0.0; 3],
            plain(&[1.0, third, third].map(|i| i / 0.09)),
        ),
        ("kind = \"bernoulli\"", "y = { binary = true }", vec![0.5], vec![(0.25 / n).sqrt()]),
        ("kind = \"gaussian_mean\"\nsd = 0.3", "y = { min = -1, max = 1 }", vec![0.0], plain(&[1.0 / 0.09])),
    ] {
        let spec = JobSpec::parse(&format!(
            "name = \"e\"\nalgorithm = \"penalty\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\noutcome = \"y\"\n{model}\n[columns]\n{columns}\n{u}\n[sampler]\n\
             draws = 10_000_000\nwarmup = 20\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
        ))
        .unwrap();
        let records = vec![30_000; 3];
        let planned = plan(&spec, &Guess::independent(records.clone(), mean, &sd)).unwrap();
        assert_eq!(planned.stopped_by, "budget");
        let with_guess = compare(&spec, &records, &[(Algorithm::Penalty, planned)]).unwrap();
        let without = compare(&spec, &records, &[]).unwrap();
        let error = |rows: &[AlgorithmPlan]| rows.iter().find(|row| row.algorithm == "penalty").unwrap().expected_error.unwrap();
        let (planned, expected) = (error(&with_guess), error(&without));
        println!("{model}: planned {planned:?}, expected {expected:?}");
        let ratio = expected.best / planned.best;
        assert!((1.0 / 1.7..1.7).contains(&ratio) && planned.best == planned.worse, "{model}: {expected:?} for {planned:?}");
        assert!(with_guess.last().unwrap().rounds.is_some() && without.last().unwrap().rounds.is_none());
    }
}

/// A budget that ends in the warm-up gives no draws.
#[test]
fn a_chain_without_a_draw_is_reported() {
    let spec = mean_job("warmup = 100_000", "epsilon = 0.1\ndelta = 1e-6").by(Algorithm::Penalty).unwrap();
    let rows = compare(&spec, &[100, 100], &[]).unwrap();
    let chain = rows.last().unwrap();
    assert!(chain.expected_error.unwrap().best.is_infinite() && chain.note.contains("before the first kept draw"), "{chain:?}");
    assert!(matches!(compare(&spec, &[100], &[]), Err(PlanError::Guess(_))));
}

/// The correlations of the guess are used. Errors name an invalid pair or correlation.
#[test]
fn correlations_of_the_guess_are_planned_with() {
    let job = |plan: &str| {
        JobSpec::parse(&format!(
            "name = \"c\"\nalgorithm = \"penalty\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"t\"]\n[columns]\n\
             y = {{ binary = true }}\nt = {{ binary = true }}\n[sampler]\nwarmup = 5\ndraws = 4000\nstart = {{ intercept = 0, t = 0 }}\n\
             [privacy]\nepsilon = 20.0\ndelta = 1e-6\n[plan]\nrecords = 5000\n{plan}"
        ))
    };
    let posterior = "posterior.intercept = { mean = 0, sd = 0.04 }\nposterior.t = { mean = 0, sd = 0.057 }\n";
    let planned = |correlations: &str| {
        let spec = job(&format!("{posterior}{correlations}")).unwrap();
        let guess = Guess::of_plan(spec.plan.as_ref().unwrap(), vec![5000]).unwrap();
        plan(&spec, &guess)
    };
    let least = |plan: &Plan| plan.ess.iter().map(|row| row.ess).fold(f64::INFINITY, f64::min);
    let (unsaid, independent) = (planned("").unwrap(), planned("correlations = []\n").unwrap());
    let together = planned("correlations = [[\"t\", \"intercept\", -0.9]]\n").unwrap();
    assert_eq!(unsaid.ess, independent.ess);
    // Steps along the coordinates are 0.44 times as long, and a step's direction has a fifth of the total information: a factor
    // of about 5.
    assert!(least(&together) < 0.4 * least(&unsaid), "{:?} and {:?}", together.ess, unsaid.ess);
    let warned = |plan: &Plan| plan.advice.iter().any(|sentence| sentence.contains("plan.correlations"));
    assert!(warned(&unsaid) && !warned(&independent) && !warned(&together));
    for (pairs, word) in [
        ("[[\"t\", \"t\", 0.1]]", "the same parameter"),
        ("[[\"t\", \"intercept\", 0.1], [\"intercept\", \"t\", 0.1]]", "twice"),
        ("[[\"t\", \"age\", 0.1]]", "no parameter `age`"),
        ("[[\"t\", \"intercept\", 1]]", "between -1 and 1"),
    ] {
        let error = job(&format!("{posterior}correlations = {pairs}\n")).unwrap_err();
        assert!(error.key.starts_with("plan.correlations") && error.message.contains(word), "{error}");
    }
    assert!(job("correlations = []\n").unwrap_err().message.contains("plan.posterior"));
}

/// Clip counts of a stand-in whose contributions are never clipped do not change the plan, whatever is subtracted from a record's
/// ratio.
#[test]
fn a_clip_that_leaves_the_range_whole_is_planned() {
    let privacy = |clip: &str| format!("epsilon = 8.0\ndelta = 1e-6\n{clip}");
    let sampler = "warmup = 10\nstart = { mean = 0 }\nproposal = { radius = 0.004 }\ndraws = 200";
    let guess = Guess::independent(vec![10_000, 10_000], vec![0.0], &[0.01]);
    let plain = plan(&mean_job(sampler, &privacy("")), &guess).unwrap();
    let clipped = plan(&mean_job(sampler, &privacy("clip = 10.0\nclip_watch_share = 0.05")), &guess).unwrap();
    assert!(clipped.draws > 0 && (clipped.draws as f64 / plain.draws as f64 - 1.0).abs() < 0.2, "{clipped:?}");
}

/// The epsilon that a plan without draws suggests gives the first draws, and exceeds the necessary epsilon only slightly.
#[test]
fn a_plan_without_draws_names_what_would_do() {
    let job = |epsilon: f64| {
        let privacy = format!("epsilon = {epsilon}\ndelta = 1e-6");
        mean_job("warmup = 200\nstart = { mean = 0 }\nproposal = { radius = 0.004 }\ndraws = 2000", &privacy)
    };
    let guess = Guess::independent(vec![10_000, 10_000], vec![0.0], &[0.01]);
    let none = plan(&job(0.5), &guess).unwrap();
    assert_eq!(none.draws, 0);
    let named = |after: &str| -> f64 {
        let (_, rest) = none.advice[0].split_once(after).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let (first, wanted) = (named("draw: epsilon = "), named("ones, epsilon = "));
    assert!(
        plan(&job(first), &guess).unwrap().draws > 0 && plan(&job(0.9 * first), &guess).unwrap().draws == 0,
        "{:?}",
        none.advice
    );
    let enough = plan(&job(wanted), &guess).unwrap();
    assert!((300.0..700.0).contains(&enough.ess[0].ess) || enough.stopped_by == "draws", "{wanted}: {enough:?}");
}
