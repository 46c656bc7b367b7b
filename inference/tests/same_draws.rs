//! Runs of every algorithm with fixed seeds reproduce the rounds and draws of previous builds bit for bit. `same_bits.rs` explains
//! what a changed digest means.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use conclave_common::job::JobSpec;
use conclave_common::model::assemble;
use conclave_common::schema::ColumnSpec;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, Totals};
use conclave_privacy::accounting::PrivacyUnit;
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

/// The rounds, draws and acceptance rates of a run, as text; numbers have all their digits.
fn run(parts: Parts) -> String {
    let spec = job(parts);
    let shards = (0..spec.parties.len()).map(|party| (parts.1.data(&spec, party), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(5)).unwrap();
    let mut sampler = sampler::build(&spec, &parties.metadata()).unwrap();
    let mut text = String::new();
    while let Ok(Next::Ask(round)) = sampler.next_round() {
        // Written before parties could be asked apart.
        writeln!(text, "{}", format!("{round:?}").replace(", apart: []", "")).unwrap();
        if round.iteration >= ROUNDS {
            break;
        }
        let Ok(Answer::Released(releases)) = parties.answer(&round) else { break };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        writeln!(text, "{:?} {:?}", sampler.phase(), sampler.acceptance_rate()).unwrap();
        sampler.take_draws().iter().for_each(|draw| writeln!(text, "{draw:?}").unwrap());
    }
    sampler.take_draws().iter().for_each(|draw| writeln!(text, "{draw:?}").unwrap());
    text
}

fn jobs() -> Vec<(Parts, &'static str)> {
    use Model::{Bayes, Levels, Linear, Logistic, Mean, Rate, Share};
    vec![
        (("hmc", Logistic, "chains = 2\ndraws = 60", "epsilon = 8.0"), "347bd8908ceb1b97"),
        (
            ("hmc", Linear, "chains = 3\ndraws = 50\nstep = 0.3\nfriction = 1.5\ntest = \"none\"", "epsilon = 30.0"),
            "4d3a5bf4bd23ae9f",
        ),
        (("hmc", Logistic, "chains = 2\ndraws = 20\nfriction = 0\nrefresh = 4", "epsilon = 20.0"), "ba40f77981713d3f"),
        (
            (
                "hmc",
                Linear,
                "chains = 2\ndraws = 40\nstarts = [{ intercept = 0.1, x = 0.2 }, { intercept = -0.1, x = 0.4 }]",
                "epsilon = 8.0",
            ),
            "53b6f3dde00f5acf",
        ),
        // The next two since the build in which the noise of pooled curvature is added up by libm's hypot, not the system's.
        (("hmc", Logistic, "draws = 40", "epsilon = 0.5"), "ef38a33e960b6251"),
        (("hmc", Logistic, "draws = 40\nforce = true\nlocate_share = 0.2", "epsilon = 0.3"), "7e7e0596b5c26ffc"),
        (
            (
                "hmc",
                Linear,
                "until = { ess = 20, rhat = 1.5 }\nchains = 2\ndraws = 400",
                "epsilon = 20.0\nnoise_multiplier = 5.0",
            ),
            "335f6bd5b5ce36c1",
        ),
        (("sgld", Linear, "chains = 2\ndraws = 60", "epsilon = 20.0"), "54a6f34996b6990e"),
        (("sghmc", Logistic, "chains = 2\ndraws = 60", "epsilon = 20.0"), "9fac42957d9fb366"),
        (("sgnht", Linear, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 20.0"), "3e8943eaefda44c2"),
        (("sgfs", Linear, "chains = 2\ndraws = 60\nlocate_share = 0.1", "epsilon = 20.0"), "e740a2cfeb2c7800"),
        (
            (
                "sgld",
                Linear,
                "chains = 2\ndraws = 60\nstarts = [{ intercept = 0.1, x = 0.2 }, { intercept = -0.1, x = 0.4 }]",
                "epsilon = 20.0",
            ),
            "72389a9326eccfff",
        ),
        (("sghmc", Linear, "chains = 2\ndraws = 40\nwarmup = 10\npolish = 20", "epsilon = 40.0"), "dc0b1470381fb777"),
        (("sgld", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.5", "epsilon = 100.0"), "c582cab810ddfefc"),
        (("sgnht", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.5", "epsilon = 100.0"), "22036520861adf6f"),
        (("sgfs", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.25", "epsilon = 1000.0"), "5fa75abe7f51b091"),
        (("sghmc", Linear, "chains = 1\ndraws = 40\nwarmup = 20\nbatch = 0.25", "epsilon = 1000.0"), "b087a452ffde21bb"),
        (("barker", Logistic, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 40.0"), "1f8307aa735ded94"),
        (
            ("barker", Mean, "chains = 2\ndraws = 60\nwarmup = 4\nbatch = 0.5\nforce = true", "epsilon = 900.0\nclip = 0.05"),
            "8eba36383b9b3937",
        ),
        (("ops", Share, "draws = 20\ncandidates = 32", "epsilon = 100.0"), "18f17556c8fb50c7"),
        (("ops", Linear, "draws = 4\ncandidates = 32\nlocate = \"gradients\"", "epsilon = 900.0"), "b43635d3762b6c0d"),
        (("augmentation", Share, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), "b34af643ab9e67de"),
        (("augmentation", Rate, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), "63bfa8f9a3ea7ccb"),
        (
            ("augmentation", Mean, "chains = 2\ndraws = 20\nwarmup = { until_rhat = 1.2, max = 20 }", "epsilon = 3.0"),
            "4efc56947c1bdf1d",
        ),
        (("augmentation", Linear, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), "2a68fc686b090f22"),
        (("augmentation", Levels, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), "8a6174d6d0de2c8d"),
        (("augmentation", Bayes, "chains = 2\ndraws = 20\nwarmup = 5", "epsilon = 3.0"), "2ab726be7d8ad249"),
        (
            ("penalty", Logistic, "chains = 2\ndraws = 60\nwarmup = 10\nlocate = \"gradients\"", "epsilon = 20.0"),
            "c64e913b688fb07d",
        ),
        (
            ("penalty", Linear, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 20.0\nclip = 2.0\nclip_watch_share = 0.3"),
            "0a38446d8e65dbad",
        ),
        (("penalty", Mean, "chains = 4\ndraws = 4000\nwarmup = 10", "epsilon = 1.0"), "30fc7c75766c51c0"),
        (("penalty", Logistic, "draws = 400\nproposal = { kind = \"random_walk\" }", "epsilon = 0.3"), "9c1d6fc003fa1160"),
        (("penalty-exp-family", Share, "chains = 2\ndraws = 60\nwarmup = 10", "epsilon = 20.0"), "7ddc57cc110fc2f2"),
        (
            ("penalty-exp-family", Mean, "chains = 2\ndraws = 60\nproposal = { kind = \"random_walk\" }", "epsilon = 20.0"),
            "ec49710dc7cfff99",
        ),
    ]
}

#[test]
fn runs_of_every_algorithm_stay_as_they_were() {
    let mut changed = String::new();
    for (parts, expected) in jobs() {
        let digest = Sha256::digest(run(parts)).iter().take(8).fold(String::new(), |sum, byte| sum + &format!("{byte:02x}"));
        if digest != expected {
            let _ = writeln!(changed, "{} {}: {digest}, not {expected}", parts.0, parts.2.replace('\n', ", "));
        }
    }
    assert!(changed.is_empty(), "other digests:\n{changed}");
}
