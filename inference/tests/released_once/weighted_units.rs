//! Weighted regressions at parties whose number of records is not public: it is released first.

use super::*;
use conclave_privacy::accounting::Adjacency;

/// Records of a person, where persons are protected.
const PER_PERSON: u32 = 2;
const TRUTH: [f64; 3] = [0.1, 0.3, -0.4];
/// Sd of a predictor, in half widths of its bounds.
const FILLED: f64 = 0.12;

fn units() -> [PrivacyUnit; 3] {
    let person = |adjacency| PrivacyUnit::person(adjacency, PER_PERSON).unwrap();
    [PrivacyUnit::row(Adjacency::AddRemove), person(Adjacency::Replace), person(Adjacency::AddRemove)]
}

fn text(kind: &str, epsilon: f64, guess: Option<usize>) -> String {
    let outcome = if kind == "linear" { "y = { min = -1, max = 1 }" } else { "y = { binary = true }" };
    let guess = guess.map_or(String::new(), |guess| format!("records_guess = {guess}\n"));
    format!(
        "name = \"t\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"{kind}\"\noutcome = \"y\"\n\
         weights = \"always\"\npredictors = [\"x1\", \"x2\"]\n[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[columns]\n{outcome}\n\
         x1 = {{ min = -1, max = 1 }}\nx2 = {{ min = -1, max = 1 }}\n\
         [sampler]\nforce = true\ndraws = 1000\nwarmup = 10\n{guess}[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    )
}

fn records(kind: &str, n: usize, seed: u64) -> Records {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut records = Records { x: Vec::new(), y: Vec::new(), offset: Vec::new() };
    for _ in 0..n {
        let mut z = || -> f64 { StandardNormal.sample(&mut rng) };
        let x = [FILLED * z(), FILLED * z()].map(|x| x.clamp(-1.0, 1.0));
        let scale = if kind == "linear" { 1.0 } else { 0.5 / FILLED };
        let eta = TRUTH[0] + scale * (TRUTH[1] * x[0] + TRUTH[2] * x[1]);
        let error = 0.1 * z();
        records.y.push(if kind == "linear" {
            (eta + error).clamp(-1.0, 1.0)
        } else {
            f64::from(u8::from(rng.random_bool(logistic(eta))))
        });
        records.x.push(x.to_vec());
    }
    records
}

/// Over 8 runs of 3 coefficients the sd of z's root mean square is .14. The guess is half of the number of records: taken for it, the
/// frame would be that of half the information, and sigma's square would be wrong by the factor 2.
#[test]
fn the_number_of_records_is_released_where_it_is_not_public() {
    for unit in units() {
        for kind in ["linear", "logistic"] {
            let (mut z, mut sigma, mut answers) = (Vec::new(), Vec::new(), 0);
            for seed in 0..8 {
                let n = 18_000;
                let spec = JobSpec::parse(&text(kind, 5.0, Some(n / 6))).unwrap();
                let run = run_of(unit, &spec, &records(kind, n, 300 + seed), |y| y, seed);
                assert!(run.inference.weighted.is_some());
                answers += usize::from(run.inference.is_adequate());
                let scale = if kind == "linear" { 1.0 } else { 0.5 / FILLED };
                let truth = [TRUTH[0], scale * TRUTH[1], scale * TRUTH[2]];
                z.extend((0..3).map(|j| (run.mean[j] - truth[j]) / run.sd[j]));
                sigma.extend(run.mean.get(3).map(|sigma| (sigma - 0.1) / run.sd[3]));
            }
            println!("{unit} {kind}: {answers} z {:.2} sigma {:.2}", rms(&z), if sigma.is_empty() { 0.0 } else { rms(&sigma) });
            assert!(answers >= 7, "{unit} {kind}: {answers}");
            assert!((0.55..1.45).contains(&rms(&z)) && z.iter().all(|z| z.abs() < 4.0), "{unit} {kind}: {z:?}");
            assert!(sigma.iter().all(|z| z.abs() < 3.0), "{unit} {kind}: {sigma:?}");
        }
    }
}

/// `auto` and `always` need a guess, to know before any release whether a frame can be learnt.
#[test]
fn a_count_that_is_neither_public_nor_guessed_is_asked_for() {
    let spec = JobSpec::parse(&text("logistic", 5.0, None)).unwrap();
    let parties = [conclave_common::query::PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 0); 3];
    let error = sampler::build(&spec, &parties).err().unwrap().to_string();
    assert!(error.contains("records_guess"), "{error}");
}
