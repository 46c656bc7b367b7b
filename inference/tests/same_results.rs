//! Runs of every algorithm with fixed seeds, and plans, reproduce the rounds, draws, reports and forecasts of previous builds bit for
//! bit. `same_bits.rs` explains what a changed digest means.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::model::assemble;
use conclave_common::query::PartyMetadata;
use conclave_common::schema::ColumnSpec;
use conclave_inference::planner::{Guess, compare, plan, prospect, range};
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, Totals};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::pass::ModelData;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

/// Largest number of rounds of a run.
const ROUNDS: u64 = 300;
/// Records of a party.
const RECORDS: usize = 3_000;

/// A job as its parts: algorithm, model, and further lines of `[sampler]` and `[privacy]`.
type Parts = (&'static str, Model, &'static str, &'static str);

#[derive(Clone, Copy, PartialEq)]
enum Model {
    Linear,
    Logistic,
    Mean,
    Share,
    Rate,
    Levels,
    Bayes,
}

impl Model {
    fn text(self) -> &'static str {
        match self {
            Self::Linear => {
                "[model]\nkind = \"linear\"\nsd = 0.4\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\n\
                 y = { min = -1, max = 1 }\nx = { min = -1, max = 1 }\n"
            }
            Self::Logistic => {
                "[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\ny = { binary = true }\n\
                 x = { min = -1, max = 1 }\n"
            }
            Self::Mean => "[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\ny = { min = -4, max = 4 }\n",
            Self::Share => "[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n",
            Self::Rate => "[model]\nkind = \"poisson_mean\"\noutcome = \"y\"\n[columns]\ny = { min = 0, max = 12 }\n",
            Self::Levels => {
                "[model]\nkind = \"multinomial\"\noutcome = \"y\"\n[columns]\ny = { levels = [\"p\", \"q\", \"r\"] }\n"
            }
            Self::Bayes => {
                "[model]\nkind = \"naive_bayes\"\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\n\
                 y = { levels = [\"p\", \"q\"] }\nx = { levels = [\"u\", \"v\", \"w\"] }\n"
            }
        }
    }

    /// The value of a column in a record, on the model's scale.
    fn value(self, column: &str, party: usize, i: usize) -> f64 {
        let hashed = |i: usize, by: usize| ((i * 7919 + by * 104_729 + party * 31) % 10_007) as f64 / 10_007.0;
        let (x, y) = (hashed(i, 1), hashed(i * 13, 2));
        match self {
            Self::Bayes if column == "x" => (3.0 * x).floor(),
            _ if column == "x" => x,
            Self::Linear | Self::Mean => 0.3 * x - 0.2 + 1.2 * (y - 0.5),
            Self::Logistic | Self::Share => f64::from(u8::from(y < 0.3 + 0.4 * x)),
            Self::Rate => (4.0 * y).floor() / 6.0 - 1.0,
            Self::Levels => (3.0 * y).floor(),
            Self::Bayes => (2.0 * y).floor(),
        }
    }

    fn data(self, spec: &JobSpec, party: usize) -> ModelData {
        let column = |name: &str, _: &ColumnSpec| Some((0..RECORDS).map(|i| self.value(name, party, i)).collect());
        assemble(&spec.model, &spec.columns, None, column).unwrap()
    }
}

fn job((algorithm, model, sampler, privacy): Parts) -> JobSpec {
    let parties = if algorithm == "ops" { "\"a\"" } else { "\"a\", \"b\"" };
    let text = format!(
        "name = \"same\"\nalgorithm = \"{algorithm}\"\nparties = [{parties}]\n{}[sampler]\nseed = 7\n{sampler}\n[privacy]\n\
         delta = 1e-6\n{privacy}\n",
        model.text()
    );
    JobSpec::parse(&text).unwrap_or_else(|error| panic!("{algorithm} {sampler} {privacy}: {error}"))
}

/// Everything that a run and the plans of its job state, as text; numbers have all their digits.
fn states(parts: Parts) -> String {
    let spec = job(parts);
    let mut text = String::new();
    let unit = if parts.3.contains("add_remove") { PrivacyUnit::row(Adjacency::AddRemove) } else { PrivacyUnit::default() };
    let shards = (0..spec.parties.len()).map(|party| (parts.1.data(&spec, party), unit)).collect();
    let mut parties = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
    match sampler::build(&spec, &parties.metadata()) {
        Err(error) => writeln!(text, "refused: {error}").unwrap(),
        Ok(mut sampler) => {
            while let Ok(Next::Ask(round)) = sampler.next_round() {
                writeln!(text, "{round:?}").unwrap();
                if round.iteration >= ROUNDS {
                    break;
                }
                let Ok(Answer::Released(releases)) = parties.answer(&round) else { break };
                if let Err(error) = sampler.absorb(&Totals::of(&round, &releases).unwrap()) {
                    writeln!(text, "ended: {error}").unwrap();
                    break;
                }
                writeln!(text, "{:?} {:?}", sampler.phase(), sampler.acceptance_rate()).unwrap();
                sampler.take_draws().iter().for_each(|draw| writeln!(text, "{draw:?}").unwrap());
            }
            sampler.take_draws().iter().for_each(|draw| writeln!(text, "{draw:?}").unwrap());
            let report = sampler.report();
            writeln!(text, "{}", serde_json::to_string(&report).unwrap()).unwrap();
            writeln!(text, "{:?} {} {:?}", report.radii, sampler.ended_by_budget(), sampler.futility()).unwrap();
            writeln!(text, "{:?} {:?}", sampler.warnings(), parties.spent()).unwrap();
        }
    }
    let records = vec![RECORDS as u64; spec.parties.len()];
    let d = spec.dimension();
    let mean = spec.transform().constrain(&vec![0.1; spec.transform().dimension()]);
    let guess = Guess::independent(records.clone(), mean, &vec![0.02; d]);
    let planned = plan(&spec, &guess);
    writeln!(text, "{}", planned.as_ref().map_or_else(ToString::to_string, |plan| serde_json::to_string(plan).unwrap())).unwrap();
    let plans: Vec<(Algorithm, _)> = planned.into_iter().map(|plan| (spec.algorithm, plan)).collect();
    for plans in [&plans[..], &[]] {
        writeln!(text, "{}", serde_json::to_string(&compare(&spec, &records, plans).unwrap()).unwrap()).unwrap();
    }
    writeln!(text, "{:?}", prospect(&spec, &PartyMetadata::of_rows(&records)).map(|why| why.to_string())).unwrap();
    if ["penalty", "hmc", "sgld"].contains(&parts.0) {
        writeln!(text, "{:?}", range(&spec, &records)).unwrap();
    }
    text
}

fn jobs() -> Vec<(Parts, &'static str)> {
    use Model::{Bayes, Levels, Linear, Logistic, Mean, Rate, Share};
    vec![
        (("hmc", Logistic, "chains = 2\ndraws = 60", "epsilon = 8.0"), ""),
        (("hmc", Linear, "chains = 3\ndraws = 50\nstep = 0.3\nfriction = 1.5\ntest = \"none\"", "epsilon = 30.0"), ""),
        (("hmc", Logistic, "chains = 2\ndraws = 20\nfriction = 0\nrefresh = 4", "epsilon = 20.0"), ""),
        (
            (
                "hmc",
                Linear,
                "chains = 2\ndraws = 40\nstarts = [{ intercept = 0.1, x = 0.2 }, { intercept = -0.1, x = 0.4 }]",
                "epsilon = 8.0",
            ),
            "",
        ),
        (("hmc", Logistic, "draws = 40", "epsilon = 0.5"), ""),
        (("hmc", Logistic, "draws = 40\nforce = true\nlocate_share = 0.2", "epsilon = 0.3"), ""),
        (
            (
                "hmc",
                Linear,
                "until = { ess = 20, rhat = 1.5 }\nchains = 2\ndraws = 400",
                "epsilon = 20.0\nnoise_multiplier = 5.0",
            ),
            "",
        ),
        (("sgld", Linear, "chains = 2\ndraws = 60", "epsilon = 20.0"), ""),
        (("sghmc", Logistic, "chains = 2\ndraws = 60", "epsilon = 20.0"), ""),
        (("sgnht", Linear, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 20.0"), ""),
        (("sgfs", Linear, "chains = 2\ndraws = 60\nlocate_share = 0.1", "epsilon = 20.0"), ""),
        (
            (
                "sgld",
                Linear,
                "chains = 2\ndraws = 60\nstarts = [{ intercept = 0.1, x = 0.2 }, { intercept = -0.1, x = 0.4 }]",
                "epsilon = 20.0",
            ),
            "",
        ),
        (("sghmc", Linear, "chains = 2\ndraws = 40\nwarmup = 10\npolish = 20", "epsilon = 40.0"), ""),
        (("sgld", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.5", "epsilon = 100.0"), ""),
        (("sgnht", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.5", "epsilon = 100.0"), ""),
        (("sgfs", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.25", "epsilon = 1000.0"), ""),
        (("sghmc", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.25", "epsilon = 1000.0"), ""),
        (("sgld", Linear, "chains = 1\ndraws = 4000\nwarmup = 20\nbatch = 0.01", "epsilon = 1.0"), ""),
        (("barker", Logistic, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 40.0"), ""),
        (("barker", Mean, "chains = 2\ndraws = 60\nwarmup = 4\nbatch = 0.5\nforce = true", "epsilon = 900.0\nclip = 0.05"), ""),
        (("barker", Mean, "chains = 2\ndraws = 60\nwarmup = 4\nbatch = 0.5", "epsilon = 2.0\nclip = 4.0"), ""),
        (("ops", Share, "draws = 20\ncandidates = 64\nlocate_share = 0.0", "epsilon = 30.0"), ""),
        (("ops", Share, "draws = 20\ncandidates = 32", "epsilon = 100.0"), ""),
        (("ops", Linear, "draws = 4\ncandidates = 32\nlocate = \"gradients\"", "epsilon = 900.0"), ""),
        (("ops", Share, "draws = 20\ncandidates = 64", "epsilon = 0.1"), ""),
        (("augmentation", Share, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), ""),
        (("augmentation", Rate, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), ""),
        (("augmentation", Mean, "chains = 2\ndraws = 20\nwarmup = { until_rhat = 1.2, max = 20 }", "epsilon = 3.0"), ""),
        (("augmentation", Linear, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), ""),
        (("augmentation", Levels, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), ""),
        (("augmentation", Bayes, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), ""),
        (("penalty", Logistic, "chains = 2\ndraws = 60\nwarmup = 10\nlocate = \"gradients\"", "epsilon = 20.0"), ""),
        (("penalty", Linear, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 20.0\nclip = 2.0\nclip_watch_share = 0.3"), ""),
        (("penalty", Mean, "chains = 4\ndraws = 4000\nwarmup = 10", "epsilon = 1.0"), ""),
        (("penalty", Logistic, "draws = 400\nproposal = { kind = \"random_walk\" }", "epsilon = 0.3"), ""),
        (("penalty-exp-family", Share, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 20.0"), ""),
        (("penalty-exp-family", Mean, "chains = 2\ndraws = 60\nproposal = { kind = \"random_walk\" }", "epsilon = 20.0"), ""),
    ]
}

#[test]
fn results_with_fixed_seeds_stay_as_they_were() {
    let mut changed = String::new();
    for (at, (parts, expected)) in jobs().into_iter().enumerate() {
        let text = states(parts);
        if let Ok(folder) = std::env::var("SAME_RESULTS") {
            std::fs::write(format!("{folder}/{at}.txt"), &text).unwrap();
        }
        let digest = Sha256::digest(text).iter().take(8).fold(String::new(), |sum, byte| sum + &format!("{byte:02x}"));
        if digest != expected {
            let _ = writeln!(changed, "{at} {} {}: {digest}", parts.0, parts.2.replace('\n', ", "));
        }
    }
    assert!(changed.is_empty(), "other digests:\n{changed}");
}
