//! Runs on real kernels, lattice and noise, in one process.

#![allow(clippy::unwrap_used)]

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::hmc::tests::runs::data;
use crate::sampler::{Next, Sampler, SamplerError, Totals, build, settled};
use conclave_common::job::{HmcTest, JobSpec};
use conclave_common::query::{Draw, Phase, Round};
use conclave_privacy::accounting::{Adjacency, PrivacyFilter, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;

fn job(sampler: &str, privacy: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"h\"\nalgorithm = \"hmc\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [\"x\"]\n[columns]\ny = {{ binary = true }}\nx = {{ min = -1, max = 1 }}\n[sampler]\n{sampler}\n\
         [privacy]\ndelta = 1e-6\n{privacy}\n"
    ))
    .unwrap()
}

struct Ran {
    sampler: Box<dyn Sampler>,
    rounds: Vec<Round>,
    draws: Vec<Draw>,
    spent: f64,
}

/// Runs a job, with a replica that sends the same queries, bit for bit, from the answers alone.
fn run(spec: &JobSpec, unit: PrivacyUnit) -> Result<Ran, SamplerError> {
    let shards = spec.parties.iter().map(|_| (data(20_000), unit)).collect();
    let mut rehearsal = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
    let (mut sampler, mut replica) = (build(spec, &rehearsal.metadata())?, build(spec, &rehearsal.metadata())?);
    let (mut rounds, mut draws) = (Vec::new(), Vec::new());
    while let Next::Ask(round) = sampler.next_round()? {
        let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("refused") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap())?;
        assert_eq!(replica.replay(round.iteration, &releases).unwrap(), round);
        let made = sampler.take_draws();
        assert_eq!(replica.take_draws(), made);
        draws.extend(made);
        rounds.push(round);
    }
    let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units() as f64;
    let spent = rehearsal.spent().into_iter().map(|(_, units)| units as f64 / limit).fold(0.0, f64::max);
    Ok(Ran { sampler, rounds, draws, spent })
}

/// One gradient per kick of a trajectory, and then a ratio with the job's own noise or the default; to the end of the budget. The
/// accepted share is as planned, within 4 standard errors of .024 for about 400 trajectories.
#[test]
fn a_run_asks_trajectories_of_gradients_and_then_a_ratio() {
    for (noise, sd) in [("epsilon = 8.0", 1.25), ("epsilon = 8.0\nnoise_sd = 0.5", 0.5 * 2.0_f64.sqrt())] {
        let spec = job("chains = 2\nseed = 3\nfriction = 0\nrefresh = 4\ndraws = 1000000", noise);
        assert_eq!((spec.sampler.hmc.test, spec.releases()), (HmcTest::Ratio { kicks: 4 }, vec!["score", "ratio"]));
        let ran = run(&spec, PrivacyUnit::default()).unwrap();
        let walking = ran.rounds.iter().filter(|round| round.phase != Phase::Locate);
        for (message, round) in walking.enumerate() {
            let wanted = |kind: QueryKind| match message % 5 {
                4 => kind == QueryKind::Ratio,
                _ => matches!(kind, QueryKind::Gradient { parameters: 2 }),
            };
            assert!(round.queries.iter().all(|query| wanted(query.kind)), "{message}");
            let tests = round.queries.iter().filter(|query| query.kind == QueryKind::Ratio);
            tests.for_each(|query| assert!((query.noise.sd() * 2.0_f64.sqrt() - sd).abs() < 1e-3));
        }
        let diagnostics = ran.sampler.report().gradients.unwrap();
        println!("{sd}: {diagnostics:#?}, {} draws, spent {}", ran.draws.len(), ran.spent);
        assert_eq!((diagnostics.test, diagnostics.kicks, diagnostics.kinetic), (Some("ratio"), Some(4), None));
        let expected = super::super::law::accepted(1.6, sd * sd);
        assert!((diagnostics.acceptance.unwrap() - expected).abs() < 0.1, "{:?} of {expected}", diagnostics.acceptance);
        assert!(ran.spent > 0.97 && ran.spent <= 1.0 && ran.sampler.ended_by_budget(), "{}", ran.spent);
        assert!(ran.draws.iter().filter(|draw| !draw.warmup).count() > 100);
    }
}

/// Units of privacy other than replaced rows have no centre or no public count.
#[test]
fn other_units_of_privacy_are_served() {
    let spec = job("chains = 1\nseed = 3\nfriction = 0\nrefresh = 2\ndraws = 20\nrecords_guess = 20000", "epsilon = 20.0");
    let ran = run(&spec, PrivacyUnit::row(Adjacency::AddRemove)).unwrap();
    assert_eq!(ran.draws.iter().filter(|draw| !draw.warmup).count(), 20);
}

/// Shorter trajectories need more noise in every gradient; a step length that the job states is not shortened.
#[test]
fn more_noise_is_met_by_shorter_steps_or_refused() {
    let step = |sampler: &str| {
        let spec = job(&format!("chains = 1\ndraws = 3\nfriction = 0\n{sampler}"), "epsilon = 8.0\nnoise_multiplier = 300.0");
        run(&spec, PrivacyUnit::default()).map(|ran| ran.sampler.report().gradients.unwrap().step)
    };
    assert!(step("").unwrap() < 0.149);
    assert!(matches!(step("step = 0.15"), Err(SamplerError::TooMuchNoise { .. })));
}

/// Without a test: gradients only, every step accepted, and a warning that the draws are approximate.
#[test]
fn steps_without_a_test_ask_gradients_alone_and_say_so() {
    let spec = job("chains = 2\nseed = 3\ntest = \"none\"\ndraws = 200", "epsilon = 8.0");
    assert_eq!(spec.releases(), ["score"]);
    let ran = run(&spec, PrivacyUnit::default()).unwrap();
    let kinds = ran.rounds.iter().flat_map(|round| &round.queries).map(|query| query.kind);
    assert!(kinds.clone().all(|kind| matches!(kind, QueryKind::Gradient { .. } | QueryKind::Curvature { .. })));
    let diagnostics = ran.sampler.report().gradients.unwrap();
    assert_eq!((diagnostics.test, diagnostics.acceptance), (Some("none"), Some(1.0)));
    assert!(ran.sampler.warnings().iter().any(|word| word.contains("approximate")), "{:?}", ran.sampler.warnings());
}

/// The expectation before the first query and the plan after the search follow one law: within a factor of 2.
#[test]
fn effective_draws_are_foreseen_before_anything_is_asked() {
    let spec = job("chains = 2\nfriction = 0\ndraws = 1000000", "epsilon = 8.0");
    let shards = spec.parties.iter().map(|_| (data(20_000), PrivacyUnit::default())).collect();
    let metadata = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap().metadata();
    let outlook = crate::sampler::outlook(&settled(&spec, &metadata), &metadata).unwrap().unwrap();
    let planned = run(&spec, PrivacyUnit::default()).unwrap().sampler.report().gradients.unwrap().planned_ess;
    println!("foreseen {:.0} to {:.0}, planned {planned:.0}", outlook.worse.powi(-2), outlook.best.powi(-2));
    assert!(planned < 2.0 * outlook.best.powi(-2) && planned > 0.5 * outlook.worse.powi(-2), "{outlook:?} {planned}");
}
