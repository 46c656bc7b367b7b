//! The reports of a run: on its own draws, and on parties with wrong noise.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::hmc::tests::runs::data;
use crate::sampler::{Next, Sampler, Totals, build, settled};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase, Round};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::ModelData;

fn job(epsilon: f64, more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"w\"\nalgorithm = \"hmc\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"x\"]\n[columns]\ny = {{ binary = true }}\nx = {{ min = -1, max = 1 }}\n[privacy]\nepsilon = {epsilon:?}\n\
         delta = 1e-6\n{more}\n"
    ))
    .unwrap()
}

struct Ran {
    sampler: Box<dyn Sampler>,
    rounds: Vec<Round>,
    draws: Vec<Draw>,
}

/// Runs a job; `changed` sees, and may change, party b's releases.
fn run(spec: &JobSpec, records: usize, noise: u64, mut changed: impl FnMut(&Round, &mut Vec<i64>)) -> Ran {
    let shards = spec.parties.iter().map(|_| (data(records), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(noise)).unwrap();
    let mut ran = Ran { sampler: build(spec, &parties.metadata()).unwrap(), rounds: Vec::new(), draws: Vec::new() };
    while let Next::Ask(round) = ran.sampler.next_round().unwrap() {
        let Answer::Released(mut releases) = parties.answer(&round).unwrap() else { panic!("refused") };
        changed(&round, &mut releases[1]);
        ran.sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        ran.draws.extend(ran.sampler.take_draws());
        ran.rounds.push(round);
    }
    ran
}

fn is_gradient(kind: QueryKind) -> bool {
    matches!(kind, QueryKind::Gradient { .. })
}

/// With correct noise the only warning is about a small budget. A z of 4 has a probability of about 1e-4 in each of five figures.
#[test]
fn a_right_run_says_nothing_against_itself() {
    let ran = run(&job(8.0, "[sampler]\nseed = 3\n"), 20_000, 5, |_, _| {});
    let diagnostics = ran.sampler.report().gradients.unwrap();
    println!("{diagnostics:#?}");
    assert!(ran.sampler.ended_by_budget() && ran.sampler.warnings().is_empty(), "{:?}", ran.sampler.warnings());
    assert!(
        diagnostics.repeated_questions > 10 && diagnostics.repeated_answers.iter().all(|of| of.equal == 0 && of.p_value > 1e-4)
    );
    for identity in [diagnostics.kinetic, diagnostics.stein, diagnostics.mean_gradient].map(Option::unwrap) {
        assert!(identity.standard_error.is_some() && identity.z() < 4.0, "{identity:?}");
    }
    assert!(diagnostics.acceptance.unwrap() > 0.9 && diagnostics.energy_error.unwrap() < 0.2 && diagnostics.unasked < 0.01);
}

/// A party that stores its answers by point uses its noise twice, and is named.
#[test]
fn a_party_that_repeats_itself_is_named() {
    let mut kept: HashMap<String, Vec<i64>> = HashMap::new();
    let ran = run(&job(4.0, "[sampler]\nchains = 1\nseed = 3\n"), 20_000, 5, |round, releases| {
        if let [query] = round.queries.as_slice()
            && is_gradient(query.kind)
        {
            // Rounded, because the last bits may differ.
            let point = query.from.iter().map(|x| format!("{x:.9} ")).collect::<String>();
            *releases = kept.entry(point).or_insert_with(|| releases.clone()).clone();
        }
    });
    let diagnostics = ran.sampler.report().gradients.unwrap();
    assert!(
        diagnostics.repeated_answers[1].equal > 0 && diagnostics.repeated_answers[0].equal == 0,
        "{:?}",
        diagnostics.repeated_answers
    );
    let words = ran.sampler.warnings().join("\n");
    assert!(words.contains("b returned an identical noisy answer") && !words.contains("a returned an identical"), "{words}");
}

/// Noise of twice the charged sd has a chi-square four times too large: on 40 degrees of freedom p is below 1e-12. It also warms
/// the momenta.
#[test]
fn a_party_with_other_noise_is_named() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let ran = run(&job(4.0, "[sampler]\nseed = 3\n"), 20_000, 5, |round, releases| {
        let mut at = 0;
        for query in &round.queries {
            for release in &mut releases[at..at + query.length()] {
                if is_gradient(query.kind) && round.phase != Phase::Locate {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    *release += (3.0_f64.sqrt() * query.noise.units() as f64 * z) as i64;
                }
            }
            at += query.length();
        }
    });
    let words = ran.sampler.warnings().join("\n");
    assert!(words.contains("the noise of b does not match its charge") && !words.contains("the noise of a does"), "{words}");
    assert!(words.contains("the momenta have"), "{words}");
}

/// The number of chains that suits the budget, if the job leaves it open, before the first query; the sampler runs that number.
#[test]
fn the_budget_is_worth_so_many_chains() {
    let parties = PartyMetadata::of_rows(&[20_000, 20_000]);
    for (epsilon, chains) in [(0.5, 1), (2.5, 2), (8.0, 4)] {
        let spec = job(epsilon, "[sampler]\ndraws = 5\n");
        let planned = settled(&spec, &parties);
        println!(
            "epsilon {epsilon}: {:?}, {} chains",
            crate::sampler::outlook(&unlimited(&spec), &parties),
            planned.sampler.chains
        );
        assert!(spec.plans_chains() && spec.sampler.chains == 4 && !planned.plans_chains());
        assert_eq!(planned.sampler.chains, chains);
        let ran = run(&spec, 20_000, 5, |_, _| {});
        let walking = ran.rounds.iter().find(|round| round.phase != Phase::Locate).unwrap();
        assert_eq!(walking.queries.len(), chains as usize);
        // The result is the same as for a job that states the number; five draws are all that the job asks for.
        assert!(!ran.sampler.ended_by_budget());
        assert_eq!(
            ran.draws,
            run(&job(epsilon, &format!("[sampler]\ndraws = 5\nchains = {chains}\n")), 20_000, 5, |_, _| {}).draws
        );
    }
    for named in ["chains = 3", "until = { ess = 50 }"] {
        let spec = job(0.35, &format!("[sampler]\n{named}\n"));
        assert_eq!((spec.plans_chains(), &*settled(&spec, &parties)), (false, &spec), "{named}");
    }
}

fn unlimited(spec: &JobSpec) -> JobSpec {
    let mut spec = spec.clone();
    spec.sampler.draws = u64::MAX;
    spec
}

/// A box of two posterior sds: midpoints are queried up to half its width beyond either end, and draws follow the posterior
/// within it. That is nearly uniform there, and its mean agrees with quadrature to 5 Monte Carlo errors.
#[test]
fn a_narrow_box_is_walked_in() {
    const BOX: (f64, f64) = (0.77, 0.83);
    let more = format!("[parameters]\nx = {{ min = {}, max = {} }}\n[sampler]\nchains = 4\nseed = 3\n", BOX.0, BOX.1);
    let ran = run(&job(40.0, &more), 10_000, 5, |_, _| {});
    let middles: Vec<f64> = ran
        .rounds
        .iter()
        .filter(|round| round.phase != Phase::Locate)
        .flat_map(|round| &round.queries)
        .filter(|query| is_gradient(query.kind))
        .map(|query| query.from[1])
        .collect();
    let half = 0.5 * (BOX.1 - BOX.0);
    assert!(middles.iter().all(|x| (BOX.0 - half..=BOX.1 + half).contains(x)));
    let outside = middles.iter().filter(|x| !(BOX.0..=BOX.1).contains(*x)).count() as f64 / middles.len() as f64;
    let kept: Vec<f64> = ran.draws.iter().filter(|draw| !draw.warmup).map(|draw| draw.theta[1]).collect();
    assert!(kept.iter().all(|x| (BOX.0..=BOX.1).contains(x)));
    let data = data(10_000);
    let log_likelihood = |b: f64, a: f64| -> f64 {
        let of = |(y, x): (&f64, &f64)| {
            let z = b + a * x;
            y * z - z.exp().ln_1p()
        };
        2.0 * data.outcome.iter().zip(&data.predictors[0]).map(of).sum::<f64>()
    };
    // The best intercept for each slope: the rest is a constant there.
    let profile = |a: f64| (0..60).map(|i| log_likelihood(0.2 + 0.004 * f64::from(i), a)).fold(f64::NEG_INFINITY, f64::max);
    let slopes: Vec<f64> = (0..60).map(|i| BOX.0 + (BOX.1 - BOX.0) * (f64::from(i) + 0.5) / 60.0).collect();
    let logs: Vec<f64> = slopes.iter().map(|a| profile(*a)).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|l| (l - most).exp()).collect();
    let exact = slopes.iter().zip(&weights).map(|(a, w)| a * w).sum::<f64>() / weights.iter().sum::<f64>();
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let sd = (kept.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / kept.len() as f64).sqrt();
    let chains: Vec<Vec<f64>> =
        (0..4).map(|chain| ran.draws.iter().filter(|d| !d.warmup && d.chain == chain).map(|d| d.theta[1]).collect()).collect();
    let ess = crate::diagnostics::ess(&chains.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let diagnostics = ran.sampler.report().gradients.unwrap();
    println!(
        "{outside:.3} of midpoints outside, {:.3} rejected without a query; {mean:.5}, {exact:.5} by quadrature; sd {sd:.5}, ess {ess:.0}",
        diagnostics.unasked
    );
    assert!(outside > 0.02 && diagnostics.unasked > 0.05);
    assert!((mean - exact).abs() < 5.0 * sd / ess.sqrt(), "{mean} {exact}");
}

/// Chains that start where the likelihood's slope is very different accept few steps (8%). After 50 steps the run stops, unless
/// it is forced. A correct run, which accepts 95%, never stops.
#[test]
fn chains_that_take_no_step_are_given_up() {
    let far = "chains = 1\nstarts = [{ intercept = 9.5, x = -9.5 }]";
    let ran = |more: &str| run(&job(4.0, &format!("[sampler]\nseed = 3\ndraws = 60\n{more}\n")), 20_000, 5, |_, _| {});
    let stuck = ran(far);
    let word = stuck.sampler.futility().unwrap().word(&job(4.0, ""));
    assert!(word.contains("stopped for futility") && word.contains("% were taken"), "{word}");
    assert!(ran(&format!("force = true\n{far}")).sampler.futility().is_none() && ran("chains = 1").sampler.futility().is_none());
}

/// A budget that its search shows to allow fewer than 20 effective draws is not spent. The draws are then from the search's releases,
/// once, and no adequate answer. The same job continues where it is forced, or with one chain or few draws that it asks for itself.
#[test]
fn a_budget_for_too_few_draws_is_kept_after_the_search() {
    let searched = |more: &str| {
        let spec = job(0.3, &format!("[sampler]\nseed = 3\n{more}\n"));
        let shards = spec.parties.iter().map(|_| (data(20_000), PrivacyUnit::default())).collect();
        let mut parties = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
        let mut sampler = build(&spec, &parties.metadata()).unwrap();
        let spec = settled(&spec, &parties.metadata()).into_owned();
        while let Next::Ask(round) = sampler.next_round().unwrap() {
            if round.phase != Phase::Locate {
                break;
            }
            let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("refused") };
            sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        }
        (sampler, spec)
    };
    for chains in ["", "chains = 1", "chains = 4"] {
        let (mut sampler, spec) = searched(&format!("draws = 500\n{chains}"));
        let word = sampler.futility().unwrap().word(&spec);
        println!("{word}");
        assert!(word.contains("after its search") && sampler.take_draws().is_empty(), "{word}");
        sampler.conclude().unwrap();
        sampler.conclude().unwrap();
        let draws = sampler.take_draws();
        assert_eq!(draws.len() as u64, 500 * u64::from(spec.sampler.chains));
        let of = |parameter: usize| -> Vec<Vec<f64>> {
            let of_chain = |chain| draws.iter().filter(|d| d.chain == chain).map(|d| d.theta[parameter]).collect();
            (0..spec.sampler.chains).map(of_chain).collect()
        };
        let slope = of(1);
        let summary = crate::diagnostics::summarise(&slope.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let verdict = crate::sampler::Adequacy::of(&sampler.report(), &[("x", summary)]);
        println!("{summary:?} {verdict:?}");
        assert!(!verdict.adequate && verdict.reasons.iter().any(|reason| reason.contains("was planned for")), "{verdict:?}");
        // The draws pass the checks of a release's answer, and state that most of the budget is unspent.
        let inference = sampler.report().inference.unwrap();
        assert!(verdict.figures.contains_key("spread") && inference.stages.last().is_some_and(|stage| stage.last), "{verdict:?}");
        assert!(inference.warnings.iter().any(|warning| warning.contains("ended before its last stage")), "{inference:?}");
        // What was learnt is kept: the slope, within its width.
        let (mode, _) = newton(&data(20_000), 2.0);
        assert!(((summary.mean - mode[1]) / summary.sd).abs() < 4.0, "{summary:?} {mode:?}");
        assert!(sampler.futility().is_some());
    }
    for continues in ["force = true", "draws = 5\nchains = 1"] {
        let (mut sampler, _) = searched(continues);
        assert!(sampler.futility().is_none(), "{continues}");
        sampler.conclude().unwrap();
        assert!(sampler.take_draws().is_empty() && sampler.report().inference.is_none(), "{continues}");
    }
}

/// The quadratic fit to all released slopes: its mean differs from the posterior's by its stated noise, with a root mean square
/// within [.4, 1.7] over 10 figures, and its sd without the noise is correct to 15%.
#[test]
fn slopes_make_a_quadratic() {
    let (mode, sd) = newton(&data(20_000), 2.0);
    let (mut z2, mut count) = (0.0, 0);
    for seed in 0..5 {
        let ran = run(&job(3.0, &format!("[sampler]\nseed = {seed}\n")), 20_000, seed, |_, _| {});
        let fitted = ran.sampler.report().surrogate.unwrap();
        assert_eq!(fitted.suppressed, None);
        for ((of, mode), sd) in fitted.parameters.iter().zip(mode).zip(sd) {
            let z = (of.mean - mode) / of.noise_sd;
            let own = (of.sd * of.sd - of.noise_sd * of.noise_sd).sqrt();
            println!("{}: off by {:.3} sd, {z:.2} of its noise; sd {:.3}", of.name, (of.mean - mode) / sd, own / sd);
            assert!((own / sd - 1.0).abs() < 0.15, "{own} {sd}");
            (z2, count) = (z2 + z * z, count + 1);
        }
    }
    let rms = (z2 / f64::from(count)).sqrt();
    assert!((0.4..1.7).contains(&rms), "{rms}");
}

/// Returns mode and sds of the posterior of these records repeated `times` times.
fn newton(data: &ModelData, times: f64) -> ([f64; 2], [f64; 2]) {
    let mut at = [0.0; 2];
    loop {
        let prior = (2.5_f64).powi(-2);
        let (mut slope, mut h) = ([-prior * at[0], -prior * at[1]], [prior, 0.0, prior]);
        for (y, x) in data.outcome.iter().zip(&data.predictors[0]) {
            let p = 1.0 / (1.0 + (-at[0] - at[1] * x).exp());
            let w = times * p * (1.0 - p);
            slope = [slope[0] + times * (y - p), slope[1] + times * (y - p) * x];
            h = [h[0] + w, h[1] + w * x, h[2] + w * x * x];
        }
        let det = h[0] * h[2] - h[1] * h[1];
        let step = [(h[2] * slope[0] - h[1] * slope[1]) / det, (h[0] * slope[1] - h[1] * slope[0]) / det];
        at = [at[0] + step[0], at[1] + step[1]];
        if step.iter().all(|s| s.abs() < 1e-12) {
            return (at, [(h[2] / det).sqrt(), (h[0] / det).sqrt()]);
        }
    }
}
