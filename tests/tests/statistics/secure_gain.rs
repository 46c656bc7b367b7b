//! Gain from masks: where only the parties' sum is opened and `t` of `N` parties collude, each party is charged `1/h` of the
//! price, `h = N - t`, and a budget buys `h` times the effective draws. Measured with whole runs of the samplers on parties that
//! add noise and charge as in reality.
//!
//! The kept draws of penalty chains follow from prices alone, with a limit of 2%: a price with one honest party too many or too
//! few (3 for 2, 8 for 9) is off by 50% or 12%. Those of gradients also depend on the search, which finds more from a less noisy
//! sum: the limit is a tenth.
//!
//! Effective draws, in the long tests, are a mean over 20 runs of four chains, each known to about 10%. For a correct price, the
//! ratio of two such means is within 10% of `h` with near certainty (three standard errors).

use conclave_common::job::JobSpec;
use conclave_tests::federation::{Federation, Run, Shard, absorb, next_round, sampler_of};

/// Number of runs of each job in the long tests.
const SEEDS: u64 = 20;

/// Creates a job at `parties` owners.
fn job(parties: usize, colluders: Option<usize>, rest: &str) -> JobSpec {
    let names: Vec<String> = (0..parties).map(|i| format!("\"p{i}\"")).collect();
    let aggregation = colluders.map(|t| format!("[aggregation]\nmode = \"secure\"\ncolluders = {t}\n")).unwrap_or_default();
    let text = format!("name = \"gain\"\nparties = [{}]\n{rest}{aggregation}", names.join(", "));
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

const LOGISTIC: &str = "[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\ny = { binary = true }\n\
                        x = { min = -1, max = 1 }\n[prior]\ndefault = \"normal(0, 2.5)\"\n";
const BERNOULLI: &str = "[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n";

/// Returns 4,000 records with a known mode: log odds of 0.4895 where x is 1, the negative of that where it is -1, and 0 overall.
fn cells(predictors: usize) -> Shard {
    let rows = [(1.0, 1.0, 1_240), (0.0, 1.0, 760), (1.0, -1.0, 760), (0.0, -1.0, 1_240)];
    Shard::weighted(rows.map(|(y, x, n)| (y, vec![x; predictors], n)))
}

fn run(spec: &JobSpec, seed: u64) -> (Run, f64) {
    let predictors = spec.dimension() - 1;
    let shards = (0..spec.parties.len()).map(|_| cells(predictors)).collect();
    let mut federation = Federation::new(spec.clone(), shards, seed);
    let run = federation.run();
    (run, federation.mu_squared / federation.budget)
}

/// Returns kept draws of a chain and effective draws, averaged over seeds and parameters.
fn draws_and_ess(spec: &JobSpec, seeds: u64) -> (f64, f64) {
    let (mut draws, mut ess) = (0.0, 0.0);
    for seed in 0..seeds {
        let mut spec = spec.clone();
        spec.sampler.seed = 1000 + seed;
        let (run, used) = run(&spec, seed);
        assert!(used > 0.95, "the budget is used: {used}");
        let parameters = run.draws.len();
        draws += run.draws[0][0].len() as f64 / seeds as f64;
        ess += (0..parameters).map(|j| run.summary(j).ess_bulk).sum::<f64>() / (seeds * parameters as u64) as f64;
    }
    (draws, ess)
}

/// Checks jobs of this algorithm, model and sampler, with `seeds` runs each; effective draws only where the runs suffice.
fn check(algorithm: &str, (model, sampler): (&str, Sampler), epsilon: f64, (draws_within, seeds): (f64, u64)) {
    for (parties, h) in [(3, 2.0), (5, 4.0), (10, 9.0)] {
        let privacy = format!("[privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\n");
        let rest = format!("algorithm = \"{algorithm}\"\n{model}{}{privacy}", sampler(parties));
        let (local, secure) =
            (draws_and_ess(&job(parties, None, &rest), seeds), draws_and_ess(&job(parties, Some(1), &rest), seeds));
        let (draws, ess) = (secure.0 / local.0 / h, secure.1 / local.1 / h);
        println!("{algorithm} {parties}: ess {:.0} to {:.0}, {ess:.3} of {h}; draws {draws:.3} of it", local.1, secure.1);
        assert!((draws - 1.0).abs() < draws_within, "{parties}: {draws} of {h} times the draws");
        assert!(seeds < SEEDS || (ess - 1.0).abs() < 0.1, "{parties}: {ess} of {h} times the effective draws");
    }
}

type Sampler = fn(usize) -> String;

/// Penalty chains with a fixed step length, started at the mode.
fn penalty_chains(parties: usize) -> String {
    let radius = 0.44 * 2.0 / ((4_000 * parties) as f64).sqrt();
    format!(
        "[sampler]\nchains = 4\ndraws = 1000000\nwarmup = 0\nstart = {{ p = 0.5 }}\n\
         proposal = {{ kind = \"guided\", radius = {radius} }}\nforce = true\n"
    )
}

/// HMC chains with a fixed step length: for a larger budget the planner would choose longer steps.
fn hmc_chains(_: usize) -> String {
    "[sampler]\nchains = 4\ndraws = 1000000\nstep = 0.5\nfriction = 1.0\nwarmup = 10\nforce = true\n".to_owned()
}

#[test]
fn a_budget_buys_h_times_the_draws() {
    check("penalty", (BERNOULLI, penalty_chains), 1.0, (0.02, 1));
    check("hmc", (LOGISTIC, hmc_chains), 3.0, (0.1, 1));
}

#[test]
#[ignore = "takes minutes"]
fn penalty_chains_have_h_times_the_effective_draws() {
    check("penalty", (BERNOULLI, penalty_chains), 6.0, (0.02, SEEDS));
}

#[test]
#[ignore = "takes minutes"]
fn hmc_chains_have_h_times_the_effective_draws() {
    check("hmc", (LOGISTIC, hmc_chains), 6.0, (0.1, SEEDS));
}

/// The noise of a single release decreases by the root of `h`, and so does the error of the answer. The rms errors of 200 runs
/// are known to a twentieth. A price with the wrong number of honest parties is off by more than a fifth for 3 parties, and the
/// noise scale itself shows it for 10.
#[test]
fn a_single_release_errs_less_by_the_root_of_h() {
    for (parties, h) in [(3, 2.0_f64), (10, 9.0)] {
        let rest = format!(
            "algorithm = \"noisy-statistics\"\n{BERNOULLI}[sampler]\nchains = 1\ndraws = 200\nforce = true\n[privacy]\nepsilon = 0.02\ndelta = 1e-6\n"
        );
        let of = |colluders| {
            let spec = job(parties, colluders, &rest);
            let (mut squares, mut noise) = (0.0, 0.0);
            for seed in 0..200 {
                let mut federation = Federation::new(spec.clone(), (0..parties).map(|_| cells(0)).collect(), seed);
                let mut sampler = sampler_of(&spec, &federation.records());
                while let Some(round) = next_round(sampler.as_mut()) {
                    noise = round.queries[0].noise.sd();
                    let releases = federation.answer(&round).expect("the budget holds it");
                    absorb(sampler.as_mut(), &round, &releases);
                }
                let draws = sampler.take_draws();
                let mean = draws.iter().map(|draw| draw.theta[0]).sum::<f64>() / draws.len() as f64;
                squares += (mean - 0.5).powi(2);
            }
            (noise, (squares / 200.0).sqrt())
        };
        let (local, secure) = (of(None), of(Some(1)));
        println!("{parties}: errors {:.4} and {:.4}, noise {:.3} and {:.3}", local.1, secure.1, local.0, secure.0);
        assert!((local.0 / secure.0 / h.sqrt() - 1.0).abs() < 0.01, "{parties}: {} of {}", local.0 / secure.0, h.sqrt());
        assert!((local.1 / secure.1 / h.sqrt() - 1.0).abs() < 0.2, "{parties}: {} of {}", local.1 / secure.1, h.sqrt());
    }
}
